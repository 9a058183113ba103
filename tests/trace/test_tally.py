"""The tally of a share-partition: compared with the ledger, the metrics and the latencies of the same journal."""

from __future__ import annotations

from random import Random

import pytest

from shareq.model.events import Event, RecordsChanged, SharePartitionDropped, StateWriteSettled
from shareq.model.states import RecordEvent
from shareq.trace import Journal, attempts, ledger, metrics
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.tally import Acquisitions, Tally
from tests.trace.histories import GROUP, TOPIC, WHERE, loaded, random_history
from tests.trace.traced_cluster import GROUP as RUN_GROUP
from tests.trace.traced_cluster import TOPIC as RUN_TOPIC
from tests.trace.traced_cluster import traced_cluster


def tally(journal: Journal, group: str, topic: str, partition: int = 0) -> Tally:
    timeline, found = PartitionTimeline(journal, group, topic, partition), Tally()
    for entry in timeline.refresh():
        found.apply(entry)
    return found


def test_deliveries_and_timeouts_are_those_of_ledger_and_metrics(seed: int) -> None:
    for number in range(5):
        *_, (journal, _) = random_history(Random(f"{seed}/{number}"), 150)
        found, account = tally(journal, GROUP, TOPIC), ledger(journal, GROUP, TOPIC)[0]
        assert found.delivered == account.deliveries.sum()
        tags = {"group": GROUP, "topic": TOPIC, "partition": 0}
        assert found.timeouts == metrics(journal).value("AcquisitionLockTimeoutPerSec", attribute="Count", **tags)
        assert found.redelivered <= found.delivered
        assert found.accepted <= account.times_accepted.sum()


def test_acceptances_and_waits_are_those_of_a_run(seed: int) -> None:
    journal = traced_cluster(seed, latency_ms=3).journal
    parts = [tally(journal, RUN_GROUP, RUN_TOPIC, partition) for partition in range(3)]
    account, latency_ms = ledger(journal, RUN_GROUP, RUN_TOPIC), attempts(journal, RUN_GROUP, RUN_TOPIC).latency_ms
    assert sum(part.accepted for part in parts) == sum(part.times_accepted.sum() for part in account.values())
    assert sum(part.completed for part in parts) == account.accepted + account.archived
    waits = sum(part.waits for part in parts)
    assert waits == account.accepted > 0
    assert 0 < sum(part.waited_ms for part in parts) / waits <= latency_ms[100]


ACQUIRED = RecordsChanged(*WHERE, RecordEvent.ACQUIRE, 0, 10, 1, 1, "m", 99)
DONE = RecordsChanged(*WHERE, "settled", 2, 4, 2, 1, why="accept")


@pytest.mark.parametrize(("history", "expected"), [
    pytest.param([(1, 0, loaded(0, 10)), (5, 0, ACQUIRED), (9, 0, DONE)], (10, 2, 8, 2), id="part of a range"),
    pytest.param([(1, 0, loaded(0, 10)), (5, 0, ACQUIRED), (7, 0, ACQUIRED._replace(first=3, end=4, delivery_count=2)),
                  (9, 0, DONE)], (11, 2, 6, 2), id="the last acquisition counts"),
    pytest.param([(1, 0, loaded(0, 10)), (5, 1, ACQUIRED), (9, 0, DONE)], (0, 2, 0, 0), id="a superseded leader"),
    pytest.param([(1, 0, loaded(0, 10)), (5, 0, ACQUIRED), (6, 1, loaded(0, 10)), (9, 1, DONE)], (10, 2, 0, 0),
                 id="locks end with their leader"),
    pytest.param([(1, 0, loaded(0, 10)), (2, 0, SharePartitionDropped(*WHERE, "x")), (5, 0, ACQUIRED)], (0, 0, 0, 0),
                 id="a leader that has dropped it"),
    pytest.param([(5, 0, ACQUIRED), (9, 0, DONE)], (10, 2, 8, 2), id="the load is not in a bounded journal"),
    pytest.param([(1, 0, loaded(0, 10)), (5, 0, ACQUIRED), (8, 0, StateWriteSettled(*WHERE, 0, 6)),
                  (9, 0, DONE._replace(cause="abandoned", state=1))], (10, 0, 0, 0), id="a failed write"),
])  # fmt: skip
def test_a_tally_counts_records(history: list[tuple[int, int, Event]], expected: tuple[int, ...]) -> None:
    journal = Journal()
    for time_ms, broker_id, event in history:
        journal.record(time_ms, broker_id, event)
    found = tally(journal, GROUP, TOPIC)
    assert (found.delivered, found.accepted, found.waited_ms, found.waits) == expected


def test_acquisitions_are_those_of_single_offsets(seed: int) -> None:
    draw, ranges, offsets = Random(seed), Acquisitions(), dict[int, int]()
    for now in range(400):
        first = draw.randrange(40)
        end = first + draw.randrange(1, 12)
        if draw.random() < 0.6:
            ranges.add(first, end, now)
            offsets |= dict.fromkeys(range(first, end), now)
        else:
            taken = {offset: at for begin, stop, at in ranges.take(first, end) for offset in range(begin, stop)}
            assert taken == {offset: offsets.pop(offset) for offset in range(first, end) if offset in offsets}
