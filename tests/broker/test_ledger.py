"""The ledger of a share group's records, tested where no event reports that a write succeeded."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.model.events import (
    Event,
    RecordsChanged,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.trace import Entry
from tests.broker.ledger import Books


def events(cluster: Cluster, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in cluster.journal.entries() if isinstance(entry.event, kind)]


@pytest.mark.without("control-records", "the leader that moves is the keeper, too, so that its answer is lost")
@pytest.mark.parametrize(
    ("accepted", "spso"),
    [
        pytest.param([0, 1, 2], 3, id="the next leader starts above them"),
        pytest.param([1, 2], 0, id="the next leader loads them"),
    ],
)
def test_records_accepted_while_the_leader_moved_are_accepted_once(accepted: list[int], spso: int) -> None:
    """The former leader reports success after it dropped the share-partition: the write is durable."""
    with Cluster(brokers=3, seed=1, latency_ms=20) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        preferred = cluster.image.topics["t"].partitions[0].leader
        cluster.stop_broker(preferred)
        cluster.start_broker(preferred)
        with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            for value in "abc":
                producer.produce("t", value)
        conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}
        consumer = ShareConsumer({**conf, "share.acknowledgement.mode": "explicit"})
        reports: list[tuple[set[int], Any]] = []
        consumer.set_acknowledgement_commit_callback(
            lambda places, error: reports.append((set().union(*places.values()), error))
        )
        consumer.subscribe(["t"])
        messages = consumer.poll(30)
        assert [message.offset() for message in messages] == [0, 1, 2]
        for offset in accepted:
            consumer.acknowledge(messages[offset])
        consumer.commit_async()
        assert cluster.wait(lambda: bool(events(cluster, StateWritePrepared)), 1)
        cluster.elect_preferred_leaders()
        cluster.advance(1000)
        assert events(cluster, SharePartitionDropped)
        consumer.close()
        assert reports == [(set(accepted), None)]
        with ShareConsumer(conf) as other:
            other.subscribe(["t"])
            assert {message.offset() for message in other.poll(60)} == {0, 1, 2} - set(accepted)
        assert events(cluster, SharePartitionLoaded)[-1].spso == spso
        books = Books("g")
        books.read(cluster.journal.entries())
        assert books.accepted == {("t", 0, offset): 1 for offset in accepted}


ACQUIRED, ACKNOWLEDGED, AVAILABLE = RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.AVAILABLE
BEFORE: list[Event] = [
    RecordsChanged("g", "t", 0, "acquire", 0, 1, ACQUIRED, 1, "m"),
    RecordsChanged("g", "t", 0, "prepared", 0, 1, ACQUIRED, 1, "m", to_state=ACKNOWLEDGED),
    RecordsChanged("g", "t", 0, "abandoned", 0, 1, ACQUIRED, 1, "m"),
    SharePartitionDropped("g", "t", 0, "another broker leads the partition"),
]


@pytest.mark.parametrize(
    ("spso", "runs", "accepted"),
    [
        pytest.param(1, (), 1, id="stored, and the window starts above it"),
        pytest.param(0, (Run(0, 1, ACKNOWLEDGED, 1), Run(1, 2, AVAILABLE, 1)), 1, id="stored"),
        pytest.param(0, (Run(0, 1, AVAILABLE, 1),), 0, id="not stored"),
    ],
)
def test_an_abandoned_write_may_be_durable(spso: int, runs: tuple[Run, ...], accepted: int) -> None:
    """The coordinator stored the write, and its response was late."""
    loaded = SharePartitionLoaded("g", "t", 0, spso, 2, runs, 1, 1, 5, 2000, 30_000)
    books = Books("g")
    books.read([Entry(number, 0, 0, event) for number, event in enumerate([*BEFORE, loaded])])
    assert books.accepted[("t", 0, 0)] == accepted


def test_a_window_that_passes_an_open_record_is_an_error() -> None:
    books = Books("g")
    loaded = SharePartitionLoaded("g", "t", 0, 1, 1, (), 1, 1, 5, 2000, 30_000)
    with pytest.raises(AssertionError, match="the window passed"):
        books.read([Entry(number, 0, 0, event) for number, event in enumerate([BEFORE[0], BEFORE[-1], loaded])])


ARCHIVED = RecordState.ARCHIVED
TIMED_OUT: list[Event] = [
    RecordsChanged("g", "t", 0, "acquire", 0, 1, ACQUIRED, 5, "m"),
    RecordsChanged("g", "t", 0, "lock_timeout", 0, 1, ARCHIVED, 5),
    StateWritePrepared("g", "t", 0, 0, 0, 1, (StateBatch(0, 0, ARCHIVED, 5),)),
]
MOVED = WindowMoved("g", "t", 0, 1, 1)


@pytest.mark.parametrize("passed", [[], [MOVED]], ids=["in the window", "below the window"])
@pytest.mark.parametrize("error", [None, 7, 0], ids=["in flight", "failed", "durable"])
def test_only_a_durable_lock_timeout_binds_the_next_leader(error: int | None, passed: list[Event]) -> None:
    """A lock timeout archives the record immediately: no request waits for its write, and the window may pass it."""
    loaded = SharePartitionLoaded("g", "t", 0, 0, 1, (Run(0, 1, AVAILABLE, 4),), 1, 1, 5, 2000, 30_000)
    settled: list[Event] = [] if error is None else [StateWriteSettled("g", "t", 0, 0, error)]
    books, durable = Books("g"), error == 0
    with pytest.raises(AssertionError, match="loaded as AVAILABLE") if durable else nullcontext():
        books.read([Entry(number, 0, 0, event) for number, event in enumerate([*TIMED_OUT, *settled, *passed, loaded])])
    assert books.state["t", 0, 0] is (ARCHIVED if durable else AVAILABLE)


def test_a_record_accepted_before_its_write_succeeded_is_an_error() -> None:
    books = Books("g")
    accepted = RecordsChanged("g", "t", 0, "settled", 0, 1, ACKNOWLEDGED, 1)
    with pytest.raises(AssertionError, match="before its write"):
        books.read([Entry(number, 0, 0, event) for number, event in enumerate([*BEFORE[:2], accepted])])
