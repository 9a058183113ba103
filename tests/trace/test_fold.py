"""The fold of a journal gives the leader's state at every entry, and refuses a sequence that no leader can produce."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    Event,
    LeaderElected,
    LogStartMoved,
    RecordsAppended,
    RecordsChanged,
    SharePartitionDropped,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import ABANDONED, PREPARED, SETTLED, TXN_COMMIT, RecordEvent, RecordState
from shareq.trace import Entry, Journal, JournalCorrupt, SharePartitionState
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from tests.leader.oracle_stage import OracleStage
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded, random_history
from tests.trace.naive_fold import NaiveFold, Records


def by_offset(state: SharePartitionState) -> Records:
    return {offset: status[:6] for first, end, status in state.runs for offset in range(first, end)}


def oracle_records(stage: OracleStage) -> Records:
    return {
        offset: (rec.state, rec.count, rec.member, rec.deadline, rec.write, rec.to)
        for offset, rec in stage.oracle.recs.items()
        if offset >= stage.oracle.spso
    }


def test_the_fold_equals_the_leaders_state_after_every_step(seed: int) -> None:
    for number in range(15):
        timeline = None
        for journal, stage in random_history(Random(f"{seed}/{number}"), 150):
            timeline = timeline or PartitionTimeline(journal, GROUP, TOPIC, 0)
            timeline.refresh()
            state = timeline.state(len(timeline.entries))
            assert by_offset(state) == oracle_records(stage)
            assert (state.spso, state.window_end) == (stage.subject.spso, stage.subject.window_end)
            assert state.delivery_complete_count == stage.subject.delivery_complete_count
            assert set(state.writes) == set(stage.oracle.writes)
            assert state.in_flight == stage.subject.window_size


def test_states_in_any_order_equal_the_naive_fold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shareq.trace.analysis.replay.CHECKPOINT_EVERY", 16)
    rng = Random(seed)
    *_, (journal, _) = random_history(rng, 900)
    timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
    timeline.refresh()
    naive = NaiveFold()
    naive_states: list[tuple[Records, tuple[int, int]]] = [({}, (0, 0))]
    for entry in timeline.entries:
        naive.take(entry.event)
        naive_states.append((dict(naive.records), naive.window))
    assert len(naive_states) > 3 * 16
    for order in [
        *range(len(naive_states)),
        *rng.sample(range(len(naive_states)), 300),
        *reversed(range(0, len(naive_states), 7)),
    ]:
        state = timeline.state(order)
        assert (by_offset(state), (state.spso, state.window_end)) == naive_states[order], order


def test_a_copy_is_independent(seed: int) -> None:
    *_, (journal, _) = random_history(Random(seed), 200)
    timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
    timeline.refresh()
    half = timeline.state(len(timeline.entries) // 2).copy()
    before = (by_offset(half), list(half.past), dict(half.writes), half.spso)
    timeline.state(len(timeline.entries))
    assert (by_offset(half), half.past, half.writes, half.spso) == before


def test_final_states_below_the_spso_are_kept_up_to_a_limit() -> None:
    state = folded(loaded(0, 200, (0, 100, 2, 1), (100, 200, 0, 1)), WindowMoved(*WHERE, 100, 200))
    assert state.past == [(36, 100, state.past[0][2])]
    assert state.past[0][2].state is RecordState.ACKNOWLEDGED


# ---- events around the share-partition -------------------------------------------------------------------------------

HELD = RecordsChanged(*WHERE, "acquire", 10, 15, 1, 1, "m", 30_000)
TAGGED = HELD._replace(cause=PREPARED, write_id=0, to_state=2, why="accept")
START: tuple[Event, ...] = (loaded(10, 10), HELD, WindowMoved(*WHERE, 10, 15))


def folded(*events: Event, broker: int = 0, partial: bool = False) -> SharePartitionState:
    state = SharePartitionState(*WHERE, partial=partial)
    for order, event in enumerate(events):
        apply_entry(state, Entry(order, ORIGIN_MS + order, broker, event))
    return state


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(RecordsAppended(TOPIC, 0, 15, 40), {"log_end": 40, "lag": 30}, id="records appended"),
        pytest.param(LogStartMoved(TOPIC, 0, 12), {"log_start": 12, "log_end": 15, "spso": 10}, id="log start moved"),
        pytest.param(LeaderElected(TOPIC, 0, 2, 1), {"leader": 2, "loaded": True}, id="another leader, not yet loaded"),
        pytest.param(BrokerStopped(0, True), {"leader": -1, "loaded": False, "in_flight": 5}, id="leader killed"),
        pytest.param(BrokerStopped(1, True), {"leader": 0, "loaded": True}, id="another broker killed"),
        pytest.param(SharePartitionDropped(*WHERE, "x"), {"leader": 0, "loaded": False, "spso": 10}, id="dropped"),
        pytest.param(TopicDeleted(TOPIC, "id"), {"loaded": False, "spso": 0, "log_end": -1, "lag": None}, id="deleted"),
        pytest.param(TopicCreated(TOPIC, "id", 1), {"loaded": False, "log_end": 0, "in_flight": 0}, id="created again"),
        pytest.param(TopicCreated(TOPIC, "id", 0), {"log_end": -1}, id="created again with fewer partitions"),
        pytest.param(
            ConfigChanged("group:g", "share.delivery.count.limit", "3"), {"delivery_count_limit": 3}, id="limit set"
        ),
        pytest.param(
            ConfigChanged("group:g", "share.delivery.count.limit", None), {"delivery_count_limit": 5}, id="limit unset"
        ),
        pytest.param(
            ConfigChanged("group:g", "share.partition.max.record.locks", "300"), {"max_record_locks": 300}, id="locks"
        ),
        pytest.param(
            ConfigChanged("group:g", "share.record.lock.duration.ms", "20000"), {"lock_duration_ms": 20000}, id="lock"
        ),
        pytest.param(ConfigChanged("group:g", "share.isolation.level", "x"), {"spso": 10}, id="another config"),
        pytest.param(loaded(12, 15, (13, 15, 0, 1)), {"spso": 12, "in_flight": 3, "writes": {}}, id="loaded again"),
        pytest.param(loaded(12, 15), {"speo": 14, "window_end": 15}, id="the SPEO is the last offset in flight"),
        pytest.param(loaded(15, 15), {"speo": None, "window_end": 15}, id="an empty window has no SPEO"),
    ],
)
def test_events_around_the_share_partition(event: Event, expected: dict[str, Any]) -> None:
    state = folded(*START, event)
    assert {name: getattr(state, name) for name in expected} == expected


def test_a_topic_created_again_keeps_the_groups_configuration() -> None:
    state = SharePartitionState(GROUP, TOPIC, 0, spso=7, window_end=9, delivery_count_limit=3, lock_duration_ms=15_000)
    state.max_record_locks, state.now_ms = 100, 5
    state.reset()
    assert (state.spso, state.window_end, state.log_end, len(state.runs)) == (0, 0, -1, 0)
    assert (state.delivery_count_limit, state.lock_duration_ms, state.max_record_locks) == (3, 15_000, 100)
    assert state.now_ms == 5


def test_a_stopped_leader_loses_its_locks_and_writes() -> None:
    state = folded(*START, TAGGED, StateWritePrepared(*WHERE, 0, 10, 5, ()), BrokerStopped(0, True))
    ((first, end, status),) = state.runs
    assert (first, end, status.state, status.member_id, status.deadline_ms) == (10, 15, RecordState.ACQUIRED, "m", None)
    assert (status.write_id, status.to_state, state.writes) == (None, None, {})


def test_events_of_a_superseded_leader_do_not_count() -> None:
    state = folded(*START)
    for event in (
        HELD._replace(cause="lock_timeout", state=0, member_id=None, deadline_ms=None),
        WindowMoved(*WHERE, 15, 15),
        StateWritePrepared(*WHERE, 9, 10, 0, ()),
        StateWriteSettled(*WHERE, 9, 0),
        SharePartitionDropped(*WHERE, "another broker leads"),
    ):
        apply_entry(state, Entry(9, ORIGIN_MS, 1, event))
    assert by_offset(state) == by_offset(folded(*START))
    assert state.loaded
    assert (state.spso, state.window_end, state.writes) == (10, 15, {})


# ---- inconsistent journals -------------------------------------------------------------------------------------------

FREE = HELD._replace(cause="lock_timeout", state=0, member_id=None, deadline_ms=None)
STAGED = TAGGED._replace(cause="staged", to_state=1)
DONE = HELD._replace(cause=SETTLED, state=2, member_id=None, deadline_ms=None, why="accept")


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param([HELD], "no leader has the share-partition loaded", id="a change before the load"),
        pytest.param([WindowMoved(*WHERE, 1, 2)], "no leader has", id="a window before the load"),
        pytest.param([StateWritePrepared(*WHERE, 0, 0, 0, ())], "no leader has", id="a write before the load"),
        pytest.param([loaded(10, 20, (5, 12, 0, 1))], r"run \[5, 12\) is out", id="a loaded run below the window"),
        pytest.param([loaded(10, 20, (15, 25, 0, 1))], r"run \[15, 25\) is out", id="a loaded run above the window"),
        pytest.param([loaded(10, 20, (15, 20, 0, 1), (12, 14, 0, 1))], r"run \[12, 14\)", id="loaded runs unordered"),
        pytest.param([*START, HELD._replace(first=20, end=20)], r"\[20, 20\) is empty", id="an empty range"),
        pytest.param([*START, HELD._replace(first=9, end=10)], "below the SPSO 10", id="a change below the window"),
        pytest.param([*START, HELD], "cannot go from ACQUIRED by m", id="acquired twice"),
        pytest.param([*START, HELD._replace(first=20, end=22, delivery_count=2)], "cannot begin", id="begins at 2"),
        pytest.param([*START, HELD._replace(cause="sneeze")], "unknown cause 'sneeze'", id="an unknown cause"),
        pytest.param([*START, DONE], "cannot go", id="settled without a write"),
        pytest.param([*START, FREE._replace(end=17)], "is not completely in flight", id="a time-out in a hole"),
        pytest.param([*START, WindowMoved(*WHERE, 9, 15)], "cannot become", id="the SPSO goes back"),
        pytest.param([*START, WindowMoved(*WHERE, 10, 14)], "cannot become", id="the SPEO goes back"),
        pytest.param([*START, WindowMoved(*WHERE, 15, 14)], "cannot become", id="the window ends before it begins"),
        pytest.param([*START, WindowMoved(*WHERE, 12, 15)], "is passed while ACQUIRED", id="a held record is passed"),
        pytest.param([*START, StateWriteSettled(*WHERE, 0, 0)], "write 0 is not in progress", id="never prepared"),
        pytest.param(
            [*START, *[StateWritePrepared(*WHERE, 0, 10, 0, ())] * 2], "write 0 was prepared", id="prepared twice"
        ),
        pytest.param(
            [*START, StateWritePrepared(*WHERE, 0, 10, 0, ()), TAGGED], "write 0 was prepared", id="tagged too late"
        ),
    ],
)  # fmt: skip
def test_an_inconsistent_journal_is_refused(events: list[Event], why: str) -> None:
    with pytest.raises(JournalCorrupt, match=why) as caught:
        folded(*events)
    assert caught.value.entry.order == len(events) - 1
    assert str(caught.value).startswith(f"entry {len(events) - 1} ({type(events[-1]).__name__})")


def test_the_spso_can_pass_held_records_below_the_log_start() -> None:
    state = folded(*START, LogStartMoved(TOPIC, 0, 13), WindowMoved(*WHERE, 13, 15))
    assert (state.spso, sorted(by_offset(state))) == (13, [13, 14])


def test_the_spso_can_pass_held_records_if_a_move_of_the_log_start_may_be_missing() -> None:
    state = SharePartitionState(*WHERE)
    state.miss_entries()
    for order, event in enumerate([*START[:2], WindowMoved(*WHERE, 13, 15)]):
        apply_entry(state, Entry(order, ORIGIN_MS, 0, event))
    assert not state.partial
    assert (state.spso, sorted(by_offset(state))) == (13, [13, 14])


# ---- every (state, cause) --------------------------------------------------------------------------------------------

STATES: dict[str, list[Event]] = {
    "absent": [WindowMoved(*WHERE, 10, 15)],
    "available": [WindowMoved(*WHERE, 10, 15), HELD, FREE],
    "acquired": [HELD, WindowMoved(*WHERE, 10, 15)],
    "to be acknowledged": [HELD, TAGGED, WindowMoved(*WHERE, 10, 15)],
    "to be available": [HELD, TAGGED._replace(to_state=0, why="release"), WindowMoved(*WHERE, 10, 15)],
    "to be archived": [HELD, TAGGED._replace(to_state=4, why="reject"), WindowMoved(*WHERE, 10, 15)],
    "staged": [HELD, STAGED, WindowMoved(*WHERE, 10, 15)],
    "staged to be archived": [HELD, STAGED._replace(why="reject"), WindowMoved(*WHERE, 10, 15)],
    "acknowledged": [HELD, TAGGED, DONE, WindowMoved(*WHERE, 10, 15)],
    "archived": [HELD, FREE._replace(state=4), WindowMoved(*WHERE, 10, 15)],
}
GONE = FREE._replace(state=4)
CHANGES: dict[str, RecordsChanged] = {
    "acquire": HELD,
    "acquire again": HELD._replace(delivery_count=2),
    "enter with the batch": FREE._replace(cause=RecordEvent.ACQUIRE, delivery_count=0),
    "renew": HELD._replace(cause=RecordEvent.RENEW, deadline_ms=60_000),
    "prepare accept": TAGGED._replace(write_id=1),
    "prepare release": TAGGED._replace(write_id=1, to_state=0, why="release"),
    "prepare reject": TAGGED._replace(write_id=1, to_state=4, why="reject"),
    "prepare gap": TAGGED._replace(write_id=1, to_state=4, why="gap"),
    "prepare session release at the limit": TAGGED._replace(write_id=1, to_state=4, why="session_release"),
    "prepare by another member": TAGGED._replace(write_id=1, member_id="n"),
    "prepare with mismatched state": TAGGED._replace(write_id=1, to_state=2, why="reject"),
    "settle to acknowledged": DONE,
    "settle to available": DONE._replace(state=0, why="release"),
    "settle to archived": DONE._replace(state=4, why="reject"),
    "abandon": HELD._replace(cause=ABANDONED, why="accept"),
    "time out": FREE,
    "time out at the limit": GONE,
    "time out to acknowledged": FREE._replace(state=2),
    "abort": GONE._replace(cause=RecordEvent.ABORTED),
    "log start": GONE._replace(cause=RecordEvent.LOG_START),
    "missing": GONE._replace(cause=RecordEvent.MISSING),
    "expire": GONE._replace(cause=RecordEvent.EXPIRED),
    "expire to the queue": GONE._replace(cause=RecordEvent.EXPIRED, state=3),
    "expire unread": GONE._replace(cause=RecordEvent.EXPIRED, delivery_count=0),
    "stage accept": STAGED._replace(write_id=1),
    "stage release": STAGED._replace(write_id=1, why="release"),
    "stage for another member": STAGED._replace(write_id=1, member_id="n"),
    "stage with a final state": STAGED._replace(write_id=1, to_state=2),
    "stage as loaded": STAGED._replace(write_id=1, member_id=None, deadline_ms=None),
    "commit to acknowledged": DONE._replace(cause=TXN_COMMIT),
    "commit to archived": DONE._replace(cause=TXN_COMMIT, state=4, why="reject"),
    "commit to the queue": DONE._replace(cause=TXN_COMMIT, state=3, why="reject"),
    "commit to available": DONE._replace(cause=TXN_COMMIT, state=0),
    "roll back": FREE._replace(cause=RecordEvent.TXN_ABORT),
    "roll back at the limit": GONE._replace(cause=RecordEvent.TXN_ABORT),
    "roll back to acknowledged": FREE._replace(cause=RecordEvent.TXN_ABORT, state=2),
    "accept without a write": DONE._replace(cause=RecordEvent.ACCEPT, why=None),
}
LEGAL = {
    "absent": {"acquire", "enter with the batch", "expire unread"},
    "available": {"acquire again", "log start", "missing", "expire", "expire to the queue", "stage as loaded"},
    "acquired": {
        "renew", "prepare accept", "prepare release", "prepare reject", "prepare gap", "time out", "abort",
        "prepare session release at the limit", "time out at the limit", "stage accept",
    },
    "to be acknowledged": {"settle to acknowledged", "abandon"},
    "to be available": {"settle to available", "abandon", "log start", "missing"},
    "to be archived": {"settle to archived", "abandon"},
    "staged": {"commit to acknowledged", "roll back", "roll back at the limit", "abandon"},
    "staged to be archived": {
        "commit to archived", "commit to the queue", "roll back", "roll back at the limit", "abandon",
    },
    "acknowledged": set(),
    "archived": set(),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", STATES)
def test_every_change_is_legal_only_in_its_states(state: str, change: str) -> None:
    events = [loaded(10, 10), *STATES[state], CHANGES[change]]
    if change in LEGAL[state]:
        after = folded(*events)
        assert by_offset(after)[10][0] == CHANGES[change].state
    else:
        with pytest.raises(JournalCorrupt):
            folded(*events)


# ---- a journal without its first entries -----------------------------------------------------------------------------


def test_a_fold_without_the_first_entries_is_partial_until_the_next_load() -> None:
    journal = Journal(ORIGIN_MS, capacity=2)
    for event in (*START, TAGGED, StateWritePrepared(*WHERE, 0, 10, 5, ())):
        journal.record(ORIGIN_MS, 0, event)
    timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
    assert [entry.event for entry in timeline.refresh()] == [TAGGED, StateWritePrepared(*WHERE, 0, 10, 5, ())]
    state = timeline.state(2)
    assert (state.partial, state.loaded, sorted(by_offset(state))) == (True, True, [10, 11, 12, 13, 14])
    for event in (StateWriteSettled(*WHERE, 0, 0), DONE, WindowMoved(*WHERE, 15, 15), loaded(15, 15)):
        journal.record(ORIGIN_MS, 0, event)
        timeline.refresh()
    assert len(timeline.entries) == 6
    assert (timeline.state(5).spso, timeline.state(5).partial) == (15, True)
    assert not timeline.state(6).partial


def test_entries_dropped_between_two_refreshes_make_the_fold_partial_from_there() -> None:
    journal = Journal(ORIGIN_MS, capacity=3)
    timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
    for event in START:
        journal.record(ORIGIN_MS, 0, event)
    timeline.refresh()
    for event in (FREE, *[HELD._replace(delivery_count=n) for n in range(2, 5)]):
        journal.record(ORIGIN_MS, 0, event)
    timeline.refresh()
    assert [timeline.state(n).partial for n in range(len(timeline.entries) + 1)] == [False] * 4 + [True] * 3
    assert by_offset(timeline.state(6))[10][1] == 4
