"""The durable state: the records of the state topic, folded as the share coordinator combines them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from shareq.model.events import DurableStateRead, Event, Run, SharePartitionLoaded, StateRecordWritten, TopicCreated
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.trace import Journal
from shareq.trace.analysis import replay
from shareq.trace.analysis.durable_state import DurableState, DurableTimeline
from shareq.trace.analysis.fold import JournalCorrupt
from shareq.trace.analysis.group_history import GroupHistory
from tests.broker.stage import PLACES, LedgerStage
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE
from tests.trace.random_groups import random_journal

CREATED = TopicCreated(TOPIC, "id", 1)


def written(kind: str, epoch: int, start: int, *batches: tuple[int, int, int, int], key: str = "id:0") -> Event:
    return StateRecordWritten(f"{GROUP}:{key}", kind, epoch, start, tuple(StateBatch(*batch) for batch in batches))


TOMBSTONE = written("tombstone", -1, -1)
STARTED = [CREATED, written("snapshot", 0, -1)]
STORED = [*STARTED, written("update", 0, 5, (5, 9, 2, 1), (10, 10, 0, 2))]


def folded(events: list[Event], capacity: int | None = None) -> DurableState:
    journal = Journal(ORIGIN_MS, capacity=capacity)
    for place, event in enumerate(events):
        journal.record(ORIGIN_MS + place, 2, event)
    timeline = DurableTimeline(journal, GROUP, TOPIC, 0)
    timeline.refresh()
    return timeline.state(len(timeline.entries))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], (False, False, -1, -1, 0, ()), id="nothing"),
        pytest.param([CREATED], (False, False, -1, -1, 0, ()), id="a topic without state"),
        pytest.param(STARTED, (True, False, 0, -1, 0, ()), id="initialized, the start is not decided"),
        pytest.param(STORED, (True, False, 0, 5, 1, ((5, 9, 2, 1), (10, 10, 0, 2))), id="an update"),
        pytest.param(
            [*STORED, written("update", 0, 8, (10, 11, 2, 2))],
            (True, False, 0, 8, 2, ((8, 9, 2, 1), (10, 11, 2, 2))),
            id="batches are combined from the start offset on",
        ),
        pytest.param(
            [*STORED, written("snapshot", 1, 9, (9, 12, 0, 1))],
            (True, False, 1, 9, 0, ((9, 12, 0, 1),)),
            id="a snapshot replaces all",
        ),
        pytest.param(
            [CREATED, written("checkpoint", 65_535, 5), written("delta", 65_535, 5, (5, 9, 2, 1))],
            (True, False, 65_535, 5, 1, ((5, 9, 2, 1),)),
            id="a checkpoint and a delta",
        ),
        pytest.param(
            [CREATED, written("checkpoint", 65_535, 5), written("checkpoint", 0, 9)],
            (True, False, 0, 9, 0, ()),
            id="epochs of checkpoints begin again",
        ),
        pytest.param([*STORED, TOMBSTONE], (False, True, -1, -1, 0, ()), id="a tombstone"),
        pytest.param(
            [*STORED, TOMBSTONE, written("snapshot", 0, 3)], (True, False, 0, 3, 0, ()), id="initialized again"
        ),
        pytest.param([*STORED, TopicCreated(TOPIC, "id2", 1)], (False, False, -1, -1, 0, ()), id="another topic"),
        pytest.param(
            [*STARTED, written("tombstone", -1, -1, key="id:10"), written("update", 0, 1, key="old:0")],
            (True, False, 0, -1, 0, ()),
            id="records of other share-partitions",
        ),
        pytest.param(
            [CREATED, DurableStateRead(*WHERE, 3, (Run(3, 5, 0, 1),), 0, 4, 1, 0)],
            (True, False, 4, 3, 0, ((3, 4, 0, 1),)),
            id="read by an observer",
        ),
        pytest.param(
            [CREATED, DurableStateRead(*WHERE, -1, (), -1, -1, -1, -1)],
            (False, False, -1, -1, 0, ()),
            id="an observer has found no state",
        ),
    ],
)
def test_the_state_after_these_records(events: list[Event], expected: tuple[Any, ...]) -> None:
    state = folded(events)
    found = (state.exists, state.deleted, state.snapshot_epoch, state.start_offset, state.updates)
    assert (*found, tuple(map(tuple, state.batches))) == expected


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param([CREATED, TOMBSTONE], "without state", id="a tombstone of nothing"),
        pytest.param([CREATED, written("update", 0, 1)], "without state", id="an update of nothing"),
        pytest.param([*STORED, written("update", 1, 5)], "update of snapshot 1, not 0", id="a later snapshot's update"),
        pytest.param(
            [*STORED, written("snapshot", 2, 5)], "snapshot 2 cannot follow snapshot 0", id="an epoch left out"
        ),
        pytest.param(
            [CREATED, written("snapshot", 65_535, 5), written("snapshot", 0, 5)],
            "snapshot 0 cannot follow snapshot 65535",
            id="epochs of snapshots do not begin again",
        ),
        pytest.param([*STORED, written("update", 0, 4)], "moves back from 5 to 4", id="the start moves back"),
        pytest.param([*STORED, written("note", 0, 5)], "kind='note'", id="an unknown kind"),
    ],
)
def test_records_that_no_coordinator_writes_are_refused(events: list[Event], why: str) -> None:
    with pytest.raises(JournalCorrupt, match=why):
        folded(events)


REST = [written("update", 4, 5, (5, 9, 2, 1)), written("update", 4, 7), written("snapshot", 5, 7, (7, 9, 2, 1))]


def test_records_that_were_dropped_before_they_were_read_make_the_state_partial_until_a_snapshot() -> None:
    journal = Journal(ORIGIN_MS, capacity=3)
    timeline = DurableTimeline(journal, GROUP, TOPIC, 0)
    journal.record(ORIGIN_MS, 2, CREATED)
    timeline.refresh()
    for event in [*STARTED[1:] * 8, *REST]:
        journal.record(ORIGIN_MS, 2, event)
    timeline.refresh()
    states = [timeline.state(count).copy() for count in range(len(timeline.entries) + 1)]
    assert [(s.partial, s.exists, s.start_offset) for s in states[1:]] == [
        (False, False, -1), (True, True, 5), (True, True, 7), (False, True, 7)
    ]  # fmt: skip


def test_without_the_topic_s_creation_nothing_is_known() -> None:
    state = folded([CREATED, *REST], capacity=3)
    assert (state.topic_id, state.exists) == (None, False)


def loaded_runs(state: DurableState, start_offset: int) -> tuple[int, list[tuple[int, int, RecordState, int]]]:
    """The SPSO and the runs (first, end, state, delivery count) that a leader has after it has loaded the state.

    The SPSO is behind the final records at the beginning, but not behind a hole that may hold a record.
    `start_offset`: where the share-partition begins if the state does not decide it. ARCHIVING records are ARCHIVED.
    """
    spso = state.start_offset if state.start_offset >= 0 else start_offset
    runs: list[tuple[int, int, RecordState, int]] = []
    for first, last, code, count in state.batches:
        code = RecordState.ARCHIVED if code == RecordState.ARCHIVING else RecordState(code)
        if first == spso and code in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED) and not runs:
            spso = last + 1
        else:
            runs.append((first, last + 1, code, count))
    return spso, runs


@pytest.mark.parametrize(
    ("start", "batches", "expected"),
    [
        pytest.param(-1, [], (7, []), id="the start is not decided"),
        pytest.param(5, [], (5, []), id="no records"),
        pytest.param(5, [(5, 6, 2, 1), (7, 7, 4, 5), (8, 9, 0, 1)], (8, [(8, 10, 0, 1)]), id="final at the start"),
        pytest.param(5, [(6, 7, 2, 1)], (5, [(6, 8, 2, 1)]), id="a hole at the start may hold a record"),
        pytest.param(5, [(5, 5, 0, 1), (6, 6, 3, 2)], (5, [(5, 6, 0, 1), (6, 7, 4, 2)]), id="archiving is archived"),
    ],
)
def test_the_runs_that_a_leader_loads(start: int, batches: list[Any], expected: Any) -> None:
    state = DurableState(exists=True, start_offset=start, batches=tuple(StateBatch(*batch) for batch in batches))
    assert loaded_runs(state, 7) == expected


def faulty_run(seed: int) -> LedgerStage:
    """A cluster after random faults: kills, failed writes, deleted and compacted records."""
    stage = LedgerStage(seed)
    for _ in range(100):
        stage.step()
    return stage


@pytest.mark.parametrize("run", range(3))
def test_every_load_of_a_leader_follows_from_the_durable_state(seed: int, run: int) -> None:
    """In a run with a load: in some runs no leader gets to one."""
    clusters = (faulty_run(seed + run + more) for more in range(0, 300, 3))
    faulty, loads = next(
        (made, found) for made in clusters if (found := made.cluster.journal.select(SharePartitionLoaded, group="g"))
    )
    history = GroupHistory(faulty.cluster, "g")
    history.refresh()
    for entry in loads:
        event = entry.event
        assert isinstance(event, SharePartitionLoaded)
        durable = history.durable(event.topic, event.partition, entry.order)
        assert durable.exists
        spso, runs = loaded_runs(durable, event.spso)
        assert (spso, [tuple(map(int, found)) for found in runs]) == (event.spso, [tuple(r) for r in event.runs])
    for topic, partition in PLACES:
        for until in faulty.rng.sample(range(history.total), 10):
            alone = by_offset(faulty.cluster.journal, topic, partition, until)
            batches = history.durable(topic, partition, until).batches
            assert {o: (b[3], b[2]) for b in batches for o in range(b[0], b[1] + 1)} == alone


@pytest.mark.parametrize("capacity", [None, 400])
def test_states_begun_at_a_snapshot_equal_those_folded_from_the_beginning(
    seed: int, capacity: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "CHECKPOINT_EVERY", 4)
    monkeypatch.setattr(replay, "FAR", 0)
    draw, begun = Random(seed), 0
    for number in range(4):
        journal = Journal(ORIGIN_MS, capacity=capacity)
        for where in PLACES:
            timeline = DurableTimeline(journal, "g", *where)
            for _, time_ms, broker_id, event in random_journal(seed + number) if not journal.total else ():
                journal.record(time_ms, broker_id, event)
                if not draw.randrange(600):
                    timeline.refresh()
            timeline.refresh()
            folded, expected = DurableState(), [DurableState()]
            for position, entry in enumerate(timeline.entries):
                folded.partial |= position in timeline._gaps
                folded.apply(entry)
                expected.append(folded.copy())
            for count in [draw.randrange(len(expected)) for _ in range(30)]:
                assert timeline.state(count) == expected[count], count
                begun += timeline._begin(count, 0) is not None
    assert begun > 20 or capacity


def by_offset(journal: Journal, topic: str, partition: int, until: int) -> dict[int, tuple[int, int]]:
    """Offset -> (delivery count, state) after the records below `until`: the higher rank wins."""
    topic_id = next(e.event.topic_id for e in journal.select(TopicCreated, topic=topic))  # type: ignore[union-attr]
    found: dict[int, tuple[int, int]] = {}
    for entry in journal.select(StateRecordWritten):
        event = entry.event
        assert isinstance(event, StateRecordWritten)
        if event.key != f"g:{topic_id}:{partition}" or entry.order >= until:
            continue
        if event.kind != "update":
            found = {}
        for first, last, state, count in event.state_batches:
            for offset in range(first, last + 1):
                found[offset] = max(found.get(offset, (-1, -1)), (count, state))
        found = {offset: rank for offset, rank in found.items() if offset >= event.start_offset}
    return found
