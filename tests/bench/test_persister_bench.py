"""What each persister writes for the same work, and what a recovery reads.

The bytes for each verdict must stay within a factor of 1.3 of those of a prototype, which had the same workloads.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.coordinator.share_state.control_shard import ControlShard
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot
from shareq.coordinator.share_state.state import StateChange
from shareq.log.memory import MemoryLog
from shareq.log.records import decode_key_values, encode_batch
from shareq.model.actor import RecordsRead
from shareq.model.errors import Errors
from shareq.model.events import StateRecordWritten
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.log_looks import LogSeen
from shareq.model.messages.share_state import StateBatch
from shareq.model.state_designs import StateDesign
from shareq.model.states import AcknowledgeType, IsolationLevel
from shareq.producer import Producer
from tests.coordinator.share_state.stage import TOPIC, Stage, image, topic_image

pytestmark = pytest.mark.bench

DESIGNS = [StateDesign.STATE_TOPIC, StateDesign.COMPACTED_TOPIC, StateDesign.CONTROL_RECORDS]
ONE_LOG = {
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.segment.bytes": 4096,
    "log.segment.bytes": 4096,
    "log.cleaner.min.cleanable.ratio": 0,
}
FACTOR = 1.3


def prepared(design: StateDesign, records: int) -> Cluster:
    """A cluster with a topic that has these records of 100 bytes."""
    cluster = Cluster(brokers=1, seed=7, persister=design.value, config=ONE_LOG)
    cluster.create_topic("orders")
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1000})
    for _ in range(records):
        producer.produce("orders", b"x" * 100)
    assert producer.flush(60) == 0
    return cluster


def joined(cluster: Cluster, group: str, most: int) -> ShareConsumer:
    cluster.configure_group(group, {"share.auto.offset.reset": "earliest"})
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "share.acquire.mode": "record_limit"}
    consumer = ShareConsumer({**servers, "share.acknowledgement.mode": "explicit", "max.poll.records": most})
    consumer.subscribe(["orders"])
    return consumer


def in_order(cluster: Cluster, consumer: ShareConsumer) -> int:
    """Accept record by record to the end; the number of verdicts."""
    verdicts = 0
    while messages := consumer.poll(10):
        for message in messages:
            consumer.acknowledge(message)
        consumer.commit_sync()
        verdicts += len(messages)
    del cluster
    return verdicts


def one_in_order(design: StateDesign) -> tuple[Cluster, int]:
    cluster = prepared(design, 20_000)
    return cluster, in_order(cluster, joined(cluster, "g", 108))


def messy(design: StateDesign) -> tuple[Cluster, int]:
    """Four consumers accept in any order, a few records a commit, and release 15 % of the records."""
    rng = random.Random(932)
    cluster = prepared(design, 4_000)
    consumers = [joined(cluster, "g", 50) for _ in range(4)]
    verdicts = 0
    while True:
        polls = [list(consumer.poll(1)) for consumer in consumers]
        if not any(polls):
            return cluster, verdicts
        for consumer, messages in zip(consumers, polls, strict=True):
            rng.shuffle(messages)
            for chunk in chunks(messages, rng):
                for message in chunk:
                    released = rng.random() < 0.15
                    consumer.acknowledge(message, AcknowledgeType.RELEASE if released else AcknowledgeType.ACCEPT)
                consumer.commit_sync()
                verdicts += len(chunk)


def chunks(messages: list[Any], rng: random.Random) -> Iterator[list[Any]]:
    while messages:
        size = rng.randint(1, 4)
        yield messages[:size]
        messages = messages[size:]


def twenty_groups(design: StateDesign) -> tuple[Cluster, int]:
    cluster = prepared(design, 1_500)
    return cluster, sum(in_order(cluster, joined(cluster, f"g{n}", 20)) for n in range(20))


def state_bytes(cluster: Cluster, design: StateDesign) -> int:
    """The bytes of share state that are in the log now."""
    if design is StateDesign.CONTROL_RECORDS:
        return sum(batch.size for batch in cluster.log("orders", 0).hidden.batches)
    return cluster.log(SHARE_STATE_TOPIC, 0).size_in_bytes


def state_records(cluster: Cluster, design: StateDesign) -> list[tuple[int, bytes, bytes | None]]:
    """What a recovery reads."""
    if design is StateDesign.CONTROL_RECORDS:
        return [*cluster.log("orders", 0).hidden.recovery()]
    log = cluster.log(SHARE_STATE_TOPIC, 0)
    read = log.read(log.log_start_offset, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED)
    return [record for batch in read.batches for record in decode_key_values(batch)]


def recover(design: StateDesign, records: list[tuple[int, bytes, bytes | None]]) -> None:
    """Load these records."""
    if design is not StateDesign.CONTROL_RECORDS:
        load(design, records)
        return
    shard = ControlShard(ClusterImage, TopicIdPartition(TOPIC, 0), 0, lambda: LogSeen(0))
    for record in records:
        shard.replay(*record, 0)
    assert shard.states


def load(design: StateDesign, records: list[tuple[int, bytes, bytes | None]]) -> Stage:
    """A share coordinator that loads these records."""
    stage = Stage(image(topic_image("t", TOPIC, 1), state_partitions=1, design=design), load=False)
    stage.elect(0)
    stage.handle(RecordsRead(stage.loads.pop().id, Errors.NONE, records, len(records), True))
    return stage


@pytest.mark.parametrize(
    ("work", "bytes_a_verdict"),
    [
        pytest.param(one_in_order, (1.30, 1.36, 1.03), id="in order"),
        pytest.param(messy, (64, 70, 54), id="messy"),
        pytest.param(twenty_groups, (7.4, 7.7, 6.0), id="20 groups"),
    ],
)
@pytest.mark.parametrize("design", DESIGNS)
def test_the_same_work(
    benchmark: BenchmarkFixture,
    design: StateDesign,
    work: Callable[[StateDesign], tuple[Cluster, int]],
    bytes_a_verdict: tuple[float, float, float],
) -> None:
    """The benchmark is a recovery from all records, as they were written. `bytes_a_verdict`: those of the prototype."""
    cluster, verdicts = work(design)
    orders = cluster.log("orders", 0)
    if design is StateDesign.CONTROL_RECORDS:
        user_bytes = orders.size_in_bytes - state_bytes(cluster, design)
        written = orders.bytes_written - user_bytes
    else:
        user_bytes, written = orders.bytes_written, cluster.log(SHARE_STATE_TOPIC, 0).bytes_written
    records = state_records(cluster, design)
    benchmark.pedantic(recover, (design, records), rounds=5)
    cluster.clean_logs()
    events = [entry.event for entry in cluster.journal.select(StateRecordWritten)]
    benchmark.extra_info.update(
        verdicts=verdicts,
        bytes_a_verdict=round(written / verdicts, 2),
        of_user_bytes=round(written / user_bytes, 3),
        appends=len(events),
        whole=sum(
            isinstance(event, StateRecordWritten) and event.kind in ("snapshot", "checkpoint") for event in events
        ),
        recovery_records=len(records),
        recovery_bytes=sum(len(key) + len(value or b"") for _, key, value in records),
        cleaned_records=len(state_records(cluster, design)),
        cleaned_bytes=state_bytes(cluster, design),
    )
    assert written / verdicts <= FACTOR * bytes_a_verdict[DESIGNS.index(design)]


WRITES = 200_000


def after_many_writes(design: StateDesign) -> Stage:
    """A coordinator that has written 200,000 changes of one share-partition, five records each; with two of each three
    changes the start moves."""
    stage = Stage(image(topic_image("t", TOPIC, 4), design=design))
    stage.initialize(3, 0)
    for n in range(WRITES):
        stage.write(f"{5 * n}-{5 * n + 4}/2/1", so=5 * (n - n % 3), dcc=0, le=0)
    return stage


@pytest.mark.parametrize(("design", "dirty", "most"), [
    pytest.param(StateDesign.STATE_TOPIC, 0, 501, id="state topic, pruned"),
    pytest.param(StateDesign.COMPACTED_TOPIC, 0, 17, id="compacted topic, cleaned"),
    pytest.param(StateDesign.COMPACTED_TOPIC, WRITES // 10, WRITES // 10 + 17, id="compacted topic, a tenth is dirty"),
])  # fmt: skip
def test_recovery_after_many_writes(benchmark: BenchmarkFixture, design: StateDesign, dirty: int, most: int) -> None:
    stage = after_many_writes(design)
    ((partition, log),) = stage.logs.items()
    stage.compact(partition, len(log) - dirty)
    if design is StateDesign.STATE_TOPIC:
        stage.removed.clear()
        stage.wait_until(300_000)
        stage.delete_records()
    removed, start = stage.removed.get(partition, set()), stage.starts.get(partition, 0)
    records = [(offset, *log[offset]) for offset in range(start, len(log)) if offset not in removed]
    benchmark.pedantic(load, (design, records), rounds=3)
    written = sum(75 + len(record.key) + len(record.value or b"") for record in log)
    benchmark.extra_info.update(written_bytes=written, recovery_records=len(records))
    assert len(records) <= most


def log_of_many_writes() -> MemoryLog:
    """The log of a partition with a million records, a hundred in each batch, and the control records of the same
    changes."""
    log = MemoryLog()
    shard = ControlShard(ClusterImage, TopicIdPartition(TOPIC, 0), 0, lambda: LogSeen(0))
    key = SharePartitionKey("g", TOPIC, 0)

    def append(records: list[StateRecord]) -> None:
        for record in records:
            encoded = shard.encode(record)
            added = log.append_share_state(encoded, now_ms=0, leader_epoch=0)
            shard.replay(added.base_offset, *encoded, 0)

    batch = encode_batch([(None, b"x" * 100, (), 0)] * 100)
    append([StateSnapshot(key, 0, 3, 0, 0, 0, 0)])
    for n in range(WRITES):
        if n % 20 == 0:
            assert not log.append(batch, now_ms=0, leader_epoch=0, validate=False).error
        first = 5 * n
        done = (StateBatch(first, first + 4, 2, 1),)
        append(shard.write_records(key, StateChange(0, 5 * (n - n % 3), 0, done), 0))
    return log


def test_recovery_from_control_records_after_many_writes(benchmark: BenchmarkFixture) -> None:
    """The benchmark is a recovery; `index_ms` is the time in which a lost index is made anew."""
    log = log_of_many_writes()
    design = StateDesign.CONTROL_RECORDS
    written = sum(batch.size for batch in log.hidden.batches)
    records: list[tuple[int, bytes, bytes | None]] = [*log.hidden.recovery()]
    began = time.perf_counter()
    headers = log.rebuild_share_index()
    index_ms = round(1000 * (time.perf_counter() - began), 3)
    assert [*log.hidden.recovery()] == records
    benchmark.pedantic(recover, (design, records), rounds=3)
    extra = {"written_bytes": written, "recovery_records": len(records), "headers": headers, "index_ms": index_ms}
    benchmark.extra_info.update(extra)
    assert len(records) <= 8
