"""Locks of a query's member that are lost while it has records for later batches, and acquired again by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shareq import Cluster, Producer
from shareq.broker.transport import InProcessConnection
from shareq.model.states import RecordState
from shareq.spark.reader import fetcher
from shareq.spark.stream import StreamReader
from tests.broker.ledger import Books
from tests.spark.test_source_reader import EVERY, GROUP, RECORDS, TOPIC, Scene, places, plan, rows

LIMIT = 3


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Scene]:
    fetcher.cache_clear()  # clusters with the same seed have the same name
    with Cluster(brokers=2, seed=5) as cluster:
        cluster.create_topic(TOPIC, 2)
        cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
        with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            for number in range(RECORDS):
                producer.produce(TOPIC, b"value-%d" % number, partition=number % 2)
        yield Scene(cluster, str(tmp_path / "verdicts"))


def lose_connection(at: Scene, reader: StreamReader) -> None:
    """Brokers give back what the member has locked."""
    assert reader._member is not None
    connection = reader._member._connection
    assert isinstance(connection, InProcessConnection)
    at.cluster.network.disconnect(connection.connection_id)
    at.cluster.advance(0)


def move_leader(at: Scene, reader: StreamReader) -> None:
    del reader
    at.cluster.stop_broker(0)
    at.cluster.start_broker(0)


def move_leader_and_back(at: Scene, reader: StreamReader) -> None:
    move_leader(at, reader)
    at.cluster.elect_preferred_leaders()


@pytest.mark.parametrize("lose", [lose_connection, move_leader, move_leader_and_back])
@pytest.mark.parametrize("steps", [(0,), (1,), (0, 1), (1, 4, 6)], ids=str)
def test_no_batch_has_a_record_that_is_accepted(
    at: Scene, lose: Callable[[Scene, StreamReader], None], steps: tuple[int, ...]
) -> None:
    """The newer lock counts: the older copy of what waits for a batch is void."""
    reader = at.reader(**{"kafka.share.acquire.mode": "batch_optimized"})
    offset, books, read, step = reader.initialOffset(), Books(GROUP), 0, 0
    found: set[tuple[int, int]] = set()
    while (end := plan(reader, offset, LIMIT)) != offset:
        entries = at.cluster.journal.since(read)
        read += len(entries)
        books.read(entries)
        batch = places(rows(reader, offset, end))
        assert not [place for place in batch if books.state[(TOPIC, *place)] is RecordState.ACKNOWLEDGED], (
            f"step {step}"
        )
        found |= set(batch)
        offset = end
        if step in steps:
            lose(at, reader)
        step += 1
    assert found == set(EVERY)
    assert at.lag() == 0
    reader.stop()
