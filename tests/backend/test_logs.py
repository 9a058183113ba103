"""Reads, the watch and the writers of shards on the logs of a broker. BEHAVIOUR.md of the backend, sections 2 and 3."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin, Producer
from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.log_reads import LogReads
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.backend.shard_reads import ShardPlace
from shareq.broker.loop import WallLoop
from shareq.log.records import decode
from shareq.model.actor import AppendRecords, FindOffset, LogRead, OffsetFound, ReadLog, ReadRecords
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import LATEST_TIMESTAMP
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.model.records import CoordinatorRecord, RecordBatch
from shareq.model.states import IsolationLevel
from tests.kafka.fixtures import Backed, Reachable
from tests.polling import PATIENCE_S, configure, eventually
from tests.wire.raw import Raw

PATIENCE_MS = PATIENCE_S * 1000
FENCE = CoordinatorRecord(b"fence", None)


class Backend:
    """A client of a broker, on a loop of its own, and the metadata of one topic."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.loop = WallLoop()
        self.client = BackendClient(bootstrap_servers, self.loop, random.Random(7), "tests")
        with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
            assert not admin.create_topics([name])[name].error
        metadata = self.result(lambda done: self.client.call_any(MetadataRequest(), done)).response
        self.client.learn(metadata)
        found = next(topic for topic in metadata.topics if topic.name == name)
        self.leader = found.partitions[0].leader_id
        self.at = TopicPartition(name, 0)
        self.topic = TopicImage(name=name, topic_id=found.topic_id, partitions=())
        self.grown = 0
        self.reads = LogReads(self.leader, self.client, self.loop, stale=self.stale, moved=lambda *_: None)
        self.reads.image = ClusterImage(topics={name: self.topic}, topics_by_id={found.topic_id: self.topic})
        eventually(lambda: self.offset(LATEST_TIMESTAMP).error, Errors.NONE)  # a new leader refuses reads at first

    def close(self) -> None:
        self.client.close()
        self.loop.close()

    def result(self, call: Callable[[Callable[[Any], None]], object]) -> Any:
        """The result of a call with a callback."""
        results: list[Any] = []
        self.loop.enter(lambda: call(results.append))
        assert self.loop.wait(lambda: bool(results), PATIENCE_MS)
        return results[0]

    def produce(self, *values: str) -> None:
        with Producer({"bootstrap.servers": self.bootstrap_servers}) as producer:
            for value in values:
                producer.produce(self.at.topic, value)

    def read(self, offset: int, isolation: int = IsolationLevel.READ_UNCOMMITTED) -> LogRead:
        """The result of a read, whose watch counts in `grown`."""
        effect = ReadLog(1, self.at, offset, 1 << 20, isolation)
        found: LogRead = self.result(lambda done: self.reads.read(effect, done, self.grew))
        return found

    def offset(self, timestamp: int) -> OffsetFound:
        found: OffsetFound = self.result(lambda done: self.reads.find_offset(FindOffset(4, self.at, timestamp), done))
        return found

    def grew(self) -> None:
        self.grown += 1

    def shard(self) -> ShardLog:
        """A log of the topic as a shard's, not yet open."""
        return ShardLog(self.at, FENCE, self.client, self.loop, self)

    def opened(self) -> ShardLog:
        shard = self.shard()
        assert self.result(shard.open) is Errors.NONE
        return shard

    def place(self, shard: TopicPartition) -> ShardPlace:
        return ShardPlace(shard, self.topic.topic_id, self.leader)

    def stale(self) -> None:
        """A locator's method: the place does not change here."""


@pytest.fixture
def backend(broker: Reachable, fresh: Callable[[str], str]) -> Iterator[Backend]:
    found = Backend(broker.bootstrap_servers, fresh("t"))
    yield found
    found.close()


def values(read: LogRead) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for batch in read.batches for record in decode(batch)]


def append(shard: ShardLog, *keys: str) -> AppendRecords:
    return AppendRecords(5, TopicPartition("", 0), tuple(CoordinatorRecord(key.encode(), b"v") for key in keys))


# ---- reads -----------------------------------------------------------------------------------------------------------


def test_a_read_returns_the_batches_and_the_offsets_of_the_log(backend: Backend) -> None:
    backend.produce("a", "b")
    read = backend.read(0)
    assert values(read) == [(0, b"a"), (1, b"b")]
    assert read[3:] == (2, 0, 2, (), ())
    assert values(backend.read(1))[-1] == (1, b"b")


def test_a_read_above_the_end_or_below_the_start_has_the_offsets_of_the_log(backend: Backend) -> None:
    backend.produce("a", "b", "c")
    with Admin({"bootstrap.servers": backend.bootstrap_servers}) as admin:
        admin.delete_records({(backend.at.topic, 0): 2})
    for offset in (1, 9):
        assert backend.read(offset) == LogRead(1, Errors.OFFSET_OUT_OF_RANGE, (), 3, 2, 3)
    assert backend.read(3) == LogRead(1, Errors.NONE, (), 3, 2, 3)


def test_records_that_follow_a_read_above_the_end_are_noticed(backend: Backend) -> None:
    """A log that has lost its end, by an unclean election, grows again."""
    backend.produce("a")
    assert backend.read(9).error is Errors.OFFSET_OUT_OF_RANGE
    backend.produce("b")
    assert backend.loop.wait(lambda: backend.grown > 0, PATIENCE_MS)


def test_reads_of_two_groups_at_one_time_are_both_answered(backend: Backend) -> None:
    backend.produce("a")
    levels = (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    reads: list[LogRead] = []

    def start() -> None:
        for number, level in enumerate(levels):
            backend.reads.read(ReadLog(number, backend.at, 0, 1 << 20, level), reads.append, backend.grew)

    backend.loop.enter(start)
    assert backend.loop.wait(lambda: len(reads) == len(levels), PATIENCE_MS)
    assert sorted(read.id for read in reads) == [0, 1, 2]
    assert [values(read) for read in reads] == [[(0, b"a")]] * 3


def test_a_read_of_an_unknown_topic_is_an_error(backend: Backend) -> None:
    effect = ReadLog(1, TopicPartition("missing", 0), 0, 1000)
    assert backend.result(lambda done: backend.reads.read(effect, done, backend.grew)) == LogRead(
        1, Errors.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_committed_read_ends_at_an_open_transaction_and_names_aborted_ones(backend: Backend) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": backend.bootstrap_servers, "transactional.id": backend.at.topic}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(backend.at.topic, b"a")
    assert producer.flush(PATIENCE_S) == 0
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(backend.at.topic, b"b")
    assert producer.flush(PATIENCE_S) == 0
    eventually(lambda: committed(backend)[:2], (2, 3))
    producer.commit_transaction(PATIENCE_S)
    eventually(lambda: committed(backend), (4, 4, ((0, 1),)))


def committed(backend: Backend) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """The last stable offset, the high watermark, and the aborted transactions, each from its first offset to its
    marker."""
    read = backend.read(0, IsolationLevel.READ_COMMITTED)
    return read.last_stable_offset, read.high_watermark, tuple((one[1], one[2]) for one in read.aborted)


@pytest.mark.parametrize(("timestamp", "offset"), [(-1, 2), (-2, 0), (0, 0), (1 << 60, -1)])
def test_offsets_are_found_by_timestamp(backend: Backend, timestamp: int, offset: int) -> None:
    backend.produce("a", "b")
    assert backend.offset(timestamp) == (4, Errors.NONE, offset)


def test_batches_are_passed_on_byte_for_byte(backed: Backed, fresh: Callable[[str], str]) -> None:
    """To consumers, which the backend answers, and to share consumers."""
    topic, group = fresh("topic"), fresh("group")
    with Admin({"bootstrap.servers": backed.bootstrap_servers}) as admin:
        admin.create_topics([topic]).check()
        configure(admin, group, {"share.auto.offset.reset": "earliest"})
        topic_id = TopicId(admin.describe_topics([topic])[topic].topic_id)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        conf = {"bootstrap.servers": backed.kafka.bootstrap_servers, "compression.type": codec, "linger.ms": 10_000}
        producer = confluent_kafka.Producer(conf)
        for number in range(10):
            producer.produce(topic, f"value {number}" * 20, "key", headers={"codec": codec.encode()})
        assert producer.flush(PATIENCE_S) == 0
    part = FetchRequest.Partition(partition=0, fetch_offset=0)
    fetch = FetchRequest(topics=(FetchRequest.Topic(topic_id=topic_id, partitions=(part,)),))
    stored, passed = (records_of(one.bootstrap_servers, fetch) for one in (backed.kafka, backed))
    assert [batch.base_offset for batch in stored] == [0, 10, 20, 30, 40]
    assert passed == stored
    member: dict[str, Any] = {"group_id": group, "member_id": "B" + "A" * 21}
    joining = ShareGroupHeartbeatRequest(**member, member_epoch=0, subscribed_topic_names=(topic,))
    led = ShareFetchRequest.Topic(topic_id=topic_id, partitions=(ShareFetchRequest.Partition(partition_index=0),))
    shared = ShareFetchRequest(**member, share_session_epoch=0, topics=(led,))
    eventually(lambda: records_of(backed.bootstrap_servers, joining, shared), stored)


def records_of(servers: str, *requests: Request) -> tuple[RecordBatch, ...]:
    """The batches of the only partition in the last answer, with their bytes."""
    with Raw(int(servers.rpartition(":")[2])) as client:
        *_, last = [client.ask(request) for request in requests]
    return tuple(batch for topic in last.responses for part in topic.partitions for batch in part.records)


# ---- the watch -------------------------------------------------------------------------------------------------------


def test_records_after_a_read_up_to_the_end_are_reported_once(backend: Backend) -> None:
    backend.produce("a")
    backend.read(0)
    backend.produce("b")
    assert backend.loop.wait(lambda: backend.grown == 1, PATIENCE_MS)
    backend.produce("c")
    assert values(backend.read(0)) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert backend.grown == 1
    backend.produce("d")
    assert backend.loop.wait(lambda: backend.grown == 2, PATIENCE_MS)


def test_a_read_that_ends_below_the_end_is_not_watched(backend: Backend) -> None:
    backend.produce("a")
    backend.produce("b")
    effect = ReadLog(1, backend.at, 0, 1)
    read = backend.result(lambda done: backend.reads.read(effect, done, backend.grew))
    assert values(read) == [(0, b"a")]
    assert not backend.reads._watch._watched


@pytest.mark.parametrize(
    ("limit", "level", "found"),
    [
        pytest.param(1 << 20, IsolationLevel.READ_UNCOMMITTED, [b"b"], id="all"),
        pytest.param(1, IsolationLevel.READ_UNCOMMITTED, [b"b"], id="the first batch whatever its size"),
        pytest.param(1 << 20, IsolationLevel.READ_COMMITTED, None, id="committed reads need the aborted transactions"),
    ],
)
def test_the_read_after_a_report_needs_no_request(
    backend: Backend, limit: int, level: IsolationLevel, found: list[bytes] | None
) -> None:
    backend.read(0)
    backend.produce("a")
    assert backend.loop.wait(lambda: backend.grown == 1, PATIENCE_MS)
    reads: list[LogRead] = []
    requests: list[int] = []
    monitored = backend.reads._fetch
    effect = ReadLog(7, backend.at, 1, limit, level)

    def count(*arguments: Any) -> None:
        requests.append(1)
        monitored(*arguments)

    def read_at_once() -> None:
        """As a leader does in the turn in which it gets the report."""
        backend.loop.post(backend.reads.read, effect, reads.append, backend.grew)

    backend.reads._fetch = count  # type: ignore[method-assign, assignment]
    backend.result(lambda done: backend.reads.read(effect._replace(id=6), done, read_at_once))
    requests.clear()
    backend.produce("b")
    assert backend.loop.wait(lambda: bool(reads), PATIENCE_MS)
    assert (reads[0].id, [value for _, value in values(reads[0])]) == (7, [b"b"])
    assert len(requests) == (0 if found else 1)


# ---- shards ----------------------------------------------------------------------------------------------------------


def test_a_shard_reads_what_its_writer_has_appended(backend: Backend) -> None:
    shard = backend.opened()
    done = backend.result(lambda take: shard.append(append(shard, "a", "b"), take))
    assert done == (5, Errors.NONE, 1)
    assert backend.result(lambda take: shard.append(append(shard, "c"), take)) == (5, Errors.NONE, 3)
    read = backend.result(lambda take: shard.read(ReadRecords(6, backend.at, 0), take))
    assert [(offset, key) for offset, key, _ in read.records] == [(0, b"fence"), (1, b"a"), (2, b"b"), (3, b"c")]
    assert (read.error, read.next_offset, read.done, read.producer_ids) == (Errors.NONE, 4, True, {})


def test_a_new_writer_fences_the_former_one_before_it_reads(backend: Backend) -> None:
    former = backend.opened()
    assert backend.result(lambda take: former.append(append(former, "a"), take)).error is Errors.NONE
    shard = backend.opened()
    assert backend.result(lambda take: former.append(append(former, "b"), take)) == (5, Errors.NOT_COORDINATOR, -1)
    assert backend.result(lambda take: shard.append(append(shard, "c"), take)).error is Errors.NONE
    read = backend.result(lambda take: shard.read(ReadRecords(6, backend.at, 0), take))
    assert [key for _, key, _ in read.records] == [b"fence", b"a", b"fence", b"c"]


def test_a_batch_that_is_sent_twice_is_written_once(backend: Backend) -> None:
    shard = backend.opened()
    sequence, offset = shard._sequence, shard._next
    first = backend.result(lambda take: shard.append(append(shard, "a"), take))
    shard._sequence, shard._next = sequence, offset  # as after a response that was lost
    assert backend.result(lambda take: shard.append(append(shard, "a"), take)) == first
    read = backend.result(lambda take: shard.read(ReadRecords(6, backend.at, 0), take))
    assert [key for _, key, _ in read.records] == [b"fence", b"a"]


def test_a_pruned_shard_is_read_from_its_log_start(backend: Backend) -> None:
    """The fence before the offset stays."""
    shard = backend.opened()
    backend.result(lambda take: shard.append(append(shard, "a"), take))
    shard._renew_ms = 0
    backend.result(lambda take: shard.append(append(shard, "b"), take))
    assert backend.result(lambda take: shard.delete_before(3, take)) is Errors.NONE
    read = backend.result(lambda take: shard.read(ReadRecords(6, backend.at, 0), take))
    assert [(offset, key) for offset, key, _ in read.records] == [(2, b"fence"), (3, b"b")]
    assert read.done


def test_a_batch_that_is_too_large_is_refused_and_later_ones_are_written(backend: Backend) -> None:
    shard = backend.opened()
    large = AppendRecords(5, backend.at, (CoordinatorRecord(b"k", bytes(2_000_000)),))
    assert backend.result(lambda take: shard.append(large, take)) == (5, Errors.MESSAGE_TOO_LARGE, -1)
    assert backend.result(lambda take: shard.append(append(shard, "a"), take)) == (5, Errors.NONE, 1)
