"""The producer that an application holds: confluent-kafka's calls around `ProducerCore`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from shareq.client.config import merged
from shareq.client.shell import UntilClosed, perform, timeout_ms
from shareq.client.uninterrupted import uninterrupted
from shareq.log.records import Headers
from shareq.model.errors import ClientFailedException, Errors, KafkaError, KafkaException
from shareq.model.transport import transport_for
from shareq.producer.config import producer_config
from shareq.producer.core import ProducerCore
from shareq.producer.lane import RECORD_OVERHEAD_BYTES, Delivery, DeliveryCallback
from shareq.producer.transaction import TransactionEvent, TransactionState

DRAIN_AT = 1000
"""So many records in the inbox are moved on at once; a lock each would cost more than everything else."""


class _Waiting:
    """Around a call that waits: one turn, but for its waits and callbacks.

    Where the client has failed, the callbacks of all open records are called with that before the call raises.
    """

    def __init__(self, core: ProducerCore) -> None:
        self._core = core

    def __enter__(self) -> None:
        uninterrupted.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, ClientFailedException):
                self._core.abandon(KafkaError(KafkaError._FATAL, str(error), fatal=True))
                self._core.deliveries.serve(Delivery.report)
        finally:
            uninterrupted.__exit__()


class Producer(UntilClosed):
    """Writes records to topics; see `produce`.

        with Producer({"bootstrap.servers": address}) as producer:
            producer.produce("orders", value=b"...", key=b"...", on_delivery=report)

    `produce` only queues; `poll` and `flush` serve delivery callbacks. Records are sent when a batch is full or has
    lingered; on a virtual clock time passes in `poll` and `flush` only. `conf` is a dict, keyword arguments, or both.
    """

    _NAME = "Producer"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        given = merged(conf, kwargs)
        self._on_delivery: DeliveryCallback | None = given.pop("on.delivery", given.get("on_delivery"))
        config = producer_config(given)
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = ProducerCore(config, transport.rng())
        self._connection = transport.connect(self._core, self._core.client_id)
        self._inbox = self._core.inbox
        self._waiting = _Waiting(self._core)
        self._max_record_bytes: int = config["message.max.bytes"]
        self._max_records: int = config["queue.buffering.max.messages"] or 1 << 62
        self._guarded = bool(config["transactional.id"])  # produce is not always allowed
        self._room = self._max_records  # at least so many records may still come
        self._produced = 0
        self._unreturned: TransactionEvent | None = None
        """The step of a transaction whose call was interrupted: a repetition goes on where that call was."""

    # ---- records -----------------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: DeliveryCallback | None = None,
        *,
        timestamp: int = 0,
        headers: Headers | Mapping[str, bytes | str | None] | None = None,
        callback: DeliveryCallback | None = None,
    ) -> None:
        """Queue a record. `on_delivery(error, message)` is called from `poll` or `flush` when its fate is known.

        `partition` -1 leaves the choice to the partitioner, `timestamp` (ms) 0 means now. Raises BufferError when the
        queue is full (poll, then try again), KafkaException (MESSAGE_TOO_LARGE), IllegalStateException when closed.
        """
        if self._guarded:
            self._check_may_produce()
        if value.__class__ is not bytes and value is not None:
            value = _bytes("value", value)
        if key.__class__ is not bytes and key is not None:
            key = _bytes("key", key)
        size = RECORD_OVERHEAD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)
        if size > self._max_record_bytes or topic.__class__ is not str or partition < -1:
            raise self._refusal(topic, partition, size)
        if self._room <= 0:
            self._find_room()
        fields: Headers = ()
        if headers:
            fields = _headers(headers)
            size += sum(len(name) + len(content or b"") for name, content in fields)
        if on_delivery is None:
            on_delivery = self._on_delivery if callback is None else callback
        self._produced += 1  # CPython does not look for signals between here and the append
        self._room -= 1
        self._inbox.append((topic, partition, key, value, fields, timestamp, on_delivery, size))
        if not self._core.scheduled:
            self._run(self._core.schedule)
        elif len(self._inbox) >= DRAIN_AT:
            self._run(self._core.drain)

    def _refusal(self, topic: object, partition: int, size: int) -> Exception:
        if not isinstance(topic, str):
            return TypeError(f"topic must be a str, not {type(topic).__name__}")
        if partition < -1:
            return KafkaException(KafkaError(KafkaError._INVALID_ARG, f"partition={partition}: must be -1 or more"))
        text = f"a record of {size} bytes: message.max.bytes is {self._max_record_bytes}"
        return KafkaException(KafkaError(Errors.MESSAGE_TOO_LARGE, text))

    def _find_room(self) -> None:
        """Count anew what waits; until so many more have come there is no need to count again."""
        self._room = self._max_records - len(self)
        if self._room <= 0:
            raise BufferError(f"Local: Queue full ({self._max_records} records wait: poll or flush)")

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        on_delivery: DeliveryCallback | None = None,
    ) -> int:
        """Queue many records: dicts of value, key, partition, timestamp, headers, callback. Returns how many were
        queued; the others have their error under `_error`."""
        if not isinstance(messages, list):
            raise TypeError(f"messages must be a list of dicts, not {type(messages).__name__}")
        queued = 0
        for message in messages:
            try:
                self.produce(
                    topic,
                    message.get("value"),
                    message.get("key"),
                    message.get("partition", partition),
                    message.get("callback", on_delivery),
                    timestamp=message.get("timestamp", 0),
                    headers=message.get("headers"),
                )
                queued += 1
            except (BufferError, KafkaException) as error:
                message["_error"] = error
        return queued

    def __len__(self) -> int:
        """Records whose fate is not known, or whose callback has not been served."""
        return self._produced - self._core.deliveries.served - self._core.settled_count

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> int:
        """Serve delivery callbacks, waiting up to `timeout` seconds for the first; how many were served."""
        self._check_open()
        wait_ms = timeout_ms(timeout)
        with self._waiting:
            core = self._core
            if self._inbox:
                if not core.scheduled:  # a `produce` was interrupted
                    self._run(core.schedule)
                self._run(core.drain)
            if not core.deliveries and len(self):
                self._connection.wait(lambda: bool(core.deliveries) or not len(self), wait_ms)
            return self._serve()

    def flush(self, timeout: float = -1) -> int:
        """Send everything and wait until the fate of all records is known and told; how many are still open."""
        self._check_open()
        with self._waiting:
            self._run(self._core.flush)
            self._serve_until(lambda: not self._core.undelivered, timeout)
        return len(self)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up records: those that wait, those under way. Their callbacks are served by the next poll or flush."""
        del blocking  # it is done when this returns
        self._check_open()
        self._run(lambda now_ms: self._core.purge(now_ms, in_queue=in_queue, in_flight=in_flight))

    def _serve(self) -> int:
        return self._core.deliveries.serve(Delivery.report)

    def _serve_until(self, done: Callable[[], bool], timeout: float) -> bool:
        """Serve callbacks until all is `done`; False when the time is up before."""
        wait_ms = timeout_ms(timeout)
        connection, core = self._connection, self._core
        deadline_ms = None if wait_ms is None else connection.now_ms() + wait_ms
        while True:
            self._serve()
            if done():
                return True
            left_ms = None if deadline_ms is None else max(0, deadline_ms - connection.now_ms())
            if not connection.wait(lambda: bool(core.deliveries) or done(), left_ms):
                return False

    def _run(self, call: Callable[[int], None]) -> None:
        perform(self._connection, self._core.calls, call)

    # ---- transactions ------------------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float = -1) -> None:
        """Get a producer id; an earlier producer of the same transactional.id is fenced, its transaction aborted."""
        self._transact(TransactionEvent.INIT, timeout)

    def begin_transaction(self) -> None:
        """From here on records belong to a transaction."""
        self._transact(TransactionEvent.BEGIN, 0)

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver everything, then make it visible to readers of committed records. May be repeated after a time-out.

        KafkaException if a record could not be delivered: abort then.
        """
        self._transact(TransactionEvent.COMMIT, timeout)
        if self._core.identity.state is TransactionState.ABORTABLE:
            text = "a record of the transaction was not delivered: abort_transaction() is required"
            raise KafkaException(KafkaError(Errors.INVALID_TXN_STATE, text))

    def abort_transaction(self, timeout: float = -1) -> None:
        """Throw away what has not been sent, and let no reader of committed records see the rest."""
        self._transact(TransactionEvent.ABORT, timeout)

    def _transact(self, event: TransactionEvent, timeout: float) -> None:
        self._check_open()
        identity = self._core.identity
        with self._waiting:
            if self._unreturned is not event:
                self._run(self._step(event))
            settled = self._serve_until(lambda: identity.settled, timeout)
        self._unreturned = None
        if not settled:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{event} is still under way: call it again"))
        if identity.error is not None:
            raise KafkaException(identity.error)

    def _step(self, event: TransactionEvent) -> Callable[[int], None]:
        step = self._core.transaction(event)

        def begin(now_ms: int) -> None:
            step(now_ms)
            self._unreturned = event

        return begin

    def _check_may_produce(self) -> None:
        self._check_open()
        state = self._core.identity.state
        if state is not TransactionState.IN_TRANSACTION:
            raise KafkaException(KafkaError(KafkaError._STATE, f"produce needs begin_transaction; state is {state}"))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close(self, timeout: float = -1) -> None:
        """Abort an open transaction, flush, and say goodbye. Repeatable."""
        if self._closed:
            return
        try:
            if self._core.identity.state in (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE):
                self._abort_last(timeout)
            self.flush(timeout)
        finally:
            self._closed = self._guarded = True
            self._connection.close()

    def _abort_last(self, timeout: float) -> None:
        """A producer that has been fenced has nothing left to abort."""
        try:
            self.abort_transaction(timeout)
        except KafkaException as gone:
            if not gone.error.fatal():
                raise


def _bytes(what: str, value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{what} must be bytes, str or None, not {type(value).__name__}")


def _headers(headers: Headers | Mapping[str, bytes | str | None]) -> Headers:
    pairs: Iterable[tuple[str, bytes | str | None]] = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, None if value is None else _bytes(f"header {name!r}", value)) for name, value in pairs)
