"""The share consumer as a state machine, driven by calls of the application, responses of brokers, and time.

Calls of the application (`begin_poll`, `collect`, `commit`, ...) have exclusive access to the actor; `handle` takes
responses and ticks. Source: KIP-932, "Client". Rules: BEHAVIOUR.md in this folder.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.config import ClientConfig
from shareq.client.message import Message
from shareq.client.metadata import Metadata
from shareq.client.patience import over_tcp
from shareq.client.share_group import HandOver, ShareGroupMetadata
from shareq.client.topic_partition import TopicPartition
from shareq.consumer.acknowledgements import Acknowledgements, MemberIdentity, PendingCommit
from shareq.consumer.acknowledger import Acknowledger
from shareq.consumer.empty_poll import EmptyPollHints
from shareq.consumer.fetch_buffer import AcquiredPiece, FetchBuffer
from shareq.consumer.membership import Membership
from shareq.consumer.metrics import FetchMetrics, PollMetrics
from shareq.consumer.session_handler import FetchLimits
from shareq.consumer.share_fetcher import ShareFetcher
from shareq.model.actor import Answer, Effect
from shareq.model.actor import Message as ActorMessage
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException, WakeupException
from shareq.model.ids import TopicIdPartition, random_id
from shareq.model.states import AcquireMode

FOR_EVER_MS = 1 << 62


class ShareConsumerCore:
    """A share consumer without I/O. `acknowledger` has the records held by the application."""

    def __init__(self, config: ClientConfig, rng: random.Random) -> None:
        self.client_id: str = config["client.id"]
        self._max_poll_records: int = config["max.poll.records"]
        self._async_timeout_ms: int = config["default.api.timeout.ms"]
        self._calls = Calls(config["request.timeout.ms"])
        self.tcp_address = over_tcp(config["bootstrap.servers"])
        backoff = Backoff(rng, config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._metadata = Metadata(self._calls, backoff, self._metadata_changed)
        self._buffer = FetchBuffer(check_crcs=config["check.crcs"])
        self._drops_expired = config["share.expired.records"] == "drop"
        self._membership = Membership(
            self._calls,
            backoff,
            config["group.id"],
            random_id(rng),
            rack_id=config["client.rack"] or None,
            max_poll_interval_ms=config["max.poll.interval.ms"],
            on_assignment=self._assigned,
        )
        identity = MemberIdentity(config["group.id"], self.member_id, self.client_id)
        self._fetch_metrics = FetchMetrics()
        self._fetcher = ShareFetcher(
            self._calls,
            backoff,
            self._metadata,
            self._buffer,
            identity=identity,
            limits=_limits(config),
            metrics=self._fetch_metrics,
            holds=self._holds,
            on_settled=self._settled,
            on_error=self._failed,
        )
        self.acknowledger = Acknowledger(
            self._calls,
            identity,
            self._fetch_metrics,
            self._buffer,
            explicit=config["share.acknowledgement.mode"] == "explicit",
            send=self._fetcher.acknowledge,
            lost=self._fetcher.filler.lost,
        )
        self._poll_metrics = PollMetrics()
        self._hints = EmptyPollHints(self._metadata, self._membership, self._calls, self.tcp_address)
        self._polled_pieces: list[AcquiredPiece] = []
        self._error: KafkaError | None = None
        self._woken = False
        self._closing = False

    # ---- the actor ---------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> Calls:
        return self._calls

    @property
    def wake_at_ms(self) -> int | None:
        return earliest(self._membership.wake_at_ms, self._fetcher.wake_at_ms, self._metadata.wake_at_ms)

    def handle(self, message: ActorMessage, now_ms: int) -> list[Effect]:
        if isinstance(message, Answer):
            self._calls.answered(message, now_ms)
            if message.error is Errors.UNSUPPORTED_VERSION:  # the broker is too old: a retry cannot succeed
                self._error = KafkaError(message.error, message.reason or None)
        self._pump(now_ms)
        return self._calls.take_effects()

    def _pump(self, now_ms: int) -> None:
        """Send all due requests. The leave heartbeat follows after all sessions are closed."""
        if self._closing and self._fetcher.closed and not self._membership.gone:
            self._membership.leave()
        self._membership.pump(now_ms)
        self._fetcher.pump(now_ms)
        self._metadata.pump(now_ms)

    # ---- subscription ------------------------------------------------------------------------------------------------

    @property
    def subscription(self) -> tuple[str, ...]:
        return self._membership.topics

    def subscribe(self, topics: tuple[str, ...], now_ms: int) -> None:
        """Replace the subscription; an empty one leaves the group. Buffered records of other topics are released."""
        if topics:
            self._membership.subscribe(topics)
        else:
            self._membership.leave()
            self._fetcher.fetching = False
        self._fetcher.subscribe(frozenset(topics))
        self._pump(now_ms)

    def _assigned(self, assigned: frozenset[TopicIdPartition]) -> None:
        self._fetcher.assign(assigned)
        self._metadata.want_ids({key.topic_id for key in assigned if key.topic_id not in self._metadata.by_id})
        self._resolve()

    def _metadata_changed(self) -> None:
        self._fetcher.replan()
        self._resolve()

    def _resolve(self) -> None:
        """Confirm the assignment as soon as one of its topics is in the metadata; the others follow later."""
        assigned = self._membership.assigned
        if not assigned or any(key.topic_id in self._metadata.by_id for key in assigned):
            self._membership.resolved()

    # ---- poll --------------------------------------------------------------------------------------------------------

    def begin_poll(self, now_ms: int) -> None:
        """Acknowledge the records of the last poll, check the state, and start fetching."""
        self._poll_metrics.began(now_ms)
        self._hints.poll_began(now_ms)
        try:
            if self.acknowledger.explicit and (count := self.acknowledger.unacknowledged):
                raise IllegalStateException(
                    f"{count} records of the last poll are not acknowledged: acknowledge them before the next poll"
                )
            self.acknowledger.take()
            if not self.subscription:
                raise IllegalStateException("Consumer is not subscribed to any topics")
            self._raise_error()
            self._membership.polled()
            self._metadata.want_names(name for name in self.subscription if not self._knows(name))
            if self._drops_expired:
                self._buffer.drop_expired(now_ms)
            self._fetcher.fetching = not self._buffer
        finally:
            self._pump(now_ms)

    def _knows(self, topic: str) -> bool:
        return topic in self._metadata.topics or topic in self._metadata.errors

    def poll_ready(self) -> bool:
        """True if a poll in progress can return or raise."""
        waiting = self._buffer or self.acknowledger.renewals or self._woken
        return bool(waiting or self._error or self._membership.error or self._calls.unreachable)

    def collect(self, now_ms: int) -> list[Sequence[Message]]:
        """The records of this poll: renewed ones, then fetched ones. Empty if there were only gaps.

        `max.poll.records` bounds only the fetched records: otherwise a consumer that renews that many records in each
        round would never receive another one.
        """
        self.raise_if_woken()
        self._raise_error()
        runs = self.acknowledger.take_renewed(self._fetcher.filler.topics)
        self._polled_pieces = polled = self.acknowledger.acquired_again
        for unpacked in self._buffer.take(self._max_poll_records):
            polled.append(unpacked.piece)
            self.acknowledger.deliver(unpacked)
            runs.append(unpacked.messages)
        runs = [messages for messages in runs if messages]
        self._hints.delivered |= bool(runs)
        if not runs:
            self.acknowledger.take()  # the next request acknowledges the gaps
            self._polled_pieces = []
            self._fetcher.fetching = not self._buffer
            self._pump(now_ms)
        return runs

    def empty_poll_hint(self, now_ms: int) -> str | None:
        """Why a poll with a time-out returned no record; None if there is no new reason."""
        return self._hints.next(self.subscription, now_ms)

    def put_back(self, now_ms: int) -> None:
        """Undo the last `collect`, whose poll was interrupted: the next poll returns the records."""
        del now_ms
        self.acknowledger.put_back()
        self._buffer.put_back(self._polled_pieces)
        self._polled_pieces = []

    def end_poll(self, now_ms: int) -> tuple[()]:
        """The poll has ended; `max.poll.interval.ms` runs until the next one begins. Returns no effects."""
        self._membership.poll_ended(now_ms)
        self._poll_metrics.ended(now_ms)
        return ()

    def _raise_error(self) -> None:
        """Raise the error of a background request, once."""
        error = self._membership.error or self._error or self._calls.take_unreachable()
        if error is not None:
            self._membership.error = self._error = None
            raise KafkaException(error)

    def _settled(self, acknowledgements: Acknowledgements, error: Errors, now_ms: int) -> None:
        self.acknowledger.settled(acknowledgements, error, now_ms)

    def _holds(self, node: int) -> bool:
        """True if records of a node's session are buffered, or not yet acknowledged: its end would release them."""
        return self._buffer.holds(node) or self.acknowledger.holds(node)

    def _failed(self, error: KafkaError) -> None:
        self._error = error

    def wakeup(self) -> None:
        self._woken = True

    @property
    def woken(self) -> bool:
        return self._woken

    def raise_if_woken(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupException("wakeup() was called")

    # ---- commit ------------------------------------------------------------------------------------------------------

    def commit(self, timeout_ms: float | None, now_ms: int) -> PendingCommit:
        """Send acknowledgements (implicit mode: of all records) without a poll; `timeout_ms` bounds the retries."""
        commit = PendingCommit()
        deadline_ms = FOR_EVER_MS if timeout_ms is None else now_ms + int(timeout_ms)
        if self.acknowledger.take(deadline_ms=deadline_ms, commit=commit):
            self._pump(now_ms)
        return commit

    def commit_async(self, now_ms: int) -> None:
        if self.acknowledger.take(deadline_ms=now_ms + self._async_timeout_ms):
            self._pump(now_ms)

    # ---- close, and state to read ------------------------------------------------------------------------------------

    def begin_close(self, now_ms: int) -> None:
        """Send acknowledgements and close the sessions, which releases all other records, in implicit mode, too."""
        self.acknowledger.take_last()
        self._closing = True
        self._fetcher.close()
        self._pump(now_ms)

    def closed(self) -> bool:
        return self._fetcher.closed and self._membership.gone

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    def share_group_metadata(self, hand_over: HandOver) -> ShareGroupMetadata:
        """The group, the member and its epoch as of the last heartbeat."""
        membership = self._membership
        return ShareGroupMetadata(membership.group_id, membership.member_id, membership.member_epoch, hand_over)

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        return self._fetcher.acquisition_lock_timeout_ms

    def assignment(self) -> list[TopicPartition]:
        """The assigned partitions whose topics are in the metadata."""
        topics = self._metadata.by_id
        return sorted(
            TopicPartition(topics[topic_id].name, partition)
            for topic_id, partition in self._membership.assigned
            if topic_id in topics
        )

    def metrics(self, now_ms: int) -> dict[str, float]:
        sources = (self._poll_metrics, self._fetch_metrics, self._membership.metrics)
        return {name: value for source in sources for name, value in source.values(now_ms).items()}


def _limits(config: ClientConfig) -> FetchLimits:
    return FetchLimits(
        config["fetch.wait.max.ms"],
        config["fetch.min.bytes"],
        config["fetch.max.bytes"],
        config["max.poll.records"],
        AcquireMode[config["share.acquire.mode"].upper()],
    )
