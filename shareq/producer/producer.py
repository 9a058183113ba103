"""The producer's public interface: confluent-kafka's calls around `ProducerCore`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Lock
from types import TracebackType
from typing import Any

from shareq.client.arguments import INT32_MAX, INT64_MAX, text
from shareq.client.config import merged
from shareq.client.patience import SILENT_MS, over_tcp, silence_of
from shareq.client.shell import failed_for_good, timeout_ms
from shareq.log.records import Headers
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.transport import Connection
from shareq.producer.config import producer_config
from shareq.producer.core import ProducerCore
from shareq.producer.partition_queue import RECORD_OVERHEAD_BYTES, Delivery, DeliveryCallback
from shareq.producer.record_arguments import checked_arguments, content_bytes, headers_size, record_headers
from shareq.producer.transaction import ProducerTransactionEvent, ProducerTransactionState
from shareq.producer.transactional_calls import TransactionalCalls
from shareq.signals.uninterrupted import uninterrupted
from shareq.transports import transport_for

_log = logging.getLogger("shareq.producer")

DRAIN_AT = 1000
"""At this length the inbox is drained. A lock per record would cost more than everything else."""


class _BlockingCall:
    """The context of a call that waits: a single turn, apart from its waits and callbacks.

    After a fatal failure of the client, all open records get their callbacks before the call raises.
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


class Producer(TransactionalCalls):
    """Writes records to topics; see `produce`.

        with Producer({"bootstrap.servers": address}) as producer:
            producer.produce("orders", value=b"...", key=b"...", on_delivery=report)

    `produce` only queues; `poll` and `flush` run delivery callbacks. Records are sent when a batch is full or
    `linger.ms` old; on a virtual clock, time passes only in `poll` and `flush`. `conf` is a dict, keyword arguments, or
    both. Every `timeout` is in seconds; a negative one waits without limit.
    """

    _NAME = "Producer"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        given = merged(conf, kwargs)
        if "on.delivery" in given:  # `merged` replaces the underscore of a keyword by a dot
            given["on_delivery"] = given.pop("on.delivery")
        self._on_delivery: DeliveryCallback | None = given.get("on_delivery")
        config = producer_config(given)
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        self._core = ProducerCore(config, transport.rng())
        self._connection = transport.connect(self._core, self._core.client_id)
        self._core.time_of_day = self._connection.time_of_day
        self._inbox = self._core.inbox
        self._waiting = _BlockingCall(self._core, self._connection)
        self._max_record_bytes: int = config["message.max.bytes"]
        self._max_records: int = config["queue.buffering.max.messages"] or 1 << 62
        self._max_bytes: int = config["queue.buffering.max.kbytes"] << 10
        self._guarded = bool(config["transactional.id"])  # `produce` must check the state
        self._unreturned: ProducerTransactionEvent | None = None
        """The transaction step of an interrupted call: a repeated call continues with it."""
        self._names: set[str] = set()
        self._warned: set[str] = set()
        self._refused = False
        self._tcp_address = over_tcp(config["bootstrap.servers"])
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
        """Queue a record. `poll` or `flush` calls `on_delivery(error, message)` with its result.

        With `partition` -1 the partitioner chooses; `timestamp` (ms) 0 means now. Raises BufferError if the queue is
        full (poll, then retry), IllegalStateException if closed; KafkaException for a record that is too large, or for
        a partition or timestamp out of range; TypeError or ValueError for an invalid topic, key, value or header.
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
        except TypeError:  # also for an unhashable topic
            raise TypeError(f"topic must be a str, not {type(topic).__name__}") from None
        self._room -= 1  # CPython handles no signal between this line and the append
        self._room_bytes -= size
        self._inbox.append((topic, partition, key, value, fields, timestamp, on_delivery, size))
        if not self._core.scheduled:
            self._run(self._core.schedule)
        elif len(self._inbox) >= DRAIN_AT:
            self._run(self._core.drain)

    def _admit(self, topic: str, size: int) -> None:
        """Check a record whose topic is new, that is too large, or that exceeds the granted room."""
        self._names.add(text("topic", topic))
        if size > self._max_record_bytes:
            why = f"a record of {size} bytes: message.max.bytes is {self._max_record_bytes}"
            raise KafkaException(KafkaError(Errors.MESSAGE_TOO_LARGE, why))
        room, room_bytes = self._max_records - len(self), self._max_bytes - self._queued_bytes
        if room <= 0:
            raise BufferError(f"Local: Queue full ({self._max_records} waiting records: poll or flush)")
        if size > room_bytes:
            raise BufferError(f"Local: Queue full ({self._queued_bytes} waiting bytes: poll or flush)")
        granted = min(room_bytes, self._max_record_bytes)  # so that a record that is too large always gets here
        self._granted += room - self._room  # CPython handles no signal between this line and the end
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
        """Queue many records: dicts of value, key, partition, timestamp, headers, callback. Returns the number of
        queued records; the others have their error under `_error`. TypeError, before any record is queued, if
        `messages` is not a list of dicts."""
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
        """The number of records without a result, or whose callback has not been called."""
        return self._granted - self._room - self._core.deliveries.served - self._core.settled_count

    @property
    def _queued_bytes(self) -> int:
        """The size of those records, including the overhead per record."""
        unserved = [delivery.record[7] for delivery in list(self._core.deliveries)]
        return self._granted_bytes - self._room_bytes - self._core.settled_bytes + sum(unserved)

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> int:
        """Run delivery callbacks, waiting up to `timeout` seconds for the first one. Returns their number."""
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
        """Send all records, and wait until each has a result and its callback was called. Returns the number of records
        without a result."""
        self._check_open()
        with self._waiting:
            self._run(self._core.flush)
            self._await_first_answer(timeout_ms(timeout))
            self._serve_until(lambda: not self._core.undelivered, timeout)
        self._warn_of_lost_records()
        return len(self)

    def _await_first_answer(self, wait_ms: float | None) -> None:
        """Log that no broker answers while records wait for one: the address may be wrong."""
        core, calls = self._core, self._core.calls

        def sign() -> bool:
            return calls.reached or self._has_warnings() or bool(core.deliveries) or not core.undelivered

        may_wait = wait_ms is None or wait_ms >= SILENT_MS
        if may_wait and not self._refused and self._tcp_address and not self._connection.wait(sign, SILENT_MS):
            self._refused = True
            _log.warning("records wait: %s; the producer tries until it does", silence_of(self._tcp_address))

    def _has_warnings(self) -> bool:
        """True if a waiting call has a warning to log."""
        calls, unknown = self._core.calls, self._core.unknown_topics
        refused = bool(calls.refusal) and not self._refused
        return refused or calls.unreachable is not None or any(name not in self._warned for name in unknown)

    def _warn_of_lost_records(self) -> None:
        """Log what no callback reports: failed records, topics that do not exist, unreachable brokers."""
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
        if core.calls.refusal and not self._refused:  # the address may be wrong
            self._refused = True
            _log.warning("records wait: %s", core.calls.refusal)
        unreachable = core.calls.take_unreachable()
        if unreachable is not None:
            _log.error("records wait: %s", unreachable.str())

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fail waiting records, records in flight, or both. The next poll or flush runs their callbacks."""
        del blocking  # the purge is complete when this call returns
        self._check_open()
        self._run(lambda now_ms: self._core.purge(now_ms, in_queue=in_queue, in_flight=in_flight))

    def _serve(self) -> int:
        deliveries = self._core.deliveries
        return deliveries.serve(Delivery.report) if deliveries else 0

    def _serve_until(self, done: Callable[[], bool], timeout: float) -> bool:
        """Run callbacks until `done()`. False if the timeout passes first."""
        wait_ms = timeout_ms(timeout)
        connection, core = self._connection, self._core
        deadline_ms = None if wait_ms is None else connection.now_ms() + wait_ms
        while True:
            self._serve()
            if self._has_warnings():
                self._warn_of_lost_records()
            if done():
                return True
            left_ms = None if deadline_ms is None else max(0, deadline_ms - connection.now_ms())
            if not connection.wait(lambda: bool(core.deliveries) or self._has_warnings() or done(), left_ms):
                return False

    def _check_may_produce(self) -> None:
        self._check_open()
        state, error = self._core.identity.state, self._core.identity.error
        if error is not None:
            raise KafkaException(error)
        if state is not ProducerTransactionState.IN_TRANSACTION:
            raise KafkaException(KafkaError(KafkaError._STATE, f"produce needs begin_transaction(); state is {state}"))

    # ---- close -------------------------------------------------------------------------------------------------------

    def close(self, timeout: float = -1) -> bool:
        """Abort an open transaction, flush, and close the connections. Idempotent.

        Records that are not delivered within `timeout` seconds are dropped: their callbacks get _PURGE_QUEUE or
        _PURGE_INFLIGHT, and the result is False.
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
        """Abort the transaction, unless the producer has a fatal error, such as being fenced."""
        try:
            self.abort_transaction(timeout)
        except KafkaException as gone:
            if not gone.error.fatal():
                raise
