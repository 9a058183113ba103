"""The tally of a share-partition: compared with the ledger, the metrics and the latencies of the same journal."""

from __future__ import annotations

from itertools import pairwise
from operator import sub
from random import Random

import pytest

from shareq.model.events import (
    DurableStateRead,
    Event,
    RecordsAppended,
    RecordsChanged,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.states import RecordEvent
from shareq.trace import Entry, Journal, attempts, ledger, metrics
from shareq.trace.analysis import outline, replay, share_partition_state
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.tally import Gauges, Tallies, Tally
from tests.budgets import cases
from tests.trace.histories import GROUP, TOPIC, WHERE, loaded, random_history
from tests.trace.random_clusters import recorded_cluster
from tests.trace.random_groups import random_journal
from tests.trace.traced_cluster import GROUP as RUN_GROUP
from tests.trace.traced_cluster import TOPIC as RUN_TOPIC
from tests.trace.traced_cluster import traced_cluster


def tally(journal: Journal, group: str, topic: str, partition: int = 0) -> Tally:
    timeline = PartitionTimeline(journal, group, topic, partition)
    timeline.refresh()
    (found,) = Tallies(timeline).at([0, len(timeline.entries)])[1]
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
    pytest.param([(1, 0, loaded(0, 10)), (2, 0, SharePartitionDropped(*WHERE, "x")), (2, 1, loaded(0, 10)),
                  (5, 0, ACQUIRED)], (0, 0, 0, 0), id="a leader that has dropped it"),
    pytest.param([(1, 0, loaded(0, 10)), (5, 0, ACQUIRED), (7, 0, StateWritePrepared(*WHERE, 0, 0, 0, ())),
                  (8, 0, StateWriteSettled(*WHERE, 0, 6)),
                  (9, 0, DONE._replace(cause="abandoned", state=1))], (10, 0, 0, 0), id="a failed write"),
])  # fmt: skip
def test_a_tally_counts_records(history: list[tuple[int, int, Event]], expected: tuple[int, ...]) -> None:
    journal = Journal()
    for time_ms, broker_id, event in history:
        journal.record(time_ms, broker_id, event)
    found = tally(journal, GROUP, TOPIC)
    assert (found.delivered, found.accepted, found.waited_ms, found.waits) == expected


class Recount:
    """The same counts, offset by offset, of all entries from the first one on."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Tally._fields, 0)
        self.leader: int | None = None
        self.acquired_ms: dict[int, int] = {}

    def apply(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, SharePartitionLoaded):
            self.leader, self.acquired_ms = entry.broker_id, {}
        elif isinstance(event, SharePartitionDropped) and entry.broker_id == self.leader:
            self.leader = -1
        elif isinstance(event, RecordsChanged) and self.leader in (None, entry.broker_id):
            for offset in range(event.first, event.end):
                self.change(offset, entry.time_ms, event)

    def change(self, offset: int, time_ms: int, event: RecordsChanged) -> None:
        final = event.state in (2, 4) and event.cause != "prepared"
        if (event.cause, event.state) == ("acquire", 1):
            self.acquired_ms[offset] = time_ms
            self.counts["delivered"] += 1
            self.counts["redelivered"] += event.delivery_count > 1
        self.counts["timeouts"] += event.cause == "lock_timeout"
        since = self.acquired_ms.pop(offset, None) if final else None
        if (event.cause, event.state) == ("settled", 2):
            self.counts["accepted"] += 1
            self.counts["waits"] += since is not None
            self.counts["waited_ms"] += 0 if since is None else time_ms - since
        self.counts["completed"] += final
        self.counts["attempts"] += event.delivery_count if final else 0


def check(journal: Journal, where: tuple[str, str, int], draw: Random) -> None:
    """Compare tallies and gauges at random positions with a recount, and with the states there."""
    timeline, recount = PartitionTimeline(journal, *where), Recount()
    entries = timeline.refresh()
    totals = [Tally(**recount.counts)]
    for entry in entries:
        recount.apply(entry)
        totals.append(Tally(**recount.counts))
    tallies = Tallies(timeline)
    for _ in range(12):
        counts = sorted(draw.randrange(len(entries) + 1) for _ in range(6))
        gauges, spans = tallies.at(counts)
        for (before, after), found in zip(pairwise(counts), spans, strict=True):
            assert found == Tally(*map(sub, totals[after], totals[before])), (before, after)
        for count, shown in zip(counts, gauges, strict=True):
            state = timeline.state(count)
            full = state.loaded and not state.observed and state.in_flight >= state.max_record_locks
            in_flight = None if state.observed else state.in_flight
            assert shown == Gauges(state.lag, in_flight, state.max_record_locks, full, state.observed), count


@pytest.fixture(params=[256, 4])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes begin at outlines that lie close together, too."""
    monkeypatch.setattr(replay, "CHECKPOINT_EVERY", request.param)
    for module in (outline, share_partition_state):
        monkeypatch.setattr(module, "PAST_OFFSETS", 3)


@pytest.mark.usefixtures("block")
def test_tallies_and_gauges_between_random_positions(seed: int) -> None:
    for number in range(cases(4, 8)):
        draw = Random(f"{seed}/{number}")
        *_, (journal, _) = random_history(draw, 250)
        check(journal, WHERE, draw)


@pytest.mark.usefixtures("block")
def test_tallies_and_gauges_of_groups_and_clusters_under_faults(seed: int) -> None:
    for journal in (random_journal(seed), random_journal(seed + 1), recorded_cluster(seed, 120).journal):
        for group, topic, partition in sorted(s for s in journal.subjects() if None not in s):
            check(journal, (str(group), str(topic), partition or 0), Random(seed))


def test_tallies_and_gauges_of_an_observer() -> None:
    journal = Journal()
    journal.record(0, 0, RecordsAppended(TOPIC, 0, 0, 10))
    for time_ms in range(3):
        journal.record(time_ms, -1, DurableStateRead(*WHERE, time_ms, (Run(3, 5, 2, 1),), 2, 0, 1, 0))
    check(journal, WHERE, Random(1))


def test_a_bounded_journal_may_have_dropped_the_load() -> None:
    journal = Journal(capacity=2)
    for time_ms, event in ((1, loaded(0, 10)), (5, ACQUIRED), (9, DONE)):
        journal.record(time_ms, 0, event)
    found = tally(journal, GROUP, TOPIC)
    assert (found.delivered, found.accepted, found.waited_ms, found.waits) == (10, 2, 8, 2)


def test_an_offset_far_away_needs_no_room_between() -> None:
    journal, far = Journal(), 10**12
    journal.record(0, 0, loaded(0, 0))
    for first, passed in ((0, far), (far, far + 2)):
        journal.record(1, 0, ACQUIRED._replace(first=first, end=first + 2))
        journal.record(1, 0, WindowMoved(*WHERE, first, first + 2))
        journal.record(3, 0, RecordsChanged(*WHERE, RecordEvent.MISSING, first, first + 2, 4, 1))
        journal.record(3, 0, WindowMoved(*WHERE, passed, passed))
    assert tally(journal, GROUP, TOPIC) == Tally(delivered=4, completed=4, attempts=4)


def test_later_positions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, (journal, _) = random_history(Random(1), 150)
    timeline = PartitionTimeline(journal, *WHERE)
    timeline.refresh()
    tallies, read = Tallies(timeline), list[list[int]]()

    def reading(counts: list[int]) -> None:
        read.append(counts)
        Tallies._read(tallies, counts)

    monkeypatch.setattr(tallies, "_read", reading)
    tallies.at([10, 20, 30])
    tallies.at([10, 20, 30, 40])
    tallies.at([20, 20, 30, 40])
    assert read == [[10, 20, 30], [30, 40]]
