"""Reads the requests of share groups and their responses, and returns the events that they cause. Pure.

An acknowledgement counts when the leader has confirmed it. BEHAVIOUR.md, section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import groupby
from typing import NamedTuple

from shareq.coordinator.share_state.state import KeyState
from shareq.model.errors import Errors
from shareq.model.events import (
    AcknowledgementRefused,
    AcknowledgementsSent,
    Event,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    ShareSessionClosed,
    ShareSessionOpened,
)
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import (
    FINAL_EPOCH,
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.states import AcknowledgeType
from shareq.proxy.holds import GroupRules, PartitionHolds
from shareq.proxy.messages import AcquiredResponse

Request = ShareFetchRequest | ShareAcknowledgeRequest | ShareGroupHeartbeatRequest
Response = AcquiredResponse | ShareFetchResponse | ShareAcknowledgeResponse | ShareGroupHeartbeatResponse

FENCED = (Errors.FENCED_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID)
LEADER_MOVED = (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH)

Partition = tuple[TopicId, int]
Assignment = tuple[tuple[str, tuple[int, ...]], ...]


class Exchange(NamedTuple):
    """A request that waits for its response."""

    number: int
    connection: int
    broker_id: int
    client_id: str
    request: Request


@dataclass(slots=True)
class _Session:
    """A share session: its connection, and the partitions that it fetches."""

    connection: int
    partitions: set[Partition] = field(default_factory=set)


class _Answer(NamedTuple):
    """What a leader answers for one partition."""

    error: Errors
    acknowledge_error: Errors


class ShareReader:
    """The members, share sessions and holds of all groups whose requests it reads.

    `topics`: the names of topics by id, from metadata; `rules`: those of groups whose configurations are known.
    `wake_at_ms`: the time of the next call of `tick`, None for never.
    """

    def __init__(self) -> None:
        self.topics: dict[TopicId, str] = {}
        self.rules: dict[str, GroupRules] = {}
        self._exchanges: dict[int, Exchange] = {}
        self._numbers = 0
        self._members: dict[tuple[str, str], tuple[int, Assignment]] = {}
        self._sessions: dict[tuple[int, str, str], _Session] = {}
        self._holds: dict[tuple[str, TopicId, int], PartitionHolds] = {}
        self._due: list[tuple[int, tuple[str, TopicId, int]]] = []

    @property
    def wake_at_ms(self) -> int | None:
        return self._due[0][0] if self._due else None

    # ---- messages ----------------------------------------------------------------------------------------------------

    def request(self, connection: int, broker_id: int, client_id: str, request: Request) -> Exchange:
        """A request passes to a broker."""
        self._numbers += 1
        exchange = Exchange(self._numbers, connection, broker_id, client_id, request)
        self._exchanges[exchange.number] = exchange
        for holds, batch in self._acknowledged(exchange):
            for first, end, kind in _ranges(batch):
                holds.begin(exchange.number, _member(request), first, end, kind)
        return exchange

    def response(self, exchange: Exchange, response: Response, now_ms: int) -> list[Event]:
        """The response passes to the client."""
        self._exchanges.pop(exchange.number, None)
        request = exchange.request
        if isinstance(request, ShareGroupHeartbeatRequest):
            assert isinstance(response, ShareGroupHeartbeatResponse)
            return list(self._heartbeat(exchange.client_id, request, response))
        assert not isinstance(response, ShareGroupHeartbeatResponse)
        return list(self._shared(exchange, request, response, now_ms))

    def disconnected(self, connection: int) -> list[Event]:
        """A client has lost its connection: the broker releases the share session that it used."""
        for exchange in [one for one in self._exchanges.values() if one.connection == connection]:
            del self._exchanges[exchange.number]
            self._settle(exchange)
        lost = [key for key, session in self._sessions.items() if session.connection == connection]
        return [event for key in lost for event in self._close(key, "connection lost")]

    def led_by(self, topic_id: TopicId, partition: int, broker_id: int) -> None:
        """Another broker leads the partition: the holds of the former leader are void."""
        for key in [key for key in self._holds if key[1:] == (topic_id, partition)]:
            if self._holds[key].broker_id != broker_id:
                del self._holds[key]

    def deleted(self, topic_id: TopicId) -> None:
        """A topic is deleted, and its records with it."""
        for key in [key for key in self._holds if key[1] == topic_id]:
            del self._holds[key]

    def read(self, at: SharePartitionKey, state: KeyState, log_start: int, now_ms: int) -> list[Event]:
        """A poll has read the durable state of a share-partition, and the log start, -1 if it is not known."""
        holds = self._holds.get(at)
        return [] if holds is None or state.start_offset < 0 else list(holds.read(state, log_start, now_ms))

    def beating(self, group: str) -> set[str]:
        """The members of a group whose heartbeats wait for responses."""
        requests = (exchange.request for exchange in self._exchanges.values())
        return {
            one.member_id for one in requests if isinstance(one, ShareGroupHeartbeatRequest) and one.group_id == group
        }

    def tick(self, now_ms: int) -> list[Event]:
        """End the locks that have run out."""
        due = set()
        while self._due and self._due[0][0] <= now_ms:
            due.add(heappop(self._due)[1])
        return [event for key in sorted(due) if key in self._holds for event in self._holds[key].expire(now_ms)]

    # ---- heartbeats --------------------------------------------------------------------------------------------------

    def _heartbeat(
        self, client_id: str, request: ShareGroupHeartbeatRequest, response: ShareGroupHeartbeatResponse
    ) -> Iterator[Event]:
        group, member = request.group_id, response.member_id or request.member_id
        key, error = (group, member), response.error_code
        epoch = request.member_epoch if error else response.member_epoch
        if error in FENCED or (not error and request.member_epoch == FINAL_EPOCH):
            self._members.pop(key, None)
            yield MemberLeft(group, member, "fenced" if error else "left")
        elif not error:
            yield from self._accepted(key, client_id, request, response)
        yield HeartbeatReceived(group, member, epoch, error)

    def _accepted(
        self,
        key: tuple[str, str],
        client_id: str,
        request: ShareGroupHeartbeatRequest,
        response: ShareGroupHeartbeatResponse,
    ) -> Iterator[Event]:
        """The coordinator accepts a member. No assignment in the response: the former one stays."""
        if request.subscribed_topic_names is not None and key not in self._members:
            yield MemberJoined(*key, client_id, request.subscribed_topic_names)
        before = self._members.get(key)
        assignment: Assignment = before[1] if before else ()
        if response.assignment is not None:
            given = response.assignment.topic_partitions
            assignment = tuple((self._name(topic.topic_id), topic.partitions) for topic in given)
        if before != (response.member_epoch, assignment):
            self._members[key] = (response.member_epoch, assignment)
            yield MemberReconciled(*key, response.member_epoch, assignment)

    # ---- share fetches and acknowledgements --------------------------------------------------------------------------

    def _shared(
        self,
        exchange: Exchange,
        request: ShareFetchRequest | ShareAcknowledgeRequest,
        response: AcquiredResponse | ShareFetchResponse | ShareAcknowledgeResponse,
        now_ms: int,
    ) -> Iterator[Event]:
        self._settle(exchange)
        deadline_ms = now_ms + response.acquisition_lock_timeout_ms
        answers = dict(self._answers(response))
        yield from self._acknowledge(exchange, response.error_code, answers, deadline_ms)
        yield from self._leaders(response)
        if response.error_code:
            return
        session = (exchange.broker_id, request.group_id or "", request.member_id or "")
        if isinstance(request, ShareFetchRequest):
            yield from self._open(session, exchange.connection, request)
        if not isinstance(response, ShareAcknowledgeResponse):
            yield from self._acquire(session, response, deadline_ms)
        if request.share_session_epoch == FINAL_EPOCH:
            yield from self._close(session, "closed")

    @staticmethod
    def _answers(
        response: AcquiredResponse | ShareFetchResponse | ShareAcknowledgeResponse,
    ) -> Iterator[tuple[Partition, _Answer]]:
        for topic in response.responses:
            for partition in topic.partitions:
                error = partition.error_code
                of_acks = getattr(partition, "acknowledge_error_code", error)
                yield (topic.topic_id, partition.partition_index), _Answer(error, of_acks)

    def _acknowledge(
        self, exchange: Exchange, refused: Errors, answers: dict[Partition, _Answer], deadline_ms: int
    ) -> Iterator[Event]:
        """The answers to the acknowledgements of a request, by partition."""
        request = exchange.request
        assert not isinstance(request, ShareGroupHeartbeatRequest)
        group, member = request.group_id or "", request.member_id or ""
        for topic in request.topics:
            for partition in topic.partitions:
                batches = partition.acknowledgement_batches
                at = (topic.topic_id, partition.partition_index)
                answer = answers.get(at)
                if not batches or (answer is None and not refused):
                    continue
                error = refused or (answer.acknowledge_error if answer else Errors.NONE)
                where = (group, self._name(topic.topic_id), partition.partition_index)
                if error:
                    yield AcknowledgementRefused(*where, member, error)
                else:
                    yield from self._confirm((group, *at), member, batches, deadline_ms)
                yield AcknowledgementsSent(group, member, *where[1:], _counts(batches), error)

    def _confirm(
        self, key: tuple[str, TopicId, int], member: str, batches: Iterable[AcknowledgementBatch], deadline_ms: int
    ) -> Iterator[Event]:
        holds = self._holds.get(key)
        for batch in batches if holds else ():
            for first, end, kind in _ranges(batch):
                assert holds is not None
                yield from holds.acknowledge(member, first, end, kind, deadline_ms)

    def _leaders(self, response: AcquiredResponse | ShareFetchResponse | ShareAcknowledgeResponse) -> Iterator[Event]:
        """The leaders that a former leader names."""
        for topic in response.responses:
            for partition in topic.partitions:
                new = partition.current_leader
                if partition.error_code in LEADER_MOVED and new.leader_id >= 0 and topic.topic_id in self.topics:
                    at = (self.topics[topic.topic_id], partition.partition_index)
                    yield LeaderElected(*at, new.leader_id, new.leader_epoch)

    def _open(self, key: tuple[int, str, str], connection: int, request: ShareFetchRequest) -> Iterator[Event]:
        """Open the share session of a fetch, or change its partitions."""
        if request.share_session_epoch == 0 or (key not in self._sessions and request.share_session_epoch > 0):
            self._sessions[key] = _Session(connection)
            yield ShareSessionOpened(*key[1:])
        session = self._sessions.get(key)
        if session is not None:
            session.partitions |= {(t.topic_id, p.partition_index) for t in request.topics for p in t.partitions}
            session.partitions -= {(t.topic_id, p) for t in request.forgotten_topics_data for p in t.partitions}

    def _acquire(
        self, session: tuple[int, str, str], response: AcquiredResponse | ShareFetchResponse, deadline_ms: int
    ) -> Iterator[Event]:
        broker_id, group, member = session
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.acquired_records:
                    holds = self._holds_at(broker_id, (group, topic.topic_id, partition.partition_index))
                    for first, last, count in map(_acquired, partition.acquired_records):
                        yield from holds.acquire(member, first, last + 1, count, deadline_ms)

    def _close(self, key: tuple[int, str, str], reason: str) -> Iterator[Event]:
        """The broker ends a share session: it releases the member's records of the partitions in it."""
        session = self._sessions.pop(key, None)
        if session is None:
            return
        broker_id, group, member = key
        for at in sorted(session.partitions):
            holds = self._holds.get((group, *at))
            if holds is not None and holds.broker_id == broker_id:
                yield from holds.release(member)
        yield ShareSessionClosed(group, member, reason)

    # ---- holds -------------------------------------------------------------------------------------------------------

    def _holds_at(self, broker_id: int, key: tuple[str, TopicId, int]) -> PartitionHolds:
        """The holds at this leader; those of another one are void."""
        found = self._holds.get(key)
        if found is None or found.broker_id != broker_id:
            group, topic_id, partition = key
            found = self._holds[key] = PartitionHolds(
                (group, self._name(topic_id), partition),
                broker_id,
                lambda at_ms: heappush(self._due, (at_ms, key)),
                lambda: self.rules.get(group, _DEFAULT_RULES),
            )
        return found

    def _acknowledged(self, exchange: Exchange) -> Iterator[tuple[PartitionHolds, AcknowledgementBatch]]:
        request = exchange.request
        if isinstance(request, ShareGroupHeartbeatRequest):
            return
        for topic in request.topics:
            for partition in topic.partitions:
                holds = self._holds.get((request.group_id or "", topic.topic_id, partition.partition_index))
                for batch in partition.acknowledgement_batches if holds else ():
                    assert holds is not None
                    yield holds, batch

    def _settle(self, exchange: Exchange) -> None:
        for holds, batch in self._acknowledged(exchange):
            holds.settle(exchange.number, batch.first_offset, batch.last_offset + 1)

    def _name(self, topic_id: TopicId) -> str:
        return self.topics.get(topic_id, topic_id)


_DEFAULT_RULES = GroupRules()


def _member(request: Request) -> str:
    return request.member_id or ""


def _acquired(batch: object) -> tuple[int, int, int]:
    return batch.first_offset, batch.last_offset, batch.delivery_count  # type: ignore[attr-defined]


def _ranges(batch: AcknowledgementBatch) -> Iterator[tuple[int, int, int]]:
    """The runs of equal types, half-open. One type is that of all offsets."""
    first, kinds = batch.first_offset, batch.acknowledge_types
    if len(kinds) == 1:
        yield first, batch.last_offset + 1, kinds[0]
        return
    for kind, run in groupby(kinds):
        size = len(list(run))
        yield first, first + size, kind
        first += size


def _counts(batches: Iterable[AcknowledgementBatch]) -> tuple[int, ...]:
    """Offsets by type; a type that Kafka does not know is not counted."""
    counts: Counter[int] = Counter()
    for batch in batches:
        if len(batch.acknowledge_types) == 1:
            counts[batch.acknowledge_types[0]] += batch.last_offset - batch.first_offset + 1
        else:
            counts.update(batch.acknowledge_types)
    return tuple(counts[kind] for kind in AcknowledgeType)
