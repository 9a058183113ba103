"""States that are begun near a moment equal those folded from the beginning, in every field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from random import Random
from typing import Any

import pytest

from shareq.model.events import ObservationDisturbed, RecordsChanged, WindowMoved
from shareq.trace import Entry, Journal, JournalCorrupt, SharePartitionState
from shareq.trace.analysis import outline, partition_timeline, replay, share_partition_state
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded, random_history
from tests.trace.random_clusters import recorded_cluster
from tests.trace.random_groups import random_journal


@pytest.fixture(autouse=True)
def begin_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints lie close together, few offsets below the SPSO are kept, and every state off the checkpoints is begun
    at an outline if it can be."""
    monkeypatch.setattr(replay, "CHECKPOINT_EVERY", 4)
    monkeypatch.setattr(replay, "FAR", 0)
    for module in (outline, partition_timeline, share_partition_state):
        monkeypatch.setattr(module, "PAST_OFFSETS", 3)


def described(state: SharePartitionState) -> dict[str, Any]:
    """All fields, as values that can be compared."""
    return {field.name: getattr(state, field.name) for field in fields(state)} | {
        "runs": list(state.runs),
        "complete": state.runs.complete,
    }


def timelines(journal: Journal) -> list[PartitionTimeline]:
    found = {s for s in journal.subjects() if None not in s}
    made = [PartitionTimeline(journal, *subject) for subject in sorted(found)]  # type: ignore[arg-type]
    for timeline in made:
        timeline.refresh()
    return made


def count_begun(timeline: PartitionTimeline, rng: Random, seeks: int) -> int:
    """Compare states at random moments with the fold from the beginning; return the number of those begun late."""
    folded = SharePartitionState(timeline.group, timeline.topic, timeline.partition)
    expected = [described(folded.copy())]
    for position, entry in enumerate(timeline.entries):
        if position in timeline._gaps:
            folded.miss_entries()
        apply_entry(folded, entry)
        expected.append(described(folded.copy()))
    begun, begin = [], timeline._begin

    def begin_and_note(count: int, after: int) -> SharePartitionState | None:
        state = begin(count, after)
        begun.append(state is not None)
        return state

    timeline._replay._begin = begin_and_note
    for count in [rng.randrange(len(expected)) for _ in range(seeks)]:
        assert described(timeline.state(count)) == expected[count], count
    return sum(begun)


def test_of_random_histories_of_a_leader(seed: int) -> None:
    begun = 0
    for number in range(12):
        rng = Random(f"{seed}/{number}")
        *_, (journal, _) = random_history(rng, 250)
        begun += sum(count_begun(timeline, rng, 40) for timeline in timelines(journal))
    assert begun > 20


def test_of_random_groups_under_faults(seed: int) -> None:
    begun = 0
    for number in range(4):
        rng = Random(f"{seed}/{number}")
        begun += sum(count_begun(timeline, rng, 40) for timeline in timelines(random_journal(seed + number)))
    assert begun > 0


def test_of_random_clusters_with_failing_brokers(seed: int) -> None:
    """Of a few journals none has a moment whose state is begun late; then further ones follow."""
    begun, wanted = 0, cases(1, 3)
    for number in range(20):
        journal = recorded_cluster(seed + number, 120).journal
        begun += sum(count_begun(timeline, Random(seed), 40) for timeline in timelines(journal))
        if begun and number + 1 >= wanted:
            return
    pytest.fail("no state was begun late")


def test_a_moment_that_several_views_ask_for_is_folded_once(seed: int) -> None:
    *_, (journal, _) = random_history(Random(seed), 250)
    (timeline,) = timelines(journal)
    end = len(timeline.entries)
    shown = timeline.state(end // 2)
    before = described(shown)
    timeline.state(end // 4)
    timeline.state(end)
    assert timeline.state(end // 2) is shown
    assert described(shown) == before


def test_an_entry_that_is_read_is_applied(seed: int) -> None:
    *_, (journal, _) = random_history(Random(seed), 250)
    applied, read = (outline.Outline(SharePartitionState(*WHERE)) for _ in range(2))
    for entry in journal:
        applied.apply(entry)
        read.read([entry])
        assert applied.reach == read.reach
        assert described(applied.state) == described(read.state)


def partial_journals(seed: int) -> Iterator[tuple[Journal, PartitionTimeline]]:
    """Bounded journals: the first entries are missing, and some between two refreshes."""
    for capacity in (60, 200, 500):
        rng, bounded = Random(f"{seed}/{capacity}"), Journal(ORIGIN_MS, capacity=capacity)
        *_, (journal, _) = random_history(rng, 250)
        timeline = PartitionTimeline(bounded, GROUP, TOPIC, 0)
        for order, time_ms, broker_id, event in journal:
            bounded.record(time_ms, broker_id, event)
            if order > 2 * capacity and not rng.randrange(2 * capacity):
                timeline.refresh()
        timeline.refresh()
        yield bounded, timeline


def test_of_journals_that_have_lost_entries(seed: int) -> None:
    for _, timeline in partial_journals(seed):
        count_begun(timeline, Random(seed), 60)


def busy(windows: int) -> Journal:
    """Windows of ten records each; each is acquired and archived."""
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, 0, loaded(0, 0))
    for first in range(0, 10 * windows, 10):
        held = RecordsChanged(*WHERE, "acquire", first, first + 10, 1, 1, "m", ORIGIN_MS + 30_000)
        journal.record(ORIGIN_MS, 0, held)
        journal.record(ORIGIN_MS, 0, WindowMoved(*WHERE, first, first + 10))
        gone = RecordsChanged(*WHERE, "lock_timeout", first, first + 10, 4, 1)
        journal.record(ORIGIN_MS, 0, gone)
        journal.record(ORIGIN_MS, 0, WindowMoved(*WHERE, first + 10, first + 10))
    return journal


def test_few_entries_are_applied_before_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    (timeline,) = timelines(busy(500))
    applied: list[int] = []
    monkeypatch.setattr(timeline._replay, "_apply", lambda _, position, __: applied.append(position))
    timeline.state(1_900)
    assert len(applied) < 2 * 4


def fold(entries: list[Entry]) -> None:
    """Apply all entries from the first one on."""
    state = SharePartitionState(*WHERE)
    for entry in entries:
        apply_entry(state, entry)


def test_a_contradiction_far_from_the_moment_is_found_by_the_fold_from_the_beginning_alone() -> None:
    journal = busy(100)
    contradiction = RecordsChanged(*WHERE, "settled", 1_000, 1_001, 2, 1)
    journal.record(ORIGIN_MS, 0, contradiction)
    for event in (entry.event for entry in busy(250)[401:]):
        journal.record(ORIGIN_MS, 0, event)
    (timeline,) = timelines(journal)
    assert timeline.state(len(timeline.entries)).spso == 2_500
    with pytest.raises(JournalCorrupt, match="not completely in flight") as caught:
        fold(timeline.entries)
    assert caught.value.entry.event == contradiction


def test_a_window_that_cannot_move_is_found_by_the_outline_too() -> None:
    journal = busy(100)
    journal.record(ORIGIN_MS, 0, WindowMoved(*WHERE, 10, 20))
    for event in (entry.event for entry in busy(250)[401:]):
        journal.record(ORIGIN_MS, 0, event)
    (timeline,) = timelines(journal)
    with pytest.raises(JournalCorrupt, match="cannot become"):
        timeline.state(len(timeline.entries))


def test_an_observed_state_is_begun_at_its_outline() -> None:
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, -1, ObservationDisturbed("the topic cannot be read"))
    for _ in range(20):
        journal.record(ORIGIN_MS, -1, ObservationDisturbed(""))
    timeline = PartitionTimeline(journal, *WHERE)
    timeline.refresh()
    assert count_begun(timeline, Random(1), 20) > 0
