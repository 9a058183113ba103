"""Cost of a trace: appending to the journal, snapshots, the ledger, plots, files."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.model.events import (
    RecordsAppended,
    RecordsChanged,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.trace import Journal, lag_over_time, ledger, raster, view
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.record_history import RecordHistory
from shareq.trace.views.group_timeline import GroupTimeline

pytestmark = pytest.mark.bench

GROUP, TOPIC = "payments", "flights"
WHERE = (GROUP, TOPIC, 0)
WINDOW = 500


@cache
def history(records: int) -> Journal:
    """Windows of 500 records, each divided by rejected records into runs of 4 on average: about 0.5 events a record."""
    rng, journal, now_ms = Random(7), Journal(), 0
    journal.record(0, 0, RecordsAppended(TOPIC, 0, 0, records))
    journal.record(0, 0, SharePartitionLoaded(*WHERE, 0, 0, (), 1, 0, 5, 2000, 30_000))
    for write, first in enumerate(range(0, records, WINDOW)):
        end = min(first + WINDOW, records)
        now_ms += 20
        journal.record(now_ms, 0, RecordsChanged(*WHERE, "acquire", first, end, 1, 1, "m", now_ms + 30_000))
        journal.record(now_ms, 0, WindowMoved(*WHERE, first, end))
        cuts = sorted({first, end, *rng.sample(range(first, end), (end - first) // 4)})
        runs = [(f, e, *rng.choice(((2, "accept"), (4, "reject")))) for f, e in pairwise(cuts)]
        for f, e, state, cause in runs:
            until_ms = now_ms + 30_000
            tagged = RecordsChanged(*WHERE, "prepared", f, e, 1, 1, "m", until_ms, write, state, cause)
            journal.record(now_ms, 0, tagged)
        journal.record(now_ms, 0, StateWritePrepared(*WHERE, write, first, end - first, ()))
        journal.record(now_ms, 0, StateWriteSettled(*WHERE, write, 0))
        for f, e, state, cause in runs:
            journal.record(now_ms, 0, RecordsChanged(*WHERE, "settled", f, e, state, 1, None, None, None, None, cause))
        journal.record(now_ms, 0, WindowMoved(*WHERE, end, end))
    return journal


@pytest.mark.parametrize("kind", ["on", "bounded", "off"])
def test_record_1000_events(benchmark: BenchmarkFixture, kind: str) -> None:
    journal = Journal(capacity=10_000 if kind == "bounded" else None, enabled=kind != "off")
    event = WindowMoved(*WHERE, 0, 0)

    def record() -> None:
        for _ in range(1000):
            journal.record(0, 0, event)

    benchmark.pedantic(record, rounds=200)
    assert len(journal) == {"on": 200_000, "bounded": 10_000, "off": 0}[kind]


@pytest.mark.parametrize("way", ["at random", "step by step"])
def test_a_snapshot_in_100k_events(benchmark: BenchmarkFixture, way: str) -> None:
    watching = view(history(200_000), GROUP, TOPIC)
    total = watching.total()
    assert total > 90_000
    watching.snapshot()
    rng, steps = Random(1), iter(range(50_000, total))
    benchmark.pedantic(
        lambda: watching.snapshot(rng.randrange(total) if way == "at random" else next(steps)), rounds=300
    )


def test_the_first_look_at_100k_events(benchmark: BenchmarkFixture) -> None:
    journal = history(200_000)

    def look() -> int:
        unread = Journal.of(journal.entries(), journal.origin_ms)
        return int(view(unread, GROUP, TOPIC).snapshot()["total"])

    assert benchmark.pedantic(look, rounds=3) > 90_000


def test_the_ledger_of_300k_records(benchmark: BenchmarkFixture) -> None:
    account = benchmark.pedantic(ledger, (history(300_000), GROUP, TOPIC), rounds=3)
    assert account.accepted + account.archived == 300_000


def test_the_raster_of_300k_records(benchmark: BenchmarkFixture) -> None:
    png = benchmark.pedantic(lambda: raster(history(300_000), GROUP, TOPIC)._repr_png_(), rounds=3)
    assert png


def test_the_lag_of_300k_records(benchmark: BenchmarkFixture) -> None:
    assert benchmark.pedantic(lag_over_time, (history(300_000), GROUP, TOPIC), rounds=3)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("way", ["write", "read"])
def test_a_file_of_100k_events(benchmark: BenchmarkFixture, tmp_path: Path, form: str, way: str) -> None:
    journal, path = history(200_000), tmp_path / "journal"
    getattr(journal, f"to_{form}")(path)
    action = getattr(journal, f"to_{form}") if way == "write" else getattr(Journal, f"from_{form}")
    benchmark.pedantic(action, (path,), rounds=2)


def test_locks_at_random_moments(benchmark: BenchmarkFixture) -> None:
    past, rng = GroupHistory(history(200_000), GROUP), Random(1)
    past.refresh()
    past.share_partition(TOPIC, 0, past.total)

    def seek() -> None:
        until = rng.randrange(1, past.total)
        past.locks(TOPIC, 0, until, past.journal[until - 1].time_ms)

    benchmark(seek)


def test_the_history_of_a_record(benchmark: BenchmarkFixture) -> None:
    past = GroupHistory(history(200_000), GROUP)
    past.refresh()
    timeline = past.timeline(TOPIC, 0)

    def read() -> int:
        record = RecordHistory(timeline, 100_000)
        record.refresh()
        return len(record.changes)

    assert benchmark(read) == 5


def test_the_first_state_at_the_end_of_350k_events(benchmark: BenchmarkFixture) -> None:
    """As the first picture of a long journal needs it: the fold begins near the end."""
    journal = history(700_000)

    def unread() -> tuple[tuple[PartitionTimeline], dict[str, object]]:
        timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
        timeline.refresh()
        return (timeline,), {}

    state = benchmark.pedantic(lambda timeline: timeline.state(len(timeline.entries)), setup=unread, rounds=3)
    assert state.spso == 700_000


def test_opening_a_group_in_350k_events(benchmark: BenchmarkFixture) -> None:
    entries = history(700_000).entries()
    total = benchmark.pedantic(lambda: GroupTimeline(Journal.of(entries, 0), GROUP).total(), rounds=3)
    assert total == len(entries)
