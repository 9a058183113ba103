"""Records for later batches whose locks are lost, and which the same member acquires again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shareq.broker.transport import InProcessConnection
from shareq.consumer.fetch_buffer import AcquiredPiece
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.states import AcknowledgeType, IsolationLevel, RecordState
from shareq.spark.held import without
from shareq.spark.stream import StreamReader
from tests.broker.ledger import Books
from tests.spark.source_stage import EVERY, GROUP, RECORDS, TOPIC, SourceStage, places, plan, rows

ALL = IsolationLevel.READ_UNCOMMITTED
LIMIT = 3


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[SourceStage]:
    with SourceStage.opened(tmp_path, brokers=2) as made:
        yield made


def lose_connection(stage: SourceStage, reader: StreamReader) -> None:
    """Brokers release the member's records."""
    assert reader._member is not None
    connection = reader._member.connection
    assert isinstance(connection, InProcessConnection)
    stage.cluster.network.disconnect(connection.connection_id)
    stage.cluster.advance(0)


def move_leader(stage: SourceStage, reader: StreamReader) -> None:
    del reader
    stage.cluster.stop_broker(0)
    stage.cluster.start_broker(0)


def move_leader_and_back(stage: SourceStage, reader: StreamReader) -> None:
    move_leader(stage, reader)
    stage.cluster.elect_preferred_leaders()


@pytest.mark.parametrize("lose", [lose_connection, move_leader, move_leader_and_back])
@pytest.mark.parametrize("steps", [(0,), (1,), (0, 1), (1, 4, 6)], ids=str)
def test_no_batch_has_a_record_that_was_accepted(
    stage: SourceStage, lose: Callable[[SourceStage, StreamReader], None], steps: tuple[int, ...]
) -> None:
    """The newer lock counts: the older copies of records that wait for a batch are dropped."""
    reader = stage.reader(**{"kafka.share.acquire.mode": "batch_optimized"})
    offset, books, read, step = reader.initialOffset(), Books(GROUP), 0, 0
    found: set[tuple[int, int]] = set()
    while (end := plan(reader, offset, LIMIT)) != offset:
        entries = stage.cluster.journal.since(read)
        read += len(entries)
        books.read(entries)
        batch = places(rows(reader, offset, end))
        assert not [place for place in batch if books.state[(TOPIC, *place)] is RecordState.ACKNOWLEDGED], (
            f"step {step}"
        )
        found |= set(batch)
        offset = end
        if step in steps:
            lose(stage, reader)
        step += 1
    assert found == set(EVERY)
    assert stage.lag() == 0
    reader.stop()


def test_no_batch_has_a_record_twice(stage: SourceStage) -> None:
    """The leader moves while a batch is filled: records from the new leader replace the older copies."""
    reader = stage.reader(**{"kafka.share.acquire.mode": "batch_optimized"})
    plan(reader, reader.initialOffset(), LIMIT)
    member = reader._member
    assert member is not None
    ((waits, former),) = member._surplus
    newer = stage.cluster.log(TOPIC, waits.partition).read(10, max_bytes=1 << 20, isolation=ALL).batches[0]
    key = TopicIdPartition(TopicId(waits.topic_id), waits.partition)
    member._core._buffer.extend([AcquiredPiece(key, TOPIC, 1 - former, 10, 15, 2, newer)])
    taken = [held for held in member.acquire(2 * RECORDS, 500) if held.range.partition == waits.partition]
    assert sorted((at.first, at.end, node) for at, node in taken) == [
        (3, 10, former),
        (10, 15, 1 - former),
        (15, 20, former),
    ]
    member.settle(taken, AcknowledgeType.ACCEPT, {})
    assert without(taken, member._held) == taken
    reader.stop()
