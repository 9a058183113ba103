"""The producer for applications: confluent-kafka's calls around `ProducerCore`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import TracebackType
from typing import Any

from shareq.client.arguments import INT32_MAX, INT64_MAX, text
from shareq.client.config import merged
from shareq.client.shell import UntilClosed, failed_for_good, perform, timeout_ms
from shareq.client.topic_partition import TopicPartition
from shareq.client.uninterrupted import uninterrupted
from shareq.log.records import Headers
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.transport import Connection
from shareq.producer.config import producer_config
from shareq.producer.core import ProducerCore
from shareq.producer.partition_queue import RECORD_OVERHEAD_BYTES, Delivery, DeliveryCallback
from shareq.producer.record_arguments import checked_arguments, content_bytes, headers_size, record_headers
from shareq.producer.transaction import ProducerTransactionEvent, ProducerTransactionState, abort_required
from shareq.producer.transaction_offsets import ConsumerGroupMetadata, committed_offsets
from shareq.transports import transport_for

_log = logging.getLogger("shareq.producer")

DRAIN_AT = 1000
"""So many records in the inbox are moved on at once; a lock each would cost more than everything else."""


class _BlockingCall:
    """Around a call that waits: one turn, but for its waits and callbacks.

    Where the client has failed, the callbacks of all open records are called with that before the call raises.
    """

    __slots__ = ("_connection", "_core", "_lock")

    def __init__(self, core: ProducerCore, connection: Connection) -> None:
        self._core = core
        self._connection = connection
        self._lock = Lock()

    def __enter__(self) -> None:
        uninterrupted.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            fatal = None if error is None else failed_for_good(self._connection, error)
            if fatal is not None:
                with self._lock:  # several threads may wait, and each record has one callback
                    self._core.abandon(fatal)
                self._core.deliveries.serve(Delivery.report)
        finally:
            uninterrupted.__exit__()


class Producer(UntilClosed):
    """Writes records to topics; see `produce`.

        with Producer({"bootstrap.servers": address}) as producer:
            producer.produce("orders", value=b"...", key=b"...", on_delivery=report)

    `produce` only queues; `poll` and `flush` serve delivery callbacks. Records are sent when a batch is full or has
    lingered; on a virtual clock time passes in `poll` and `flush` only. `conf` is a dict, keyword arguments, or both.
    Every `timeout` is in seconds; a negative one waits without limit.
    """

    _NAME = "Producer"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        given = merged(conf, kwargs)
        if "on.delivery" in given:  # as a keyword, its underscore was taken for a dot
            given["on_delivery"] = given.pop("on.delivery")
        self._on_delivery: DeliveryCallback | None = given.get("on_delivery")
        config = producer_config(given)
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = ProducerCore(config, transport.rng())
        self._connection = transport.connect(self._core, self._core.client_id)
        self._inbox = self._core.inbox
        self._waiting = _BlockingCall(self._core, self._connection)
        self._max_record_bytes: int = config["message.max.bytes"]
        self._max_records: int = config["queue.buffering.max.messages"] or 1 << 62
        self._max_bytes: int = config["queue.buffering.max.kbytes"] << 10
        self._guarded = bool(config["transactional.id"])  # produce is not always allowed
        self._unreturned: ProducerTransactionEvent | None = None
        """The step of a transaction whose call was interrupted: a repetition goes on where that call was."""
        self._names: set[str] = set()
        self._warned: set[str] = set()
        self._room: int = self._max_records
        self._granted = self._room
        self._room_bytes: int = min(self._max_record_bytes, self._max_bytes)
        self._granted_bytes: int = self._room_bytes

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
        queue is full (poll, then try again), IllegalStateException when closed; KafkaException for a record that is too
        large, a partition or timestamp out of range; TypeError, ValueError for what is no topic, key, value or header.
        """
        if self._guarded:
            self._check_may_produce()
        if (value.__class__ is not bytes and value is not None) or (key.__class__ is not bytes and key is not None):
            value, key = content_bytes("value", value), content_bytes("key", key)
        size = RECORD_OVERHEAD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)
        fields: Headers = ()
        if headers is not None:
            fields = record_headers(headers)
            size += headers_size(fields)
        if on_delivery is None:
            on_delivery = self._on_delivery if callback is None else callback
        if (
            (partition != -1 and (partition.__class__ is not int or not 0 <= partition <= INT32_MAX))
            or (timestamp and (timestamp.__class__ is not int or not 0 <= timestamp <= INT64_MAX))
            or (on_delivery is not None and not callable(on_delivery))
        ):
            partition, timestamp = checked_arguments(partition, timestamp, on_delivery)
        try:
            if size > self._room_bytes or self._room <= 0 or topic not in self._names:
                self._admit(topic, size)
        except TypeError:  # also for what cannot be looked up in a set
            raise TypeError(f"topic must be a str, not {type(topic).__name__}") from None
        self._room -= 1  # CPython does not look for signals between here and the append
        self._room_bytes -= size
        self._inbox.append((topic, partition, key, value, fields, timestamp, on_delivery, size))
        if not self._core.scheduled:
            self._run(self._core.schedule)
        elif len(self._inbox) >= DRAIN_AT:
            self._run(self._core.drain)

    def _admit(self, topic: str, size: int) -> None:
        """Look closer at a record: its topic is new, it is too large, or the room that was granted is used up."""
        self._names.add(text("topic", topic))
        if size > self._max_record_bytes:
            why = f"a record of {size} bytes: message.max.bytes is {self._max_record_bytes}"
            raise KafkaException(KafkaError(Errors.MESSAGE_TOO_LARGE, why))
        room, room_bytes = self._max_records - len(self), self._max_bytes - self._queued_bytes
        if room <= 0:
            raise BufferError(f"Local: Queue full ({self._max_records} records wait: poll or flush)")
        if size > room_bytes:
            raise BufferError(f"Local: Queue full ({self._queued_bytes} bytes wait: poll or flush)")
        granted = min(room_bytes, self._max_record_bytes)  # hence a record that is too large is never let through
        self._granted += room - self._room  # CPython does not look for signals between here and the end
        self._room = room
        self._granted_bytes += granted - self._room_bytes
        self._room_bytes = granted

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        on_delivery: DeliveryCallback | None = None,
    ) -> int:
        """Queue many records: dicts of value, key, partition, timestamp, headers, callback. Returns how many were
        queued; the others have their error under `_error`. TypeError, before anything is queued, for what is no list of
        dicts."""
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            raise TypeError(f"messages must be a list of dicts, not {messages!r:.100}")
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
            except (BufferError, KafkaException, TypeError, ValueError) as error:
                message["_error"] = error
        return queued

    def __len__(self) -> int:
        """Records whose fate is not known, or whose callback has not been served."""
        return self._granted - self._room - self._core.deliveries.served - self._core.settled_count

    @property
    def _queued_bytes(self) -> int:
        """The size of those records, with what a record takes beside key, value and headers."""
        unserved = [delivery.record[7] for delivery in list(self._core.deliveries)]
        return self._granted_bytes - self._room_bytes - self._core.settled_bytes + sum(unserved)

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> int:
        """Serve delivery callbacks, waiting up to `timeout` seconds for the first; how many were served."""
        self._check_open()
        wait_ms = timeout_ms(timeout)
        core = self._core
        if not self._inbox and not core.deliveries and not len(self):
            return 0
        with self._waiting:
            if self._inbox:
                if not core.scheduled:  # a `produce` was interrupted
                    self._run(core.schedule)
                self._run(core.drain)
            if not core.deliveries and len(self):
                self._connection.wait(lambda: bool(core.deliveries) or not len(self), wait_ms)
            served = self._serve()
        if core.lost:
            self._warn_of_lost_records()
        return served

    def flush(self, timeout: float = -1) -> int:
        """Send everything, and wait until every record has its result and every callback was called. Returns the number
        of records without a result."""
        self._check_open()
        with self._waiting:
            self._run(self._core.flush)
            self._serve_until(lambda: not self._core.undelivered, timeout)
        self._warn_of_lost_records()
        return len(self)

    def _has_news(self) -> bool:
        """True if a waiting call has something to log."""
        core = self._core
        return core.calls.unreachable is not None or any(name not in self._warned for name in core.unknown_topics)

    def _warn_of_lost_records(self) -> None:
        """Log what no callback reports: failed records, topics that brokers do not know, no broker at all."""
        core = self._core
        while core.lost:
            (topic, why), count = core.lost.popitem()
            _log.warning(
                "%d records for topic %r were not delivered: %s (on_delivery reports each record)", count, topic, why
            )
        for name in core.unknown_topics:
            if name not in self._warned:
                self._warned.add(name)
                _log.warning("topic %r does not exist: its records wait; create it, or check its name", name)
        unreachable = core.calls.take_unreachable()
        if unreachable is not None:
            _log.error("records wait: %s", unreachable.str())

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up records: those that wait, those under way. Their callbacks are served by the next poll or flush."""
        del blocking  # it is done when this returns
        self._check_open()
        self._run(lambda now_ms: self._core.purge(now_ms, in_queue=in_queue, in_flight=in_flight))

    def _serve(self) -> int:
        deliveries = self._core.deliveries
        return deliveries.serve(Delivery.report) if deliveries else 0

    def _serve_until(self, done: Callable[[], bool], timeout: float) -> bool:
        """Serve callbacks until all is `done`; False when the time is up before."""
        wait_ms = timeout_ms(timeout)
        connection, core = self._connection, self._core
        deadline_ms = None if wait_ms is None else connection.now_ms() + wait_ms
        while True:
            self._serve()
            if self._has_news():
                self._warn_of_lost_records()
            if done():
                return True
            left_ms = None if deadline_ms is None else max(0, deadline_ms - connection.now_ms())
            if not connection.wait(lambda: bool(core.deliveries) or self._has_news() or done(), left_ms):
                return False

    def _run(self, call: Callable[[int], None]) -> None:
        perform(self._connection, self._core.calls, call)

    # ---- transactions ------------------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float = -1) -> None:
        """Get a producer id; an earlier producer of the same transactional.id is fenced, its transaction aborted."""
        self._transact(ProducerTransactionEvent.INIT, timeout)

    def begin_transaction(self) -> None:
        """From here on records belong to a transaction."""
        self._transact(ProducerTransactionEvent.BEGIN, 0)

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver everything, then make it visible to readers of committed records. May be repeated after a time-out.

        KafkaException if a record could not be delivered: abort then.
        """
        self._transact(ProducerTransactionEvent.COMMIT, timeout)
        if self._core.identity.state is ProducerTransactionState.ABORTABLE:
            raise abort_required()

    def abort_transaction(self, timeout: float = -1) -> None:
        """Throw away what has not been sent, and let no reader of committed records see the rest."""
        self._transact(ProducerTransactionEvent.ABORT, timeout)

    def send_offsets_to_transaction(
        self, positions: Iterable[TopicPartition], group_metadata: ConsumerGroupMetadata | bytes, timeout: float = -1
    ) -> None:
        """Let the open transaction commit a consumer group's offsets: they count when it is committed.

        `positions`: the next offset to consume of each partition, confluent-kafka's TopicPartitions too.
        `group_metadata`: what confluent-kafka's `Consumer.consumer_group_metadata()` returns, or a
        ConsumerGroupMetadata. Share groups acknowledge records instead: they have no such offsets.
        KafkaException: _TIMED_OUT may be repeated; a fatal error ends the producer; after any other one abort.
        """
        self._check_open()
        offsets, group = committed_offsets(positions), ConsumerGroupMetadata.of(group_metadata)
        step = self._core.send_offsets(group, offsets)
        with self._waiting:
            commit = perform(self._connection, self._core.calls, step)
            done = self._serve_until(lambda: commit.done, timeout)
        if not done:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "offsets are still under way: call it again"))
        if commit.error is not None:
            raise KafkaException(commit.error)

    def _transact(self, event: ProducerTransactionEvent, timeout: float) -> None:
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

    def _step(self, event: ProducerTransactionEvent) -> Callable[[int], None]:
        step = self._core.transaction(event)

        def begin(now_ms: int) -> None:
            step(now_ms)
            self._unreturned = event

        return begin

    def _check_may_produce(self) -> None:
        self._check_open()
        state, error = self._core.identity.state, self._core.identity.error
        if error is not None:
            raise KafkaException(error)
        if state is not ProducerTransactionState.IN_TRANSACTION:
            raise KafkaException(KafkaError(KafkaError._STATE, f"produce needs begin_transaction; state is {state}"))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close(self, timeout: float = -1) -> bool:
        """Abort an open transaction, flush, and close the connections. Repeatable.

        Records that are not delivered within `timeout` seconds are dropped: their callbacks are served with
        _PURGE_QUEUE or _PURGE_INFLIGHT, and the result is False.
        """
        if self._closed:
            return True
        timeout_ms(timeout)
        try:
            if self._core.identity.state in (
                ProducerTransactionState.IN_TRANSACTION,
                ProducerTransactionState.ABORTABLE,
            ):
                self._abort_last(timeout)
            dropped = self.flush(timeout) > 0
            if dropped:
                self.purge()
                self._serve()
        finally:
            self._closed = self._guarded = True
            self._connection.close()
        return not dropped

    def _abort_last(self, timeout: float) -> None:
        """A producer that has been fenced has nothing left to abort."""
        try:
            self.abort_transaction(timeout)
        except KafkaException as gone:
            if not gone.error.fatal():
                raise
