"""The share consumer's public interface: confluent-kafka's blocking calls around `ShareConsumerCore`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import index
from typing import Any

from shareq.client.arguments import text
from shareq.client.config import merged
from shareq.client.message import Message
from shareq.client.patience import SILENT_MS
from shareq.client.share_group import ShareGroupMetadata
from shareq.client.shell import Gate, UntilClosed, failed_for_good, perform, timeout_ms
from shareq.client.topic_partition import TopicPartition
from shareq.consumer.acknowledger import CommitResult, acknowledge_type, check_release_delay
from shareq.consumer.config import consumer_config
from shareq.consumer.core import ShareConsumerCore
from shareq.consumer.messages import Messages
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.ids import Place, TopicId
from shareq.model.numbers import plain
from shareq.model.states import AcknowledgeType
from shareq.transports import transport_for

_log = logging.getLogger("shareq.consumer")

AcknowledgementCommitCallback = Callable[[dict[TopicPartition, set[int]], KafkaException | None], object]

CLOSE_TIMEOUT_S = 30
"""Default time-out of `close`, as in Java."""

SIGN_MS = 500
"""A poll whose connections fail for so long, before any broker has answered, logs the reason and goes on."""


class ShareConsumer(UntilClosed):
    """Consumes topics together with the other members of its share group; see KIP-932.

        with ShareConsumer({"bootstrap.servers": address, "group.id": "payments"}) as consumer:
            consumer.subscribe(["orders"])
            for message in consumer.poll(1.0):
                ...

    In implicit mode the next `poll` or `commit_*` accepts the records of the last poll; in explicit mode the
    application acknowledges each record. `close` releases records that are not acknowledged. Calls must not run in
    several threads at a time, except `wakeup`. `conf` is a dict, keyword arguments, or both.
    """

    _NAME = "Share consumer"

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        if hasattr(self, "_core"):
            raise RuntimeError("ShareConsumer already initialized")
        config = consumer_config(merged(conf, kwargs))
        transport = transport_for(config["bootstrap.servers"], config.sockets)
        core = ShareConsumerCore(config, transport.rng())
        self._connection = transport.connect(core, core.client_id)
        self._core = core
        self._gate = Gate("ShareConsumer", self._raised)
        self._lock = self._gate.lock
        self._acknowledger = core.acknowledger
        self._callback: AcknowledgementCommitCallback | None = None
        self._unreturned = False
        """True from the moment when a poll has taken records until it returns them."""

    # ---- subscription ------------------------------------------------------------------------------------------------

    def subscribe(self, topics: list[str]) -> None:
        """Replace the subscription; the next poll joins the group. An empty list unsubscribes."""
        self._check_open()
        if not isinstance(topics, list):
            raise TypeError(f"expected a list of topics, not {type(topics).__name__}")
        names = tuple(text("topic", str(topic), empty=True) for topic in topics)
        with self._gate:
            self._put_back()
            if "" in names or len(set(names)) < len(names):
                raise ValueError(f"topics={topics!r}: names must not be empty and must differ")
            perform(self._connection, self._core.calls, lambda now_ms: self._core.subscribe(names, now_ms))

    def unsubscribe(self) -> None:
        """Leave the group. Records of the last poll can still be acknowledged and committed."""
        self.subscribe([])

    def subscription(self) -> list[str]:
        """The subscribed topics."""
        self._check_open()
        with self._gate:
            return list(self._core.subscription)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this member may fetch from; other members may share them."""
        self._check_open()
        with self._gate:
            return self._core.assignment()

    # ---- poll --------------------------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Messages:
        """Wait up to `timeout` seconds (negative: without limit) for records; empty if none arrived.

        Returns renewed records, and up to max.poll.records others, up to the end of the record batch. Raises
        IllegalStateException without a subscription, and in explicit mode while records of the last poll are not
        acknowledged; WakeupException after `wakeup`; KafkaException once for an error of a background request, such as
        _MAX_POLL_EXCEEDED. Records of an interrupted poll are returned by the next one.
        """
        messages = self._poll(timeout)
        self._unreturned = False  # CPython handles no signal between this line and the caller's next step
        return messages

    def _poll(self, timeout: float) -> Messages:
        """The records of a poll, marked as unreturned: the caller removes the mark."""
        self._check_open()
        wait_ms = timeout_ms(timeout)
        with self._gate:
            if self._unreturned:
                self._put_back()
            if self._acknowledger.results:
                self._run_callbacks()
            try:
                perform(self._connection, self._core.calls, self._core.begin_poll)
                runs = self._wait_for_messages(wait_ms)
                self._unreturned = bool(runs)
            finally:
                self._connection.run(self._core.end_poll)
            if not runs and wait_ms != 0:
                self._warn_of_empty_poll()
            return Messages.of(runs)

    def _warn_of_empty_poll(self) -> None:
        hint = self._core.empty_poll_hint(self._connection.now_ms())
        if hint is not None:
            _log.warning(hint)

    def _put_back(self) -> None:
        """Put back the records of an interrupted poll, before a call that would treat them as returned."""
        if self._unreturned:
            perform(self._connection, self._core.calls, self._core.put_back)
            self._unreturned = False

    def _wait_for_messages(self, wait_ms: float | None) -> list[Sequence[Message]]:
        """Wait for records; gaps alone do not end the wait."""
        connection, core = self._connection, self._core
        deadline_ms = wait_ms and connection.now_ms() + wait_ms
        if not core.calls.reached and (wait_ms is None or wait_ms > SIGN_MS):
            self._await_first_answer(wait_ms)
        left_ms = deadline_ms and max(0, deadline_ms - connection.now_ms())
        while core.poll_ready() or connection.wait(core.poll_ready, left_ms):
            runs = perform(connection, core.calls, core.collect)
            if runs:
                return runs
            left_ms = deadline_ms and max(0, deadline_ms - connection.now_ms())
        return []

    def _await_first_answer(self, wait_ms: float | None) -> None:
        """Log why no broker can be reached while a long poll waits: its address may be wrong."""
        core, calls, connection = self._core, self._core.calls, self._connection
        connection.wait(lambda: core.poll_ready() or calls.reached, SIGN_MS)
        if core.tcp_address and not calls.refusal:
            left_ms = min(SILENT_MS, wait_ms or SILENT_MS) - SIGN_MS
            connection.wait(lambda: core.poll_ready() or calls.reached or bool(calls.refusal), left_ms)
        if calls.refusal or (core.tcp_address and not calls.reached):
            self._warn_of_empty_poll()

    def ready(self) -> bool:
        """True if a poll would return or raise at once: for applications with their own event loop."""
        self._check_open()
        with self._gate:
            self._put_back()
            return self._core.poll_ready()

    def wakeup(self) -> None:
        """End the poll or commit_sync in progress, or the next one, with WakeupException. Callable from any thread and
        from the callback."""
        if not self._closed:
            perform(self._connection, self._core.calls, lambda _: self._core.wakeup())

    # ---- acknowledge and commit --------------------------------------------------------------------------------------

    def acknowledge(
        self, message: Message, ack_type: int | str = AcknowledgeType.ACCEPT, *, delay_ms: int | None = None
    ) -> None:
        """Acknowledge a record (explicit mode) as ACCEPT, RELEASE, REJECT or RENEW, given as member, number or name.

        The next poll or commit sends it; until then a later type replaces an earlier one. RENEW restarts the lock
        duration. After a successful renewal the record is held again: acknowledge it, or the next poll returns it.

        `delay_ms`, with RELEASE: the record rests for this time before it is delivered again. An experiment of shareq:
        a broker without `shareq.experiments.enable`, and Apache Kafka, deliver it at once; more than the group's
        `shareq.release.backoff.max.ms` fails the acknowledgement with INVALID_REQUEST.
        """
        self._check_open()
        if not isinstance(message, Message):
            raise TypeError(f"argument 1 must be a Message, not {type(message).__name__}")
        if not isinstance(ack_type, int):
            ack_type = acknowledge_type(ack_type)
        if delay_ms is None:
            self._acknowledge(message.topic(), message.partition(), message.offset(), ack_type)
        else:
            self._release_with_delay(message, ack_type, delay_ms)

    def _release_with_delay(self, message: Message, ack_type: int, delay_ms: int) -> None:
        delay_ms = plain(delay_ms)
        check_release_delay(ack_type, delay_ms)
        with self._gate:
            self._put_back()
            at = message.topic(), message.partition(), message.offset()
            self._acknowledger.acknowledge(*at, ack_type)
            self._acknowledger.delay(*at, delay_ms)

    def acknowledge_offset(
        self, topic: str, partition: int, offset: int, ack_type: int | str = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledge a record by its position, even if it could not be decoded."""
        self._check_open()
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        self._acknowledge(topic, index(partition), index(offset), acknowledge_type(ack_type))

    def _acknowledge(self, topic: str | None, partition: int | None, offset: int | None, verdict: int) -> None:
        """Called for each record: a held record takes only the lock, any other record the whole gate."""
        lock = self._lock
        if lock.locked():
            raise self._gate.refusal()
        with lock:
            if not self._unreturned and self._acknowledger.note(topic, partition, offset, verdict):
                return
        with self._gate:
            self._put_back()
            self._acknowledger.acknowledge(topic, partition, offset, verdict)

    def commit_sync(self, timeout: float = 60) -> dict[TopicPartition, KafkaException | None]:
        """Send acknowledgements and wait for the brokers' responses.

        Returns the result by partition, None or the exception, of the partitions with acknowledgements in this call. A
        partition without a response within `timeout` seconds has REQUEST_TIMED_OUT, and may still succeed.
        """
        self._check_open()
        wait_ms = timeout_ms(timeout)
        core = self._core
        with self._gate:
            self._put_back()
            self._run_callbacks()
            commit = perform(self._connection, core.calls, lambda now_ms: core.commit(wait_ms, now_ms))
            if not commit.done:
                self._connection.wait(lambda: commit.done or core.woken, wait_ms)
            if not commit.done:
                core.raise_if_woken()
            self._run_callbacks()
            return dict(commit.results)  # a late response must not change what was returned

    def commit_async(self) -> None:
        """Send acknowledgements; the callback receives the results."""
        self._check_open()
        with self._gate:
            self._put_back()
            self._run_callbacks()
            perform(self._connection, self._core.calls, self._core.commit_async)

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCommitCallback | None) -> None:
        """Call `callback({TopicPartition: offsets}, exception or None)` with the result of each partition and request.

        It is called inside poll, commit_* and close, must not call the consumer (except `wakeup`), and its exceptions
        are raised by those calls.
        """
        self._check_open()
        if callback is not None and not callable(callback):
            raise TypeError("callback must be callable or None")
        with self._gate:
            self._callback = callback
            self._acknowledger.wants_results = callback is not None

    def _raised(self, error: BaseException) -> None:
        """After a fatal failure of the client, run the callback for acknowledgements without a result."""
        fatal = failed_for_good(self._connection, error)
        if fatal is not None:
            self._acknowledger.abandon(fatal)
            self._run_callbacks()

    def _run_callbacks(self) -> None:
        results = self._acknowledger.results
        if not results:
            return
        self._gate.in_callback = True
        try:
            results.serve(self._report)
        finally:
            self._gate.in_callback = False

    def _report(self, result: CommitResult) -> tuple[AcknowledgementCommitCallback, Any, Any]:
        return self._callback or _nothing, result.offsets, result.error

    # ---- state to read -----------------------------------------------------------------------------------------------

    def member_id(self) -> str:
        """The member id of this consumer. It never changes."""
        return self._core.member_id

    def share_group_metadata(self) -> ShareGroupMetadata:
        """The group, this member and its present epoch, for a producer that acknowledges records of this consumer in
        its transaction: `Producer.send_share_acknowledgements_to_transaction` (an experiment). Call it for each
        transaction: a member's epoch changes with its assignment."""
        self._check_open()
        with self._gate:
            return self._core.share_group_metadata(self._hand_over)

    def _hand_over(self, offsets: Mapping[Place, Collection[int]]) -> Mapping[Place, TopicId]:
        """Hand records over to a producer: their acknowledgement is its affair from now on."""
        self._check_open()
        with self._gate:
            self._put_back()
            return perform(self._connection, self._core.calls, lambda _: self._acknowledger.hand_over(offsets))

    def metrics(self) -> dict[str, float]:
        """Values by the names of Kafka's share consumer metrics; NaN without a measurement."""
        return self._core.metrics(self._connection.now_ms())

    def acquisition_lock_timeout_ms(self) -> int | None:
        """The lock duration (ms) in the last response; None before the first response."""
        self._check_open()
        with self._gate:
            return self._core.acquisition_lock_timeout_ms

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Set the credentials for a connection with SASL. A cluster in this process does not check them."""
        self._check_open()
        for name, value in (("username", username), ("password", password)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a str, not {type(value).__name__}")

    # ---- close -------------------------------------------------------------------------------------------------------

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Send acknowledgements, release all other records, leave the group. Idempotent.

        Waits up to `timeout` seconds (negative: without limit) for responses. After that time, or after an interrupt,
        the connections are closed, and the brokers release all locked records.
        """
        wait_ms = timeout_ms(timeout)
        if self._closed and not self._acknowledger.results:
            return
        with self._gate:
            try:
                if not self._closed:
                    self._leave_and_close(wait_ms)
            finally:
                self._closed = True
                self._connection.close()
            self._run_callbacks()

    def _leave_and_close(self, wait_ms: float | None) -> None:
        core = self._core
        try:
            self._put_back()
            perform(self._connection, core.calls, core.begin_close)
            self._connection.wait(core.closed, wait_ms)
        except KafkaException as gone:  # the cluster is already closed: there is no group to leave
            if gone.error.code() != KafkaError._TRANSPORT:
                raise


def _nothing(offsets: object, error: object) -> None:
    """Replaces a callback that was removed."""
