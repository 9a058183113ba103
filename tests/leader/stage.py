"""A small broker around a share-partition leader: logs, a persister whose responses can be delayed or fail, a clock.

    stage = Stage(partitions=2)
    stage.produce(0, 10)                      # a batch of ten records
    member = stage.member("m")
    member.fetch("01")                        # session epoch 0, partitions 0 and 1
    member.fetch(acks={0: "0-9:1"}).acquired  # {}: no record is left

Effects are carried out in order, and their results are delivered in the same order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from shareq.leader import make_share_leader
from shareq.model.actor import (
    Answer,
    ClientContext,
    ConnectionClosed,
    FindOffset,
    ImageChanged,
    Incoming,
    LogGrew,
    LogRead,
    Message,
    OffsetFound,
    Persist,
    ReadLog,
    Respond,
    Tick,
)
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicId, TopicPartition
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from shareq.model.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    StateBatch,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.persister.combined_response import RESPONSES

TOPIC_ID = TopicId("T" * 22)
BROKER_ID = 0
PART = re.compile(r"(\d+)(?:-(\d+))?:(.*)")


def ack_batches(text: str) -> tuple[AcknowledgementBatch, ...]:
    """Acknowledgement batches of a text such as `"0-4:1 5-6:1,2"`."""
    batches = []
    for part in text.split():
        match = PART.fullmatch(part)
        assert match is not None, part
        first, last, types = match.groups()
        batches.append(
            AcknowledgementBatch(
                first_offset=int(first),
                last_offset=int(last or first),
                acknowledge_types=tuple(int(t) for t in types.split(",") if t),
            )
        )
    return tuple(batches)


class FakeLog:
    """The batches of one partition."""

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.start = 0
        self.end = 0
        self.stable: int | None = None
        self.error = Errors.NONE
        self.reads = 0
        self.keys = ""
        """One letter for each record from offset 0 on, "-" for none."""
        self.aborted: tuple[AbortedTransaction, ...] = ()

    def append(self, records: int, size: int, **header: int) -> None:
        fields = {"producer_id": -1, "attributes": 0, "max_timestamp": 0, **header}
        batch = RecordBatch(
            base_offset=self.end,
            last_offset=self.end + records - 1,
            leader_epoch=0,
            base_timestamp=0,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=records,
            data=b"x" * size,
            **fields,
        )
        self.batches.append(batch)
        self.end += records

    def cut(self, start: int) -> None:
        """Delete the records below `start`."""
        self.start = max(self.start, min(start, self.end))
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.start]

    def read(self, effect: ReadLog) -> LogRead:
        self.reads += 1
        stable = self.end if self.stable is None else self.stable
        limit = stable if effect.isolation_level else self.end
        if self.error or not self.start <= effect.offset <= self.end:
            return LogRead(effect.id, self.error or Errors.OFFSET_OUT_OF_RANGE, (), self.end, self.start, stable)
        found: list[RecordBatch] = []
        size = 0
        for batch in self.batches:
            useful = batch.base_offset < effect.end_offset or not found
            if batch.last_offset >= effect.offset and batch.base_offset < limit and useful:
                size += batch.size
                if found and size > effect.max_bytes:
                    break
                found.append(batch)
        read = LogRead(effect.id, Errors.NONE, tuple(found), self.end, self.start, stable)
        if effect.isolation_level:
            read = read._replace(aborted=self.aborted)
        if not effect.keys:
            return read
        keys = [(o, o + 1, self.keys[o].encode()) for b in found for o in range(b.base_offset, b.last_offset + 1)]
        return read._replace(keys=tuple(run for run in keys if run[2] != b"-"))


class FakeState:
    """Durable state of one share-partition, by record, as a share coordinator keeps it.

    Of two states of a record the one with the higher delivery count is kept, then the one with the higher state, in
    whatever order they were written.
    """

    def __init__(self) -> None:
        self.start_offset = -1
        self.records: dict[int, tuple[int, int]] = {}

    def write(self, part: WriteShareGroupStateRequest.Partition) -> None:
        self.start_offset = max(self.start_offset, part.start_offset)
        for batch in part.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                written = (batch.delivery_state, batch.delivery_count)
                stored = self.records.get(offset, written)
                self.records[offset] = max(written, stored, key=lambda record: record[::-1])
        self.records = {o: r for o, r in sorted(self.records.items()) if o >= self.start_offset}

    def batches(self) -> tuple[StateBatch, ...]:
        found: list[StateBatch] = []
        for offset, (state, count) in self.records.items():
            last = found[-1] if found else None
            if last and last.last_offset == offset - 1 and last[2:] == (state, count):
                found[-1] = last._replace(last_offset=offset)
            else:
                found.append(StateBatch(offset, offset, state, count))
        return tuple(found)


class SentRequest:
    """A sent request; `response` is None until its response arrives, which happens at most once."""

    def __init__(self, exchange_id: int) -> None:
        self.id = exchange_id
        self.response: Any = None

    @property
    def waiting(self) -> bool:
        return self.response is None

    @property
    def error(self) -> Errors:
        found = self.response.error_code
        assert isinstance(found, Errors)
        return found

    @property
    def parts(self) -> dict[int, Any]:
        """Partitions of the response by index."""
        return {part.partition_index: part for topic in self.response.responses for part in topic.partitions}

    @property
    def acquired(self) -> dict[int, list[tuple[int, int, int]]]:
        """Acquired runs (first, last, delivery count) of the partitions that have any."""
        return {
            index: [(run.first_offset, run.last_offset, run.delivery_count) for run in part.acquired_records]
            for index, part in self.parts.items()
            if getattr(part, "acquired_records", ())
        }

    @property
    def errors(self) -> dict[int, Errors]:
        return {index: part.error_code for index, part in self.parts.items()}

    @property
    def acks(self) -> dict[int, Errors]:
        return {index: part.acknowledge_error_code for index, part in self.parts.items()}


class Stage:
    """The broker. With `hold`, the persister keeps requests in `held` until `release` is called."""

    def __init__(
        self,
        *,
        partitions: int = 1,
        broker: Mapping[str, object] | None = None,
        group: Mapping[str, str] | None = None,
        traced: bool = False,
        sole: bool = False,
    ) -> None:
        config = BrokerConfig(broker or {})
        self.leader = make_share_leader(BROKER_ID, config, traced=traced, sole=sole)
        self.now_ms = 1_000_000
        self.logs = [FakeLog() for _ in range(partitions)]
        self.states: dict[SharePartitionKey, FakeState] = {}
        self.exchanges: dict[int, SentRequest] = {}
        self.events: list[Any] = []
        self.effects: list[Any] = []
        self.hold = False
        self.hold_reads = False
        self.held: list[Persist] = []
        self.held_logs: list[ReadLog] = []
        self.persister_errors: deque[Errors] = deque()
        self.writes: list[WriteShareGroupStateRequest.Partition] = []
        self.find_offset: tuple[Errors, int] | None = None
        self.stamped = False
        """Batches have the time of their append."""
        part = PartitionImage(leader=BROKER_ID, leader_epoch=0, replicas=(0, 1), isr=(0, 1))
        topic = TopicImage(name="t", topic_id=TOPIC_ID, partitions=(part,) * partitions)
        brokers = {i: BrokerImage(broker_id=i, host=f"b{i}", port=9092 + i) for i in (0, 1)}
        overrides = {"share.auto.offset.reset": "earliest", **(group or {})}
        self.image = ClusterImage(
            brokers=brokers,
            broker_config=config,
            group_configs=dict.fromkeys("gh", overrides),
        )
        self.set_topics(topic)

    # ---- the cluster -------------------------------------------------------------------------------------------------

    def set_image(self, **changes: Any) -> None:
        self.image = replace(self.image, version=self.image.version + 1, _effective={}, **changes)
        self.deliver(ImageChanged(self.image))

    def set_topics(self, *topics: TopicImage) -> None:
        self.set_image(topics={t.name: t for t in topics}, topics_by_id={t.topic_id: t for t in topics})

    def set_leader(self, partition: int, leader: int, leader_epoch: int) -> None:
        topic = self.image.topics["t"]
        parts = list(topic.partitions)
        parts[partition] = replace(parts[partition], leader=leader, leader_epoch=leader_epoch)
        self.set_topics(replace(topic, partitions=tuple(parts)))

    def set_group(self, **configs: str) -> None:
        """Change configurations of all groups; keys without `share.` and with underscores."""
        changes = {"share." + key.replace("_", "."): value for key, value in configs.items()}
        self.set_image(group_configs={g: {**old, **changes} for g, old in self.image.group_configs.items()})

    def produce(self, partition: int, *batches: int, size: int = 100, grew: bool = True) -> None:
        """Append batches of `batches` records each, every batch `size` bytes large."""
        for records in batches:
            self.logs[partition].append(records, size, max_timestamp=self.now_ms if self.stamped else 0)
        if grew:
            self.deliver(LogGrew(TopicPartition("t", partition)))

    def close_connection(self, connection_id: int) -> None:
        self.deliver(ConnectionClosed(connection_id))

    # ---- time --------------------------------------------------------------------------------------------------------

    def pass_time(self, ms: int) -> None:
        """Advance the clock by `ms` and deliver a Tick at each `wake_at_ms` of the actor on the way."""
        end_ms = self.now_ms + ms
        rings = 0
        while (wake_at_ms := self.leader.wake_at_ms) is not None and wake_at_ms <= end_ms:
            rings = rings + 1 if wake_at_ms <= self.now_ms else 0
            assert rings < 100, "wake_at_ms stays in the past"
            self.now_ms = max(self.now_ms, wake_at_ms)
            self.deliver(Tick())
        self.now_ms = end_ms

    # ---- messages and effects ----------------------------------------------------------------------------------------

    def send(self, request: Any, connection_id: int = 1, host: str = ClientContext().client_host) -> SentRequest:
        exchange = SentRequest(len(self.exchanges))
        self.exchanges[exchange.id] = exchange
        self.deliver(Incoming(exchange.id, request, ClientContext(client_host=host, connection_id=connection_id)))
        return exchange

    def deliver(self, message: Message) -> None:
        inbox: deque[Message] = deque([message])
        while inbox:
            self.effects = self.leader.handle(inbox.popleft(), self.now_ms)
            for effect in self.effects:
                self._carry_out(effect, inbox)

    def _carry_out(self, effect: Any, inbox: deque[Message]) -> None:
        match effect:
            case Respond():
                exchange = self.exchanges[effect.id]
                assert exchange.response is None, "answered twice"
                exchange.response = effect.response
            case ReadLog() if self.hold_reads:
                self.held_logs.append(effect)
            case ReadLog():
                inbox.append(self.logs[effect.topic_partition.partition].read(effect))
            case FindOffset():
                inbox.append(self._found(effect))
            case Persist() if self.hold:
                self.held.append(effect)
            case Persist():
                inbox.append(self.persist(effect))
            case _:
                self.events.append(effect)

    def _found(self, effect: FindOffset) -> OffsetFound:
        log = self.logs[effect.topic_partition.partition]
        if self.stamped and effect.timestamp >= 0:
            found = [batch.base_offset for batch in log.batches if batch.max_timestamp >= effect.timestamp]
            return OffsetFound(effect.id, Errors.NONE, min(found, default=-1))
        error, offset = self.find_offset or (Errors.NONE, log.end if effect.timestamp == -1 else log.start)
        return OffsetFound(effect.id, error, offset)

    def release(self, *which: int, error: Errors = Errors.NONE) -> None:
        """Let the persister answer held requests: all of them, or those with these indexes in this order."""
        taken = [self.held[i] for i in which] if which else list(self.held)
        self.held = [p for p in self.held if p not in taken]
        for effect in taken:
            self.persister_errors.append(error)
            self.deliver(self.persist(effect))

    def release_logs(self) -> None:
        taken, self.held_logs = self.held_logs, []
        for effect in taken:
            self.deliver(self.logs[effect.topic_partition.partition].read(effect))

    # ---- the persister -----------------------------------------------------------------------------------------------

    def state(self, partition: int = 0, group_id: str = "g") -> FakeState:
        return self.states.setdefault(SharePartitionKey(group_id, TOPIC_ID, partition), FakeState())

    def persist(self, effect: Persist) -> Answer:
        error = self.persister_errors.popleft() if self.persister_errors else Errors.NONE
        request = effect.request
        assert isinstance(request, ReadShareGroupStateRequest | WriteShareGroupStateRequest)
        response = RESPONSES[type(request)]
        topics = []
        for topic in request.topics:
            parts = tuple(self._persisted(request.group_id, part, error) for part in topic.partitions)
            topics.append(response.Topic(topic_id=topic.topic_id, partitions=parts))
        return Answer(effect.id, response(results=tuple(topics)))

    def _persisted(
        self,
        group_id: str,
        part: ReadShareGroupStateRequest.Partition | WriteShareGroupStateRequest.Partition,
        error: Errors,
    ) -> ReadShareGroupStateResponse.Partition | WriteShareGroupStateResponse.Partition:
        if isinstance(part, ReadShareGroupStateRequest.Partition):
            return self._read(group_id, part.partition, error)
        self.writes.append(part)
        if not error:
            self.state(part.partition, group_id).write(part)
        return WriteShareGroupStateResponse.Partition(partition=part.partition, error_code=error)

    def _read(self, group_id: str, partition: int, error: Errors) -> ReadShareGroupStateResponse.Partition:
        state = self.state(partition, group_id)
        return ReadShareGroupStateResponse.Partition(
            partition=partition, error_code=error, start_offset=state.start_offset, state_batches=state.batches()
        )

    # ---- clients -----------------------------------------------------------------------------------------------------

    def member(
        self,
        member_id: str,
        *,
        group_id: str = "g",
        connection_id: int | None = None,
        host: str = ClientContext().client_host,
    ) -> Member:
        return Member(self, member_id, group_id, len(self.exchanges) if connection_id is None else connection_id, host)


class Member:
    """A client that counts its session epoch."""

    def __init__(self, stage: Stage, member_id: str, group_id: str, connection_id: int, host: str) -> None:
        self.stage = stage
        self.member_id = member_id
        self.group_id = group_id
        self.connection_id = connection_id
        self.host = host
        self.epoch = 0

    def _next(self, epoch: int | None) -> int:
        if epoch is None:
            epoch = self.epoch
            self.epoch += 1
        return epoch

    def fetch(
        self,
        partitions: str = "",
        *,
        acks: Mapping[int, str] | None = None,
        forget: str = "",
        epoch: int | None = None,
        **fields: Any,
    ) -> SentRequest:
        """ShareFetch: list partitions (one digit each), acknowledge (`{0: "0-4:1"}`), forget; the epoch is counted."""
        listed = {int(p): "" for p in partitions} | dict(acks or {})
        parts = tuple(
            ShareFetchRequest.Partition(partition_index=p, acknowledgement_batches=ack_batches(text))
            for p, text in listed.items()
        )
        forgotten = ShareFetchRequest.ForgottenTopic(topic_id=TOPIC_ID, partitions=tuple(int(p) for p in forget))
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self._next(epoch),
            topics=(ShareFetchRequest.Topic(topic_id=TOPIC_ID, partitions=parts),) if parts else (),
            forgotten_topics_data=(forgotten,) if forget else (),
            **fields,
        )
        return self.stage.send(request, self.connection_id, self.host)

    def renew(self, acks: Mapping[int, str]) -> SentRequest:
        return self.fetch(acks=acks, is_renew_ack=True, max_wait_ms=0, min_bytes=0, max_bytes=0, max_records=0)

    def acknowledge(self, acks: Mapping[int, str], *, epoch: int | None = None, renew: bool = False) -> SentRequest:
        parts = tuple(
            ShareAcknowledgeRequest.Partition(partition_index=p, acknowledgement_batches=ack_batches(text))
            for p, text in acks.items()
        )
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self._next(epoch),
            is_renew_ack=renew,
            topics=(ShareAcknowledgeRequest.Topic(topic_id=TOPIC_ID, partitions=parts),) if parts else (),
        )
        return self.stage.send(request, self.connection_id, self.host)

    def close(self, acks: Mapping[int, str] | None = None) -> SentRequest:
        return self.acknowledge(acks or {}, epoch=-1)


def offsets(runs: Iterable[tuple[int, int, int]]) -> list[int]:
    """All offsets of the acquired runs."""
    return [offset for first, last, _ in runs for offset in range(first, last + 1)]
