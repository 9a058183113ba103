"""The watch for records that arrive, against a stand-in for the backend on virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shareq.broker.backend.log_reads import READS, LogReads
from shareq.broker.backend.log_watch import (
    FREE_LANES,
    JOIN_MS,
    LEAST_WAIT_MS,
    SHORT_WAIT_MS,
    WATCH_LANES,
    WATCH_WAIT_MS,
)
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import Answer, ReadLog
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.fetch import FetchRequest, FetchResponse

TOPIC = TopicImage(name="t", topic_id=TopicId("T" * 22), partitions=())


class EmptyLogs:
    """A backend whose logs stay empty until they `grow`: a fetch that does not wait returns at once, another one when a
    log of it grows or its wait ends."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.waiting: dict[str, frozenset[int]] = {}
        """Lane -> the partitions of its fetch."""
        self.ends: Counter[int] = Counter()
        """The ends of the logs that have grown."""
        self.unwanted: set[int] = set()
        """The partitions that no fetch of a member waits for."""
        self.requests = 0
        self.grown: Counter[int] = Counter()
        self._answers: dict[str, Callable[[], None]] = {}
        self.reads = LogReads(
            0,
            self,  # type: ignore[arg-type]
            self.loop,
            stale=self.stale,
            moved=lambda *_: None,
            waits=lambda at: at.partition not in self.unwanted,
        )
        self.reads.image = ClusterImage(topics={"t": TOPIC}, topics_by_id={TOPIC.topic_id: TOPIC})

    def stale(self) -> None:
        raise AssertionError("no answer has an error, and no log grows unasked")

    def soon(self, call: Callable[[], object]) -> None:
        self.loop.post(call)

    def call(self, node: int, request: FetchRequest, done: Callable[[Answer], Any], *, lane: str) -> None:
        self.requests += 1
        numbers = [p.partition for p in request.topics[0].partitions]

        def respond() -> None:
            partitions = tuple(
                FetchResponse.Partition(
                    partition_index=number,
                    high_watermark=self.ends[number],
                    last_stable_offset=self.ends[number],
                    log_start_offset=0,
                    records=(),
                )
                for number in numbers
            )
            response = FetchResponse(responses=(FetchResponse.Topic(topic_id=TOPIC.topic_id, partitions=partitions),))
            self.loop.post(done, Answer(1, response))

        if lane == READS:
            respond()
            return
        assert lane not in self.waiting, "a lane has one request at a time"
        self.waiting[lane] = frozenset(numbers)

        def answer() -> None:
            if self._answers.get(lane) is answer:
                del self.waiting[lane], self._answers[lane]
                respond()

        self._answers[lane] = answer
        self.loop.at(self.loop.time_ms() + request.max_wait_ms, answer)

    def grow(self, partition: int) -> None:
        """Append a record."""
        self.ends[partition] += 1
        for lane in [lane for lane, partitions in self.waiting.items() if partition in partitions]:
            self.loop.enter(self._answers[lane])
        self.loop.drain()

    def watch(self, partition: int) -> None:
        """Read a partition to its end, in a turn of its own."""
        self.read(partition, self.stale)

    def read(self, partition: int, grew: Callable[[], object] | None) -> None:
        effect = ReadLog(1, TopicPartition("t", partition), self.ends[partition], 1 << 20)
        found: list[object] = []
        self.loop.enter(lambda: self.reads.read(effect, found.append, grew))
        assert self.loop.wait(lambda: bool(found), 0)
        self.loop.drain()

    def read_together(self, *partitions: int) -> None:
        """Read partitions to their ends, in one turn."""

        def read() -> None:
            for partition in partitions:
                self.read_later(partition)

        self.loop.enter(read)

    def read_later(self, partition: int) -> None:
        """Read a partition to its end, in the present turn; count in `grown` when it is to be read again."""

        def grew() -> None:
            self.grown[partition] += 1

        effect = ReadLog(1, TopicPartition("t", partition), self.ends[partition], 1 << 20)
        self.reads.read(effect, lambda _: None, grew)

    @property
    def watched(self) -> Counter[int]:
        return Counter(partition for partitions in self.waiting.values() for partition in partitions)

    def advance(self, ms: int) -> None:
        assert not self.loop.wait(lambda: False, ms)


def test_a_response_goes_before_the_next_fetch_of_the_watch() -> None:
    logs, fetches = EmptyLogs(), list[int]()

    def respond(_: object) -> None:
        logs.loop.post(lambda: fetches.append(len(logs.waiting)))

    effect = ReadLog(1, TopicPartition("t", 0), 0, 1 << 20)
    logs.loop.enter(lambda: logs.reads.read(effect, respond, logs.stale))
    assert logs.loop.wait(lambda: bool(fetches), 0)
    logs.loop.drain()
    assert (fetches, len(logs.waiting)) == ([0], 1)


def test_partitions_that_stay_empty_share_lanes() -> None:
    logs = EmptyLogs()
    for partition in range(3 * WATCH_LANES):
        logs.watch(partition)
    assert len(logs.waiting) == WATCH_LANES
    logs.advance(2 * WATCH_WAIT_MS + JOIN_MS)
    assert logs.watched == Counter(range(3 * WATCH_LANES))
    assert len(logs.waiting) <= WATCH_LANES - FREE_LANES


def test_a_partition_is_watched_at_once_beside_many_that_stay_empty() -> None:
    logs = EmptyLogs()
    for partition in range(3 * WATCH_LANES):
        logs.watch(partition)
    logs.advance(2 * WATCH_WAIT_MS + JOIN_MS)
    for partition in range(100, 100 + FREE_LANES):
        logs.watch(partition)
        assert logs.watched[partition] == 1


def test_without_a_free_lane_a_partition_is_watched_soon() -> None:
    logs = EmptyLogs()
    for partition in range(WATCH_LANES):
        logs.watch(partition)
        logs.advance(1)
    for partition in range(50, 60):
        logs.watch(partition)
    assert logs.watched == Counter(range(WATCH_LANES))
    logs.advance(SHORT_WAIT_MS + LEAST_WAIT_MS + JOIN_MS - WATCH_LANES)
    assert logs.watched >= Counter(range(50, 60))


def test_partitions_are_watched_on_at_once_when_another_of_their_fetch_has_grown() -> None:
    """Also while most lanes are busy, and before the one that has grown is read."""
    logs = EmptyLogs()
    logs.read_together(0, 1, 2)
    logs.loop.drain()
    for partition in range(10, 10 + FREE_LANES):
        logs.watch(partition)
    logs.grow(0)
    assert logs.grown == Counter([0])
    assert logs.watched >= Counter([1, 2])


def test_partitions_that_stay_empty_are_watched_but_for_a_moment() -> None:
    logs = EmptyLogs()
    for partition in range(WATCH_LANES):
        logs.watch(partition)
        logs.advance(WATCH_WAIT_MS // WATCH_LANES)
    unwatched = Counter[int]()
    for _ in range(3 * WATCH_WAIT_MS):
        logs.advance(1)
        unwatched.update(set(range(WATCH_LANES)) - set(logs.watched))
    assert max(unwatched.values()) <= 3 * WATCH_WAIT_MS // SHORT_WAIT_MS * JOIN_MS


@pytest.mark.parametrize("partitions", [1, WATCH_LANES, 10 * WATCH_LANES])
def test_requests_for_partitions_that_stay_empty_are_bounded(partitions: int) -> None:
    logs = EmptyLogs()
    for partition in range(partitions):
        logs.watch(partition)
    logs.advance(WATCH_WAIT_MS)
    before, seconds = logs.requests, 10
    logs.advance(1_000 * seconds)
    assert logs.requests - before <= WATCH_LANES * 1_000 * seconds // WATCH_WAIT_MS


def test_a_reader_that_has_reached_a_newer_end_hides_no_records_from_another_one() -> None:
    """Two groups read one log. The first one waits for more than offset 0, and its request has just ended in vain as
    the log grows, and as the second one reads the new record and waits for more than offset 1."""
    logs = EmptyLogs()
    logs.read_together(0)
    logs.advance(WATCH_WAIT_MS)
    assert not logs.waiting, "the partition waits for others"
    logs.grow(0)
    second = [0]
    logs.read(0, lambda: second.append(0))
    logs.advance(WATCH_WAIT_MS)
    assert logs.grown[0] == 1


def test_a_watch_ends_with_the_last_fetch_that_waits() -> None:
    """It is read again for the next one: records may have arrived meanwhile."""
    logs = EmptyLogs()
    logs.read_together(0, 1)
    logs.loop.drain()
    logs.unwanted.add(1)
    logs.advance(WATCH_WAIT_MS + JOIN_MS)
    assert (logs.watched, logs.grown) == (Counter([0]), Counter([1]))
    logs.unwanted.add(0)
    logs.advance(WATCH_WAIT_MS + JOIN_MS)
    assert (logs.waiting, logs.grown) == ({}, Counter([0, 1]))
    before = logs.requests
    logs.advance(10 * WATCH_WAIT_MS)
    assert logs.requests == before


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
