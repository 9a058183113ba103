"""A naive share group behind a fake cluster, with dicts by offset, and consumers of it."""

from __future__ import annotations

from typing import Any

from shareq.consumer import ShareConsumer
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import MemberAssignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.records import RecordBatch
from shareq.model.states import AcknowledgeType, AcquireMode
from tests.client.fake import Fake, Later

AVAILABLE, ACQUIRED, DONE = "available", "acquired", "done"
NEXT_STATE = {0: DONE, 1: DONE, 2: AVAILABLE, 3: DONE, 4: ACQUIRED}
INTERVAL_MS = 5000


class FakeShareGroup:
    """Without `at_once` the first assignment is empty until the second heartbeat, as during an initialization."""

    def __init__(self, fake: Fake, *, at_once: bool = True) -> None:
        self.fake = fake
        self.at_once = at_once
        self.logs: dict[TopicIdPartition, list[RecordBatch]] = {}
        self.states: dict[TopicIdPartition, dict[int, list[Any]]] = {}
        self.sessions: dict[int, set[TopicIdPartition]] = {}
        self.assignment: tuple[MemberAssignment.TopicPartitions, ...] = ()
        self.hidden: set[int] = set()  # offsets that the isolation level hides
        fake.answers[ShareGroupHeartbeatRequest] = self.heartbeat
        fake.answers[ShareFetchRequest] = self.fetch
        fake.answers[ShareAcknowledgeRequest] = self.acknowledge

    def append(self, topic: str, partition: int, *batches: RecordBatch) -> None:
        key = TopicIdPartition(self.fake.ids[topic], partition)
        self.logs.setdefault(key, []).extend(batches)
        for batch in batches:
            for offset in range(batch.base_offset, batch.last_offset + 1):
                self.states.setdefault(key, {})[offset] = [AVAILABLE, 0]

    def state(self, topic: str, partition: int = 0) -> dict[int, str]:
        states = self.states[TopicIdPartition(self.fake.ids[topic], partition)]
        return {offset: state for offset, (state, _) in states.items()}

    def expire(self) -> None:
        """Expire all locks."""
        for states in self.states.values():
            for cell in states.values():
                cell[0] = AVAILABLE if cell[0] == ACQUIRED else cell[0]

    # ---- the coordinator ---------------------------------------------------------------------------------------------

    def heartbeat(self, fake: Fake, node: int, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        if request.member_epoch == -1:
            return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=-1)
        if request.subscribed_topic_names is not None:
            existing = [name for name in request.subscribed_topic_names if name in fake.topics]
            self.assignment = tuple(
                MemberAssignment.TopicPartitions(
                    topic_id=fake.ids[name], partitions=tuple(range(len(fake.topics[name])))
                )
                for name in existing
            )
        joins = request.member_epoch == 0
        given = self.assignment if self.at_once or not joins else ()
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=2 if joins else 3,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=MemberAssignment(topic_partitions=given),
        )

    # ---- the leader --------------------------------------------------------------------------------------------------

    def fetch(self, fake: Fake, node: int, request: ShareFetchRequest) -> Any:
        if request.share_session_epoch == -1:
            self._end_session(node)
            return ShareFetchResponse()
        members = self.sessions.setdefault(node, set())
        if request.share_session_epoch == 0:
            members.clear()
        results = self._acknowledged(request)
        members |= {TopicIdPartition(t.topic_id, p.partition_index) for t in request.topics for p in t.partitions}
        members -= {TopicIdPartition(t.topic_id, i) for t in request.forgotten_topics_data for i in t.partitions}
        responses: list[ShareFetchResponse.Topic] = []
        left = request.max_records
        for key in sorted(members):
            records, acquired = self._acquire(key, left, request.share_acquire_mode)
            left -= sum(a.last_offset - a.first_offset + 1 for a in acquired)
            if acquired or key in results:
                partition = ShareFetchResponse.Partition(
                    partition_index=key.partition,
                    acknowledge_error_code=results.get(key, Errors.NONE),
                    records=records,
                    acquired_records=acquired,
                )
                responses.append(ShareFetchResponse.Topic(topic_id=key.topic_id, partitions=(partition,)))
        answer = ShareFetchResponse(responses=tuple(responses), acquisition_lock_timeout_ms=30000)
        return answer if left < request.max_records else Later(request.max_wait_ms, answer)

    def _acquire(
        self, key: TopicIdPartition, max_records: int, mode: int
    ) -> tuple[tuple[RecordBatch, ...], tuple[AcquiredRecords, ...]]:
        states = self.states.get(key, {})
        taken: list[int] = []
        ends = {batch.last_offset for batch in self.logs.get(key, ())}
        for offset, cell in states.items():
            if len(taken) >= max_records and (mode == AcquireMode.RECORD_LIMIT or taken[-1] in ends):
                break
            if cell[0] == AVAILABLE:
                cell[:] = [ACQUIRED, cell[1] + 1]
                taken.append(offset)
        batches = tuple(b for b in self.logs.get(key, ()) if any(b.base_offset <= o <= b.last_offset for o in taken))
        return batches, tuple(self._ranges(taken, states))

    def _ranges(self, taken: list[int], states: dict[int, list[Any]]) -> list[AcquiredRecords]:
        ranges: list[list[int]] = []
        for offset in (o for o in taken if o not in self.hidden):
            count = states[offset][1]
            if ranges and ranges[-1][1] + 1 == offset and ranges[-1][2] == count:
                ranges[-1][1] = offset
            else:
                ranges.append([offset, offset, count])
        return [AcquiredRecords(first_offset=f, last_offset=e, delivery_count=c) for f, e, c in ranges]

    def acknowledge(self, fake: Fake, node: int, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
        results = self._acknowledged(request)
        if request.share_session_epoch == -1:
            self._end_session(node)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=30000,
            responses=tuple(
                ShareAcknowledgeResponse.Topic(
                    topic_id=key.topic_id,
                    partitions=(ShareAcknowledgeResponse.Partition(partition_index=key.partition, error_code=error),),
                )
                for key, error in results.items()
            ),
        )

    def _end_session(self, node: int) -> None:
        for key in self.sessions.pop(node, set()):
            for cell in self.states.get(key, {}).values():
                cell[0] = AVAILABLE if cell[0] == ACQUIRED else cell[0]

    def _acknowledged(self, request: Any) -> dict[TopicIdPartition, Errors]:
        return {
            TopicIdPartition(topic.topic_id, partition.partition_index): self._apply(
                TopicIdPartition(topic.topic_id, partition.partition_index), partition.acknowledgement_batches
            )
            for topic in request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches
        }

    def _apply(self, key: TopicIdPartition, batches: tuple[AcknowledgementBatch, ...]) -> Errors:
        types_by_offset = spread(batches)
        states = self.states[key]
        if any(states[offset][0] != ACQUIRED for offset in types_by_offset):
            return Errors.INVALID_RECORD_STATE
        for offset, verdict in types_by_offset.items():
            states[offset][0] = NEXT_STATE[verdict]
        return Errors.NONE


def spread(batches: tuple[AcknowledgementBatch, ...]) -> dict[int, int]:
    """Acknowledge types by offset; asserts that the batches ascend and do not overlap."""
    types_by_offset: dict[int, int] = {}
    last = -1
    for batch in batches:
        assert last < batch.first_offset <= batch.last_offset, batches
        last = batch.last_offset
        offsets = range(batch.first_offset, batch.last_offset + 1)
        types = batch.acknowledge_types
        assert len(types) in (1, len(offsets)), batch
        types_by_offset |= zip(offsets, types if len(types) > 1 else types * len(offsets), strict=True)
    return types_by_offset


def acks_of(request: Any) -> str:
    """Acknowledgements of a request in the notation of BEHAVIOUR.md: `0:1 1:2 3-4:1`."""
    found = []
    for topic in request.topics:
        for partition in topic.partitions:
            for b in partition.acknowledgement_batches:
                where = f"{b.first_offset}" if b.first_offset == b.last_offset else f"{b.first_offset}-{b.last_offset}"
                types = b.acknowledge_types
                found.append(f"{where}:{types[0] if len(types) == 1 else [int(t) for t in types]}")
    return " ".join(found)


def consumer_on(fake: Fake, *topics: str, **conf: Any) -> ShareConsumer:
    """A consumer of `topics`; configuration keys with underscores for dots."""
    keys = {key.replace("_", "."): value for key, value in conf.items()}
    consumer = ShareConsumer({"bootstrap.servers": fake.address, "group.id": "g", **keys})
    if topics:
        consumer.subscribe(list(topics))
    return consumer


def explicit(fake: Fake, *topics: str, **conf: Any) -> ShareConsumer:
    return consumer_on(fake, *topics, share_acknowledgement_mode="explicit", **conf)


def offsets(messages: Any) -> list[int]:
    return [message.offset() for message in messages]


ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)
