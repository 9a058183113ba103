"""Reads of a shard's log that fail, against a stand-in on virtual time. BEHAVIOUR.md of the backend, section 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq.broker.backend.shard_reads import ShardPlace, ShardReads
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import Answer, ReadRecords, RecordsRead
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.messages.data import ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.records import CoordinatorRecord

TOPIC = TopicId("T" * 22)
AT = TopicPartition("t", 0)
START, END = 7, 10


class OneShard:
    """A backend with one log from START to END, of which batches are left out; the first fetch fails with an error."""

    def __init__(self, first: Errors) -> None:
        self.loop = VirtualLoop()
        self.fetched: list[int] = []
        """The offset of each fetch."""
        self.stale_metadata = 0
        self._errors = [first]
        self.reads = ShardReads(AT, CoordinatorRecord(b"fence", None), self, self.loop, self)  # type: ignore[arg-type]

    def place(self, shard: TopicPartition) -> ShardPlace:
        return ShardPlace(shard, TOPIC, 0)

    def stale(self) -> None:
        self.stale_metadata += 1

    def call(self, node: int, request: Any, done: Callable[[Answer], Any], *, lane: str) -> None:
        del node, lane
        answer = self._start() if isinstance(request, ListOffsetsRequest) else self._fetch(request)
        self.loop.post(done, Answer(1, answer))

    def _start(self) -> ListOffsetsResponse:
        part = ListOffsetsResponse.Partition(partition_index=0, offset=START)
        return ListOffsetsResponse(topics=(ListOffsetsResponse.Topic(name="t", partitions=(part,)),))

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        self.fetched.append(request.topics[0].partitions[0].fetch_offset)
        error = self._errors.pop() if self._errors else Errors.NONE
        part = FetchResponse.Partition(
            partition_index=0, error_code=error, high_watermark=END, log_start_offset=START, last_stable_offset=END
        )
        return FetchResponse(responses=(FetchResponse.Topic(topic_id=TOPIC, partitions=(part,)),))

    def read(self, offset: int) -> RecordsRead:
        found: list[RecordsRead] = []
        effect = ReadRecords(1, AT, offset)
        self.loop.enter(lambda: self.reads.read(effect, found.append))
        assert self.loop.wait(lambda: bool(found), 10_000)
        return found[0]


def test_a_read_below_the_log_start_begins_there() -> None:
    shard = OneShard(Errors.OFFSET_OUT_OF_RANGE)
    assert shard.read(2).done
    assert shard.fetched == [2, START]


@pytest.mark.parametrize(
    "error",
    [Errors.NOT_LEADER_OR_FOLLOWER, Errors.UNKNOWN_TOPIC_ID, Errors.KAFKA_STORAGE_ERROR],
)
def test_a_read_that_fails_for_another_reason_is_sent_again(error: Errors) -> None:
    """At the same offset: from the log start on, records would be read twice."""
    shard = OneShard(error)
    assert shard.read(END - 1).done
    assert shard.fetched == [END - 1, END - 1]
    assert shard.stale_metadata == 1
