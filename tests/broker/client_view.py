"""What clients see of a share group, and the rules that it has to obey: a checker without the journal.

The requests of share consumers and their answers are intervals of time: a broker acquires or acknowledges at some
moment between the two. A rule is violated only if it is for every such moment.

1. A record is finished once: one acknowledgement of it that accepts, rejects or skips it succeeds.
2. After that, no fetch that begins later acquires it.
3. Within the duration of a lock no other fetch acquires the record, unless it was given back.
4. Each acquisition has a higher delivery count than the one before, up to the limit.
5. An offset has one value, and a value one offset.
6. In the end nothing is left: each record is accepted, or in the dead-letter queue. It is there once, and not both,
   unless a leader was lost after it had written the letter and before that was durable. Without a queue a record may
   have been rejected, or have reached the limit.

Rules 3 and 4 do not hold over a change of leaders, nor when members of the group have left: acquisitions are not
durable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shareq.client.calls import Calls, OnAnswer
from shareq.consumer import ShareConsumer
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.base import Request, Response
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.states import AcknowledgeType

Place = tuple[TopicIdPartition, int]
"""A share-partition and an offset."""

FINISHING = frozenset({AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT})
REFUSED = frozenset({Errors.INVALID_RECORD_STATE, Errors.SHARE_SESSION_NOT_FOUND, Errors.INVALID_SHARE_SESSION_EPOCH})
"""The results of acknowledgements without effect. After others the write may be durable, though its leader is lost."""
NEVER_MS = 1 << 62


class Letter(NamedTuple):
    """A record in the dead-letter queue. `exceeded`: delivered too often, not rejected."""

    delivery_count: int
    exceeded: bool


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and its answer. `error`: of an answer without a response; None: there is no answer yet."""

    member: str
    node: int
    epoch: int
    sent_ms: int
    answered_ms: int = NEVER_MS
    error: Errors | None = None

    @property
    def unknown(self) -> bool:
        """True if the broker may have received the request, or not."""
        return self.error is not Errors.NONE


@dataclass(slots=True, eq=False)
class Acquisition:
    exchange: Exchange
    delivery_count: int


@dataclass(slots=True, eq=False)
class Acknowledged:
    """An acknowledgement of one record; `error` None: its result is unknown."""

    exchange: Exchange
    kind: int
    error: Errors | None = None


@dataclass(slots=True)
class Sight:
    """What all clients of a group have seen. `changes_ms`: when leaders have changed."""

    now_ms: Callable[[], int]
    lock_ms: int
    limit: int
    changes_ms: list[int] = field(default_factory=list)
    empty_ms: list[tuple[int, int]] = field(default_factory=list)
    """The times without a member, as intervals; the last one may be open."""
    ended_ms: dict[str, int] = field(default_factory=dict)
    exchanges: dict[tuple[str, int], list[Exchange]] = field(default_factory=lambda: defaultdict(list))
    acquired: dict[Place, list[Acquisition]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[Place, list[Acknowledged]] = field(default_factory=lambda: defaultdict(list))
    broken: list[str] = field(default_factory=list)

    def watch(self, consumer: ShareConsumer) -> None:
        """Follow the share sessions of a consumer."""
        if self.empty_ms and self.empty_ms[-1][1] == NEVER_MS:
            self.empty_ms[-1] = (self.empty_ms[-1][0], self.now_ms())
        fetcher = consumer._core._fetcher
        fetcher._calls = _WatchedCalls(fetcher._calls, self, consumer.member_id())  # type: ignore[assignment]

    # ---- what happens ------------------------------------------------------------------------------------------------

    def leaders_change(self) -> None:
        self.changes_ms.append(self.now_ms())

    def ended(self, member: str, *, last: bool) -> None:
        """A member has crashed or left."""
        self.ended_ms[member] = self.now_ms()
        if last:
            self.empty_ms.append((self.now_ms(), NEVER_MS))

    def sent(self, member: str, node: int, request: Request) -> tuple[Exchange, dict[TopicIdPartition, list[Any]]]:
        """Note a request; returns its acknowledgements by partition."""
        assert isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest)
        exchange = Exchange(member, node, request.share_session_epoch, self.now_ms())
        self.exchanges[member, node].append(exchange)
        made: dict[TopicIdPartition, list[Any]] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                key = TopicIdPartition(topic.topic_id, partition.partition_index)
                for batch in partition.acknowledgement_batches:
                    made.setdefault(key, []).extend(self._acknowledgements(key, batch, exchange))
        return exchange, made

    def _acknowledgements(
        self, key: TopicIdPartition, batch: AcknowledgementBatch, exchange: Exchange
    ) -> list[Acknowledged]:
        count = batch.last_offset - batch.first_offset + 1
        kinds = batch.acknowledge_types * count if len(batch.acknowledge_types) == 1 else batch.acknowledge_types
        made = []
        for offset, kind in zip(range(batch.first_offset, batch.last_offset + 1), kinds, strict=True):
            one = Acknowledged(exchange, kind)
            self.acknowledged[key, offset].append(one)
            made.append(one)
        return made

    def answered(
        self,
        exchange: Exchange,
        made: Mapping[TopicIdPartition, list[Acknowledged]],
        response: Response | None,
        error: Errors,
    ) -> None:
        exchange.answered_ms = self.now_ms()
        exchange.error = error
        if response is None:
            return
        assert isinstance(response, ShareFetchResponse | ShareAcknowledgeResponse)
        whole, errors = response.error_code, dict[TopicIdPartition, Errors]()
        for topic in response.responses:
            for partition in topic.partitions:
                key = TopicIdPartition(topic.topic_id, partition.partition_index)
                if isinstance(partition, ShareFetchResponse.Partition):
                    errors[key] = partition.acknowledge_error_code
                    self._acquired(key, partition, exchange)
                else:
                    errors[key] = partition.error_code
        for key, ones in made.items():
            for one in ones:
                one.error = whole or errors.get(key)

    def _acquired(self, key: TopicIdPartition, partition: ShareFetchResponse.Partition, exchange: Exchange) -> None:
        for run in partition.acquired_records:
            for offset in range(run.first_offset, run.last_offset + 1):
                one = Acquisition(exchange, run.delivery_count)
                self._check(key, offset, one)
                self.acquired[key, offset].append(one)

    # ---- rules -------------------------------------------------------------------------------------------------------

    def _check(self, key: TopicIdPartition, offset: int, one: Acquisition) -> None:
        """Rules 2 to 4, for a new acquisition."""
        where, began_ms, end_ms = f"{key.partition}-{offset}", one.exchange.sent_ms, one.exchange.answered_ms
        if not 1 <= one.delivery_count <= self.limit:
            self.broken.append(f"{where}: delivery count {one.delivery_count}, the limit is {self.limit}")
        for done in self.acknowledged.get((key, offset), ()):
            if done.kind in FINISHING and done.error is Errors.NONE and done.exchange.answered_ms < began_ms:
                self.broken.append(f"{where}: acquired at {end_ms} although it was finished by {done}")
        for before in self.acquired.get((key, offset), ()):
            if before.exchange.answered_ms > began_ms or self._moved(before.exchange.sent_ms, end_ms):
                continue
            if before.delivery_count >= one.delivery_count and not self._left(before.exchange.sent_ms, end_ms):
                self.broken.append(f"{where}: delivery count {one.delivery_count} after {before}")
            held = end_ms < before.exchange.sent_ms + self.lock_ms
            if held and not self._given_back(key, offset, before.exchange, end_ms):
                self.broken.append(f"{where}: {one} while it was locked by {before}")

    def _was_done(self, key: TopicIdPartition, offset: int, acknowledged: Acknowledged) -> bool:
        """True if an acknowledgement has succeeded, and its sender has certainly held the record until then: Kafka
        accepts acknowledgements below the start offset without effect."""
        began_ms, until_ms = acknowledged.exchange.sent_ms, acknowledged.exchange.answered_ms
        return acknowledged.error is Errors.NONE and any(
            one.exchange.member == acknowledged.exchange.member
            and one.exchange.answered_ms <= began_ms
            and until_ms < one.exchange.sent_ms + self.lock_ms
            and not self._moved(one.exchange.sent_ms, until_ms)
            for one in self.acquired.get((key, offset), ())
        )

    def _left(self, from_ms: int, to_ms: int) -> bool:
        """True if a member ended meanwhile: a broker drops share-partitions with the last member that it knows."""
        return any(from_ms <= at_ms <= to_ms for at_ms in self.ended_ms.values())

    def _moved(self, from_ms: int, to_ms: int) -> bool:
        changed = any(from_ms <= at_ms <= to_ms for at_ms in self.changes_ms)
        return changed or any(from_ms <= end_ms and began_ms <= to_ms for began_ms, end_ms in self.empty_ms)

    def _given_back(self, key: TopicIdPartition, offset: int, holder: Exchange, until_ms: int) -> bool:
        """True if the holder may have given the record back: by an acknowledgement, or the end of its session."""
        member = holder.member
        acknowledged = any(
            one.exchange.member == member and one.exchange.sent_ms >= holder.answered_ms
            for one in self.acknowledged.get((key, offset), ())
        )
        return (
            acknowledged
            or self.ended_ms.get(member, NEVER_MS) <= until_ms
            or any(
                other.epoch <= 0 or other.error not in (None, Errors.NONE)
                for other in self.exchanges[member, holder.node]
                if holder.sent_ms < other.sent_ms <= until_ms or other.answered_ms > holder.answered_ms
            )
        )

    def check_finished_once(self) -> None:
        """Rule 1."""
        for (key, offset), ones in self.acknowledged.items():
            finished = [one for one in ones if one.kind in FINISHING and self._was_done(key, offset, one)]
            if len(finished) > 1:
                self.broken.append(f"{key.partition}-{offset}: finished {len(finished)} times: {finished}")

    def check_nothing_is_left(
        self, key: TopicIdPartition, offsets: Collection[int], letters: Mapping[int, list[Letter]] | None
    ) -> None:
        """Rule 6. `letters` by offset; None: there is no queue."""
        for offset in offsets:
            ones = self.acknowledged.get((key, offset), [])
            where = f"{key.partition}-{offset}"
            accepted = {one.error for one in ones if one.kind == AcknowledgeType.ACCEPT}
            rejected = {one.error for one in ones if one.kind == AcknowledgeType.REJECT}
            may_be_rejected, may_be_accepted = not rejected <= REFUSED, not accepted <= REFUSED
            sent = (letters or {}).get(offset, [])
            if len(sent) > 1 + len(self.changes_ms):
                self.broken.append(f"{where}: {sent}")
            if (
                sent
                and not self.changes_ms
                and any(one.kind == AcknowledgeType.ACCEPT and self._was_done(key, offset, one) for one in ones)
            ):
                self.broken.append(f"{where}: accepted, and {sent[0]}")
            if sent and not (sent[0].delivery_count >= self.limit if sent[0].exceeded else may_be_rejected):
                self.broken.append(f"{where}: {sent[0]} without a reason")
            given_up = letters is None and (may_be_rejected or self._may_be_at_limit(key, offset))
            if not (sent or given_up or may_be_accepted):
                self.broken.append(f"{where}: lost: {ones}")

    def _may_be_at_limit(self, key: TopicIdPartition, offset: int) -> bool:
        """True if the record may have been delivered up to the limit: an unanswered fetch may have acquired it."""
        seen = max((one.delivery_count for one in self.acquired.get((key, offset), ())), default=0)
        unseen = sum(exchange.unknown for exchanges in self.exchanges.values() for exchange in exchanges)
        return seen + unseen >= self.limit


class _WatchedCalls:
    """The calls of a consumer's share sessions."""

    def __init__(self, calls: Calls, sight: Sight, member: str) -> None:
        self._calls, self._sight, self._member = calls, sight, member

    def send(self, node: int, request: Request, on_answer: OnAnswer) -> None:
        exchange, made = self._sight.sent(self._member, node, request)

        def answered(response: Response | None, error: Errors, now_ms: int) -> None:
            self._sight.answered(exchange, made, response, error)
            on_answer(response, error, now_ms)

        self._calls.send(node, request, answered)
