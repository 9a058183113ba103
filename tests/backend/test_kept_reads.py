"""What a leader reads of a backend's log again, and how much it asks for; against a stand-in on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from shareq.broker.backend.log_reads import FIRST_BYTES, KEPT_MS, READS, RETRY_MS, SWEEP_MS, LogReads
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import MAX_OFFSET, Answer, LogRead, ReadLog
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.image import ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.data import DeleteRecordsRequest, DeleteRecordsResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import RecordBatch
from shareq.model.states import IsolationLevel
from tests.backend.test_unanswered import OneNode
from tests.client.fake import batch

TOPIC = TopicImage(name="t", topic_id=TopicId("T" * 22), partitions=())
AT = TopicPartition("t", 0)


class OneLog:
    """A backend with one log. Fetches that would wait never return: nothing grows unseen by a read."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.batches: list[RecordBatch] = []
        self.limits: list[int] = []
        """The bytes that each request for a read has allowed."""
        self.stale = 0
        self.error: Errors | None = Errors.NONE
        """That of each response; None: there is no response."""
        self.grown = 0
        self.deletes_during_reads = False
        self.reads = LogReads(0, self, self.loop, stale=self._stale, moved=lambda *_: None)  # type: ignore[arg-type]
        self.reads.image = ClusterImage(topics={"t": TOPIC}, topics_by_id={TOPIC.topic_id: TOPIC})

    def _stale(self) -> None:
        self.stale += 1

    def _grew(self) -> None:
        self.grown += 1

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def append(self, count: int) -> None:
        """A batch of `count` records."""
        self.batches.append(batch(self.end, *(["v" * 20] * count)))

    def soon(self, call: Callable[[], object]) -> None:
        self.loop.post(call)

    def call(self, node: int, request: FetchRequest, done: Callable[[Answer], Any], *, lane: str) -> None:
        del node
        if lane != READS:
            return
        if self.deletes_during_reads:
            self.reads.forget()
        if self.error is None:
            self.loop.post(done, Answer(1, None, Errors.NETWORK_EXCEPTION))
            return
        (wanted,) = request.topics[0].partitions
        self.limits.append(wanted.partition_max_bytes)
        found: list[RecordBatch] = []
        for one in self.batches:
            if one.last_offset < wanted.fetch_offset:
                continue
            if found and sum(b.size for b in found) + one.size > wanted.partition_max_bytes:
                break
            found.append(one)
        partition = FetchResponse.Partition(
            partition_index=0,
            error_code=self.error,
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=0,
            records=tuple(found),
        )
        topic = FetchResponse.Topic(topic_id=TOPIC.topic_id, partitions=(partition,))
        self.loop.post(done, Answer(1, FetchResponse(responses=(topic,))))

    def read(
        self, offset: int, end_offset: int, max_bytes: int = 1 << 25, level: int = IsolationLevel.READ_UNCOMMITTED
    ) -> LogRead:
        found: list[LogRead] = []
        effect = ReadLog(7, AT, offset, max_bytes, level, end_offset)
        self.loop.enter(lambda: self.reads.read(effect, found.append, self._grew))
        assert self.loop.wait(lambda: bool(found), 0)
        return found[0]

    def advance(self, ms: int) -> None:
        assert not self.loop.wait(lambda: False, ms)


def offsets(read: LogRead) -> list[tuple[int, int]]:
    return [(one.base_offset, one.last_offset) for one in read.batches]


def test_parts_of_a_batch_are_read_with_one_request() -> None:
    log = OneLog()
    log.append(100)
    log.append(100)
    for offset in range(0, 100, 20):
        assert offsets(log.read(offset, offset + 20))[0] == (0, 99)
    assert len(log.limits) == 1


def test_a_part_that_was_not_read_needs_another_request() -> None:
    log = OneLog()
    log.append(100)
    log.append(100)
    log.read(0, 20, max_bytes=1)
    assert offsets(log.read(90, 110)) == [(0, 99), (100, 199)]
    assert len(log.limits) == 2


def test_what_was_read_is_kept_for_a_short_time() -> None:
    log = OneLog()
    log.append(100)
    log.read(0, 20)
    log.advance(KEPT_MS)
    log.read(20, 40)
    assert len(log.limits) == 1
    log.advance(KEPT_MS + 1)
    log.read(40, 60)
    assert len(log.limits) == 2
    log.advance(2 * SWEEP_MS)
    assert not log.reads._kept


def test_what_was_read_before_records_were_deleted_is_forgotten() -> None:
    log = OneLog()
    log.append(100)
    log.read(0, 20)
    log.reads.forget()
    log.read(20, 40)
    assert len(log.limits) == 2


def test_a_deletion_through_the_process_is_noticed_before_its_response(monkeypatch: pytest.MonkeyPatch) -> None:
    node = OneNode(DeleteRecordsResponse(topics=()))
    forgotten: list[LogReads] = []

    def forget(reads: LogReads) -> None:
        forgotten.append(reads)

    monkeypatch.setattr(LogReads, "forget", forget)
    node.ask(DeleteRecordsRequest(topics=()))
    assert len(forgotten) == 1


def test_a_read_under_way_while_records_are_deleted_serves_no_other_one() -> None:
    log = OneLog()
    log.append(100)
    log.deletes_during_reads = True
    assert offsets(log.read(0, 20)) == [(0, 99)]
    log.read(20, 40)
    assert len(log.limits) == 2


def test_a_read_of_committed_records_needs_a_request_of_its_own() -> None:
    log = OneLog()
    log.append(100)
    log.read(0, 20)
    log.read(20, 40, level=IsolationLevel.READ_COMMITTED)
    assert len(log.limits) == 2


def test_a_read_before_what_was_read_needs_a_request() -> None:
    log = OneLog()
    log.append(100)
    log.append(100)
    log.read(150, 170)
    assert offsets(log.read(0, 20))[0] == (0, 99)
    assert len(log.limits) == 2


def test_a_read_asks_for_as_much_as_its_window_can_take() -> None:
    log = OneLog()
    for _ in range(20):
        log.append(100)
    size = log.batches[-1].size
    log.read(0, 200)
    log.advance(KEPT_MS + 1)
    log.read(200, 400)
    assert log.limits[0] == FIRST_BYTES
    assert 2 * size < log.limits[1] <= 5 * size
    log.advance(KEPT_MS + 1)
    log.read(400, MAX_OFFSET)
    assert log.limits[2] == 1 << 25


@pytest.mark.parametrize("leader", [7, None], ids=["it leads", "another one leads"])
def test_the_size_of_records_is_known_while_the_node_leads(leader: int | None) -> None:
    log = OneLog()
    log.append(100)
    log.read(0, 20)
    log.advance(KEPT_MS + 1)
    partition = PartitionImage(leader=7, leader_epoch=0, replicas=(7,), isr=(7,))
    topic = replace(TOPIC, partitions=(partition,))
    log.reads.image_changed(ClusterImage(topics={"t": topic}, topics_by_id={topic.topic_id: topic}), leader or 8)
    log.read(20, 40)
    assert (log.limits[1] == FIRST_BYTES) is (leader is None)
    assert bool(log.reads._sizes)


def test_the_size_of_records_of_a_deleted_topic_is_forgotten() -> None:
    log = OneLog()
    log.append(100)
    log.read(0, 20)
    log.reads.image_changed(ClusterImage(), 7)
    assert not log.reads._sizes


@pytest.mark.parametrize(
    ("error", "stale"),
    [
        (Errors.NOT_LEADER_OR_FOLLOWER, 1),
        (Errors.KAFKA_STORAGE_ERROR, 1),
        (Errors.UNKNOWN_TOPIC_ID, 1),
        (Errors.CORRUPT_MESSAGE, 0),
    ],
)
def test_the_metadata_are_read_again_after_errors_of_a_broker_that_may_not_lead(error: Errors, stale: int) -> None:
    """BEHAVIOUR.md, 2.5."""
    log = OneLog()
    log.append(10)
    log.error = error
    assert log.read(0, 10).error is error
    assert log.stale == stale


@pytest.mark.parametrize("error", [Errors.NOT_LEADER_OR_FOLLOWER, None], ids=["refused", "not answered"])
def test_a_read_that_failed_is_reported_for_another_attempt(error: Errors | None) -> None:
    """BEHAVIOUR.md, 2.5: its leader reads again, and keeps the locks."""
    log = OneLog()
    log.append(10)
    log.error = error
    assert log.read(0, 10).error is Errors.NOT_LEADER_OR_FOLLOWER
    log.advance(RETRY_MS - 1)
    assert log.grown == 0
    log.advance(1)
    assert log.grown == 1


def test_every_read_continues_the_log() -> None:
    """Each read has the batch with its offset, no gap after it, and the log's end as it was at most KEPT_MS ago."""
    for seed in range(200):
        rng, log = Random(seed), OneLog()
        ends = [(0, 0)]
        for step in range(40):
            if rng.random() < 0.4 or not log.batches:
                log.append(rng.randint(1, 30))
                ends.append((log.loop.time_ms(), log.end))
            log.advance(rng.choice((0, 0, 1, 5, KEPT_MS, 3 * KEPT_MS)))
            offset, max_bytes = rng.randrange(log.end), rng.choice((1, 500, 5_000, 1 << 25))
            read = log.read(offset, offset + rng.randint(1, 60), max_bytes)
            found = offsets(read)
            assert found[0][0] <= offset <= found[0][1], (seed, step)
            assert all(one[1] + 1 == two[0] for one, two in pairwise(found)), (seed, step)
            oldest = max(end for at, end in ends if at < log.loop.time_ms() - KEPT_MS or end == 0)
            assert oldest <= read.high_watermark <= log.end, (seed, step)
