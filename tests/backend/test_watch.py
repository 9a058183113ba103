"""The watch for records that arrive, against a stand-in for the backend on virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from shareq.broker.backend.log_reads import FREE_LANES, READS, WATCH_LANES, WATCH_WAIT_MS, LogReads
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import Answer, ReadLog
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.fetch import FetchRequest, FetchResponse

TOPIC = TopicImage(name="t", topic_id=TopicId("T" * 22), partitions=())


class EmptyLogs:
    """A backend whose logs stay empty: a fetch returns at once if it does not wait, else after its wait."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.waiting: dict[str, frozenset[int]] = {}
        """Lane -> the partitions of its fetch."""
        self.reads = LogReads(0, self, self.loop, stale=self.stale, moved=lambda *_: None)  # type: ignore[arg-type]
        self.reads.image = ClusterImage(topics={"t": TOPIC}, topics_by_id={TOPIC.topic_id: TOPIC})

    def stale(self) -> None:
        raise AssertionError("no answer has an error")

    def call(self, node: int, request: FetchRequest, done: Callable[[Answer], Any], *, lane: str) -> None:
        partitions = tuple(
            FetchResponse.Partition(partition_index=p.partition, high_watermark=0, log_start_offset=0, records=())
            for p in request.topics[0].partitions
        )
        response = FetchResponse(responses=(FetchResponse.Topic(topic_id=TOPIC.topic_id, partitions=partitions),))
        if lane == READS:
            self.loop.post(done, Answer(1, response))
            return
        assert lane not in self.waiting, "a lane has one request at a time"
        self.waiting[lane] = frozenset(p.partition_index for p in partitions)

        def answer() -> None:
            del self.waiting[lane]
            done(Answer(1, response))

        self.loop.at(self.loop.time_ms() + request.max_wait_ms, answer)

    def watch(self, partition: int) -> None:
        """Read a partition to its end, in a turn of its own."""
        self.read(partition, self.stale)

    def read(self, partition: int, grew: Callable[[], object] | None) -> None:
        effect = ReadLog(1, TopicPartition("t", partition), 0, 1 << 20)
        found: list[object] = []
        self.loop.enter(lambda: self.reads.read(effect, found.append, grew))
        assert self.loop.wait(lambda: bool(found), 0)
        self.loop.drain()

    @property
    def watched(self) -> Counter[int]:
        return Counter(partition for partitions in self.waiting.values() for partition in partitions)

    def advance(self, ms: int) -> None:
        assert not self.loop.wait(lambda: False, ms)


def test_partitions_that_stay_empty_share_lanes() -> None:
    logs = EmptyLogs()
    for partition in range(3 * WATCH_LANES):
        logs.watch(partition)
    assert len(logs.waiting) == WATCH_LANES
    logs.advance(2 * WATCH_WAIT_MS)
    assert logs.watched == Counter(range(3 * WATCH_LANES))
    assert len(logs.waiting) <= WATCH_LANES - FREE_LANES


def test_a_partition_is_watched_at_once_beside_many_that_stay_empty() -> None:
    logs = EmptyLogs()
    for partition in range(3 * WATCH_LANES):
        logs.watch(partition)
    logs.advance(2 * WATCH_WAIT_MS)
    for partition in range(100, 100 + FREE_LANES):
        logs.watch(partition)
        assert logs.watched[partition] == 1


def test_without_a_free_lane_the_next_one_that_returns_takes_all() -> None:
    logs = EmptyLogs()
    for partition in range(WATCH_LANES):
        logs.watch(partition)
        logs.advance(1)
    for partition in range(50, 60):
        logs.watch(partition)
    assert logs.watched == Counter(range(WATCH_LANES))
    logs.advance(WATCH_WAIT_MS - WATCH_LANES)
    assert logs.watched >= Counter(range(50, 60))


def test_a_read_of_dead_letters_takes_no_lane_and_no_watch_of_the_leader() -> None:
    """A second watch of the partition would replace that of its leader while no lane is free."""
    logs = EmptyLogs()
    logs.watch(0)
    logs.read(0, None)
    logs.read(1, None)
    assert logs.watched == Counter([0])


def test_nothing_is_watched_after_the_end_of_a_node() -> None:
    logs = EmptyLogs()
    logs.watch(0)
    logs.loop.enter(lambda: logs.reads.read(ReadLog(1, TopicPartition("t", 1), 0, 9), lambda _: None, logs.stale))
    logs.reads.close()
    logs.advance(3 * WATCH_WAIT_MS)
    assert logs.waiting == {}
