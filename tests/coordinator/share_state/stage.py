"""The test environment of the share coordinator: one broker whose log can hold appends or make them fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from shareq.coordinator.share_state import ShareCoordinator, StateRecord, decode_state_record
from shareq.model.actor import (
    AppendRecords,
    DeleteRecordsBefore,
    Effect,
    ImageChanged,
    Message,
    ReadRecords,
    RecordsDeleted,
    RecordsRead,
)
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId, partition_for, topic_id_from_bytes
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.base import Request
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    StateBatch,
    WriteShareGroupStateRequest,
)
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign
from tests.coordinator.stage import CoordinatorStage

TOPIC = topic_id_from_bytes(bytes.fromhex("00112233445566778899aabbccddeeff"))
OTHER = topic_id_from_bytes(bytes.fromhex("ffeeddccbbaa99887766554433221100"))
STATE_TOPIC_ID = topic_id_from_bytes(b"S" * 16)
KEY = SharePartitionKey("g1", TOPIC, 3)
HOME = 15
"""The partition of the state topic that holds KEY."""

Initialize = InitializeShareGroupStateRequest
Read = ReadShareGroupStateRequest
Write = WriteShareGroupStateRequest
Summary = ReadShareGroupStateSummaryRequest
Delete = DeleteShareGroupStateRequest


def batches(text: str) -> tuple[StateBatch, ...]:
    """Parse batches such as `100-104/2/1 105-109/0/2`: first-last/state/count each."""
    parsed = []
    for word in text.split():
        span, state, count = word.split("/")
        first, last = span.split("-")
        parsed.append(StateBatch(int(first), int(last), int(state), int(count)))
    return tuple(parsed)


def topic_image(name: str, topic_id: TopicId, partitions: int, leader: int = 1) -> TopicImage:
    partition = PartitionImage(leader=leader, leader_epoch=0, replicas=(1,), isr=(1,))
    return TopicImage(name=name, topic_id=topic_id, partitions=(partition,) * partitions)


def image(
    *topics: TopicImage,
    state_partitions: int = 50,
    share_version: int = 1,
    design: StateDesign = StateDesign.STATE_TOPIC,
    **configs: object,
) -> ClusterImage:
    """A cluster of one broker with a state topic. `configs`: keys without `share.coordinator.`, with `_` for `.`."""
    every = (*topics, topic_image(SHARE_STATE_TOPIC, STATE_TOPIC_ID, state_partitions))
    return ClusterImage(
        version=1,
        brokers={1: BrokerImage(broker_id=1, host="b1", port=9092)},
        topics={t.name: t for t in every},
        topics_by_id={t.topic_id: t for t in every},
        broker_config=BrokerConfig(
            {PERSISTER_CLASS: design.class_name}
            | {f"share.coordinator.{k.replace('_', '.')}": v for k, v in configs.items()}
        ),
        share_version=share_version,
    )


def named(request: type[Any], key: SharePartitionKey = KEY, **fields: Any) -> Request:
    """A request for one share-partition."""
    entry = request.Partition(partition=key.partition, **fields)
    topic = request.Topic(topic_id=key.topic_id, partitions=(entry,))
    return cast(Request, request(group_id=key.group_id, topics=(topic,)))


def partition_of(key: SharePartitionKey, count: int = 50) -> int:
    return partition_for(str(key), count)


class Stage(CoordinatorStage):
    """While `holding`, appends wait for `release`; without `load`, reads of the log wait in `loads`."""

    coordinator: ShareCoordinator

    def __init__(self, first: ClusterImage | None = None, *, traced: bool = False, load: bool = True) -> None:
        self.traced = traced
        self.starts: dict[int, int] = {}
        self.removed: dict[int, set[int]] = {}
        self.holding = False
        self.loads: list[ReadRecords] = []
        self.deletions: list[DeleteRecordsBefore] = []
        self.load = load
        made = first or image(topic_image("t", TOPIC, 4), topic_image("u", OTHER, 4))
        super().__init__(made, len(made.topics[SHARE_STATE_TOPIC].partitions))
        self.handle(ImageChanged(made))
        if load:
            self.elect()

    def new_coordinator(self) -> ShareCoordinator:
        return ShareCoordinator(1, traced=self.traced)

    # ---- effects -----------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> Iterable[Message]:
        if isinstance(effect, AppendRecords) and self.holding:
            self.held.append(effect)
        elif isinstance(effect, ReadRecords):
            if self.load:
                yield self.chunk(effect)
            else:
                self.loads.append(effect)
        elif isinstance(effect, DeleteRecordsBefore):
            self.deletions.append(effect)
        else:
            yield from super().perform(effect)

    def chunk(self, effect: ReadRecords, size: int = 3) -> RecordsRead:
        """The next `size` records of a log."""
        partition = effect.topic_partition.partition
        log, first = self.logs.get(partition, []), max(effect.offset, self.starts.get(partition, 0))
        end = min(first + size, len(log))
        removed = self.removed.get(partition, ())
        records = [(offset, *log[offset]) for offset in range(first, end) if offset not in removed]
        return RecordsRead(effect.id, Errors.NONE, records, end, end == len(log))

    def compact(self, partition: int, until: int) -> None:
        """Remove each record below `until` that a later one there with the same key replaces."""
        log = self.logs.get(partition, [])[:until]
        latest = {record.key: offset for offset, record in enumerate(log)}
        self.removed.setdefault(partition, set()).update({*range(len(log))} - {*latest.values()})

    def release(self, error: Errors = Errors.NONE, index: int = 0) -> None:
        """End one of the held appends."""
        self.handle(self.append(self.held.pop(index), error))

    def delete_records(self, error: Errors = Errors.NONE) -> None:
        """Perform or fail the first requested deletion."""
        effect = self.deletions.pop(0)
        if not error:
            self.starts[effect.topic_partition.partition] = effect.offset
        self.handle(RecordsDeleted(effect.id, error))

    def wait_until(self, now_ms: int) -> None:
        self.wait(now_ms - self.now_ms)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def ask(self, request: Request) -> Any:
        """Send a request that is answered at once; returns the response."""
        return self.answers[self.send(request)]

    def one(self, request: Request) -> Any:
        """Send a request for one share-partition; returns its result."""
        (topic,) = self.ask(request).results
        (entry,) = topic.partitions
        return entry

    def initialize(self, state_epoch: int = 3, start_offset: int = 0, key: SharePartitionKey = KEY) -> Errors:
        entry = self.one(named(Initialize, key, state_epoch=state_epoch, start_offset=start_offset))
        return cast(Errors, entry.error_code)

    def read(self, leader_epoch: int = 5, key: SharePartitionKey = KEY) -> Any:
        return self.one(named(Read, key, leader_epoch=leader_epoch))

    def write(
        self, text: str = "", *, so: int = -1, dcc: int = -1, se: int = 3, le: int = 5, key: SharePartitionKey = KEY
    ) -> Errors:
        fields = {"state_epoch": se, "leader_epoch": le, "start_offset": so, "delivery_complete_count": dcc}
        return cast(Errors, self.one(named(Write, key, **fields, state_batches=batches(text))).error_code)

    def summary(self, key: SharePartitionKey = KEY) -> Any:
        return self.one(named(Summary, key, leader_epoch=-1))

    def delete(self, key: SharePartitionKey = KEY) -> Errors:
        return cast(Errors, self.one(named(Delete, key)).error_code)

    # ---- records -----------------------------------------------------------------------------------------------------

    def written(self, key: SharePartitionKey = KEY) -> list[StateRecord]:
        """The decoded records in the log of the key's partition."""
        log = self.logs.get(partition_of(key, self.shards), [])
        decoded = [decode_state_record(*record) for record in log]
        return [record for record in decoded if record is not None]
