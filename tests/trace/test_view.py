"""A view's snapshots: the contract with the widgets, at any entry of the journal."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from shareq.model.errors import ConfigException
from shareq.model.events import (
    BrokerStopped,
    Event,
    FaultInjected,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.model.waits import Wait
from shareq.trace import Journal, raster, view
from shareq.trace.views.marks import MARKS, Marks, by_type
from shareq.trace.views.member_names import letter
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded, random_history
from tests.trace.naive_fold import NaiveFold, Records

KEYS: dict[str, Any] = {
    "group": str, "now_ms": int, "origin_ms": int, "order": int, "total": int,
    "event": (dict, type(None)), "step": (dict, type(None)), "marks": list,
    "version": int, "topic": str, "partition": int, "leader": int, "loaded": bool,
    "observed": bool, "tapped": bool, "disturbed": str,
    "spso": int, "window_end": int, "log_start": int, "log_end": int,
    "delivery_count_limit": int, "max_record_locks": int, "lock_duration_ms": int, "in_flight": (int, type(None)),
    "lag": (int, type(None)), "runs": list, "past": list, "members": list, "writes": list,
    "waits": (str, type(None)), "text": str,
}  # fmt: skip
NONE_OR_INT, NONE_OR_STR = (int, type(None)), (str, type(None))
RUN: tuple[Any, ...] = (int, int, str, int, NONE_OR_STR, NONE_OR_INT, NONE_OR_INT, NONE_OR_STR)
MEMBER = {"id": str, "name": str, "letter": str, "colour": str, "held": int, "deadline_ms": NONE_OR_INT, "alive": bool,
          "frozen": bool}  # fmt: skip
EVENT = {"order": int, "time_ms": int, "cause": str, "first": int, "end": int, "member": NONE_OR_STR, "text": str}
MARK = {"order": int, "time_ms": int, "kind": str, "rank": int, "text": str}


def has(value: dict[str, Any], types: dict[str, Any]) -> bool:
    return list(value) == list(types) and all(isinstance(value[key], types[key]) for key in types)


def keeps_the_contract(snapshot: Any) -> None:
    """Keys, types, and relations between values."""
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert has(snapshot, KEYS)
    position = snapshot["spso"]
    for run in snapshot["runs"]:
        assert all(isinstance(value, kind) for value, kind in zip(run, RUN, strict=True))
        assert position <= run[0] < run[1]
        position = run[1]
    held = {run[4] for run in snapshot["runs"]} - {None}
    assert held <= {member["id"] for member in snapshot["members"]}
    assert all(has(member, MEMBER) for member in snapshot["members"])
    assert len({member["letter"] for member in snapshot["members"]}) == len(snapshot["members"])
    assert all(has(mark, MARK) for mark in snapshot["marks"])
    assert len(snapshot["marks"]) <= MARKS
    assert all(0 < mark["order"] <= snapshot["total"] for mark in snapshot["marks"])
    assert all(has(write, {"id": int, "since_ms": int, "text": str}) and write["text"] for write in snapshot["writes"])
    assert snapshot["past"] == [] or snapshot["past"][-1][1] <= snapshot["spso"]
    assert (snapshot["event"] is None) == (snapshot["order"] == 0)
    assert snapshot["event"] is None or has(snapshot["event"], EVENT)


def journal_of(history: list[tuple[int, int, Event]], capacity: int | None = None) -> Journal:
    journal = Journal(ORIGIN_MS, capacity=capacity)
    for at, broker, event in history:
        journal.record(ORIGIN_MS + at, broker, event)
    return journal


def test_every_snapshot_keeps_the_contract(seed: int) -> None:
    for number in range(4):
        *_, (journal, _) = random_history(Random(f"{seed}/{number}"), 120)
        watching = view(journal, GROUP, TOPIC)
        letters: dict[str, str] = {}
        for order in range(watching.total() + 1):
            snapshot = watching.snapshot(order)
            keeps_the_contract(snapshot)
            for member in snapshot["members"]:
                assert letters.setdefault(member["id"], member["letter"]) == member["letter"]
        assert watching.snapshot() == snapshot


def test_a_strip_at_random_moments_shows_what_follows_from_the_journal(seed: int) -> None:
    for number in range(5):
        rng = Random(f"{seed}/{number}")
        *_, (journal, _) = random_history(rng, 200)
        watching = view(journal, GROUP, TOPIC)
        for order in sorted(rng.randrange(watching.total() + 1) for _ in range(cases(20, 200))):
            naive = NaiveFold()
            for entry in journal.entries()[: watching.moment(order)]:
                naive.take(entry.event)
            snapshot = watching.snapshot(order)
            assert shown_records(snapshot) == naive.records
            assert (snapshot["spso"], snapshot["window_end"]) == naive.window
            assert {write["id"] for write in snapshot["writes"]} == naive.writes


def shown_records(snapshot: Any) -> Records:
    """The records of a strip by offset, as the fold has them."""
    state_of = {state.name.lower(): state for state in RecordState}
    return {
        offset: (state_of[state.partition(" ")[0]], count, member, deadline_ms, write, to and state_of[to])
        for first, end, state, count, member, deadline_ms, write, to in snapshot["runs"]
        for offset in range(first, end)
    }


# ---- a written history -----------------------------------------------------------------------------------------------

ACQUIRED = RecordsChanged(*WHERE, "acquire", 100, 103, 1, 1, "id-1", ORIGIN_MS + 31_000)
TAGGED = ACQUIRED._replace(cause="prepared", end=102, write_id=4, to_state=2, why="accept")
HISTORY: list[tuple[int, int, Event]] = [
    (0, -1, TopicCreated(TOPIC, "id", 1)),
    (0, -1, LeaderElected(TOPIC, 0, 2, 0)),
    (0, 2, RecordsAppended(TOPIC, 0, 0, 126)),
    (500, 1, MemberJoined(GROUP, "id-1", "consumer-1", (TOPIC,))),
    (500, 1, MemberJoined(GROUP, "id-2", "consumer-1", (TOPIC,))),
    (900, 2, loaded(100, 100)),
    (1000, 2, ACQUIRED),
    (1000, 2, ACQUIRED._replace(first=104, end=105, member_id="long-id-without-name", deadline_ms=ORIGIN_MS + 40_000)),
    (1000, 2, WindowMoved(*WHERE, 100, 105)),
    (2000, 2, TAGGED),
    (2000, 2, StateWritePrepared(*WHERE, 4, 100, 2, (StateBatch(100, 101, 2, 1),))),
]


def test_a_crashed_member_is_dead_before_the_group_knows_it() -> None:
    """Its session lasts longer than its locks; a frozen one may go on."""
    faults = [(2500, -1, FaultInjected(f"{member_id} {fault}", member_id, fault))
              for member_id, fault in (("id-1", "crashed"), ("id-2", "frozen"))]  # fmt: skip
    before, after = view_of().snapshot()["members"], view_of([*HISTORY, *faults]).snapshot()["members"]
    assert [member["alive"] for member in before] == [True, True, False]
    assert [member["alive"] for member in after] == [False, True, False]
    assert [member["frozen"] for member in after] == [False, True, False]
    assert [member["held"] for member in after] == [3, 0, 1]
    goes_on = [*HISTORY, *faults, (2600, -1, FaultInjected("id-2 goes on", "id-2", "unfrozen"))]
    assert not any(member["frozen"] for member in view_of(goes_on).snapshot()["members"])


def view_of(history: list[tuple[int, int, Event]] = HISTORY, source: Any = None) -> Any:
    journal = Journal(ORIGIN_MS) if source is None else source
    for at, broker, event in history:
        journal.record(ORIGIN_MS + at, broker, event)
    return view(journal, GROUP, TOPIC, 0)


def test_a_snapshot_in_full() -> None:
    snapshot = view_of().snapshot()
    keeps_the_contract(snapshot)
    assert snapshot == {
        "version": 2, "group": "g", "topic": "t", "partition": 0, "leader": 2,
        "now_ms": ORIGIN_MS + 2000, "origin_ms": ORIGIN_MS, "order": 11, "total": 11,
        "loaded": True, "observed": False, "tapped": False, "disturbed": "",
        "spso": 100, "window_end": 105, "log_start": 0, "log_end": 126,
        "delivery_count_limit": 5, "max_record_locks": 20, "lock_duration_ms": 30000, "in_flight": 5, "lag": 24,
        "runs": [
            [100, 102, "acquired", 1, "id-1", ORIGIN_MS + 31_000, 4, "acknowledged"],
            [102, 103, "acquired", 1, "id-1", ORIGIN_MS + 31_000, None, None],
            [104, 105, "acquired", 1, "long-id-without-name", ORIGIN_MS + 40_000, None, None],
        ],
        "past": [],
        "members": [
            {"id": "id-1", "name": "consumer-1", "letter": "A", "colour": "member0",
             "held": 3, "deadline_ms": ORIGIN_MS + 31_000, "alive": True, "frozen": False},
            {"id": "id-2", "name": "consumer-1-2", "letter": "B", "colour": "member1",
             "held": 0, "deadline_ms": None, "alive": True, "frozen": False},
            {"id": "long-id-without-name", "name": "long-id-…", "letter": "C", "colour": "member2", "held": 1,
             "deadline_ms": ORIGIN_MS + 40_000, "alive": False, "frozen": False},
        ],
        "writes": [{"id": 4, "since_ms": ORIGIN_MS + 2000, "text": "100–101 accept"}],
        "waits": None,
        "event": {"order": 11, "time_ms": ORIGIN_MS + 2000, "cause": "state_write_prepared", "first": 0, "end": 0,
                  "member": None, "text": "state write 4 is under way, 100–101 acknowledged"},
        "step": {"first": 10, "text": "consumer-1 accepted 100–101, state write under way"},
        "marks": [{"order": 3, "time_ms": ORIGIN_MS, "kind": "appended", "rank": 9, "text": "126 appended"}],
        "text": "SPSO 100 | A→✓ A→✓ A – C | SPEO 104",
    }  # fmt: skip


def test_snapshots_at_earlier_events() -> None:
    watching = view_of()
    beginning = watching.snapshot(0)
    keeps_the_contract(beginning)
    assert (beginning["loaded"], beginning["now_ms"], beginning["log_end"]) == (False, ORIGIN_MS, -1)
    assert beginning["text"] == f"SPSO 0 | empty ({Wait.NOT_LOADED.sentence})"
    tagged = watching.snapshot(10)
    assert (tagged["event"]["cause"], tagged["event"]["first"], tagged["event"]["end"]) == ("accept", 100, 102)
    assert tagged["event"]["text"] == "consumer-1 accepted 100–101, state write under way"
    assert (tagged["event"]["member"], tagged["writes"]) == ("id-1", [])
    assert [watching.at_time(ORIGIN_MS + ms) for ms in (-1, 0, 499, 500, 1500, 9999)] == [0, 3, 3, 5, 9, 11]
    assert watching.sentence(1) == "topic t was created, 1 partition"
    assert watching.entry(1).event == TopicCreated(TOPIC, "id", 1)


@pytest.mark.parametrize("ends_ms", [(700, 900), (900, 700)])
def test_deadline_of_a_member_is_that_of_its_first_lock_to_expire(ends_ms: tuple[int, int]) -> None:
    journal = Journal(ORIGIN_MS)
    events: list[Event] = [TopicCreated(TOPIC, "id", 1), LeaderElected(TOPIC, 0, 0, 0), loaded(0, 0)]
    for first, end_ms in zip((0, 5), ends_ms, strict=True):
        events.append(RecordsChanged(*WHERE, "acquire", first, first + 5, 1, 1, "m", ORIGIN_MS + end_ms))
    for event in events:
        journal.record(ORIGIN_MS, 0, event)
    assert [member["deadline_ms"] for member in view(journal, GROUP, TOPIC).snapshot()["members"]] == [ORIGIN_MS + 700]


def test_a_view_follows_its_journal() -> None:
    journal = Journal(ORIGIN_MS)
    watching = view(journal, GROUP, TOPIC)
    assert watching.snapshot()["event"] is None
    view_of(source=journal)
    assert watching.total() == 11
    journal.record(ORIGIN_MS + 2500, 2, WindowMoved("g", "t", 1, 0, 0))
    journal.record(ORIGIN_MS + 2500, 2, WindowMoved("h", "t", 0, 0, 0))
    assert watching.total() == 11
    journal.record(ORIGIN_MS + 3000, 2, StateWriteSettled(*WHERE, 4, 0))
    done = TAGGED._replace(cause="settled", state=2, member_id=None, deadline_ms=None, write_id=None, to_state=None)
    journal.record(ORIGIN_MS + 3000, 2, done)
    journal.record(ORIGIN_MS + 3000, 2, WindowMoved(*WHERE, 102, 105))
    snapshot = watching.snapshot()
    assert (snapshot["order"], snapshot["spso"], snapshot["past"]) == (14, 102, [[100, 102, "acknowledged", 1]])
    event = watching.snapshot(13)["event"]
    assert event is not None
    assert event["cause"] == "settled"
    assert watching.snapshot(13)["text"] == "SPSO 100 | ✓ ✓ A – C | SPEO 104"


def test_the_live_snapshot_has_the_time_of_its_source() -> None:
    class Source:
        journal = view_of().journal
        now_ms = ORIGIN_MS + 77_000

    watching = view(Source(), GROUP, TOPIC)
    assert watching.snapshot()["now_ms"] == ORIGIN_MS + 77_000
    assert watching.snapshot(watching.total())["now_ms"] == ORIGIN_MS + 2000


def test_a_write_of_records_without_a_holder() -> None:
    """An expired lock changes the records immediately; the write makes that durable."""
    expired = ACQUIRED._replace(cause="lock_timeout", state=0, member_id=None, deadline_ms=None)
    write = StateWritePrepared(*WHERE, 4, 100, 0, (StateBatch(100, 102, 0, 1),))
    history = [*HISTORY[:9], (31_000, 2, expired), (31_000, 2, write)]
    assert view_of(history).snapshot()["writes"][0]["text"] == "100–102 available"
    history[-1] = (31_000, 2, write._replace(state_batches=()))
    assert view_of(history).snapshot()["writes"][0]["text"] == "SPSO 100"


@pytest.mark.parametrize("order", [-1, 12, 1.0, True, "1"])
@pytest.mark.parametrize("method", ["snapshot", "state", "entry", "sentence"])
def test_an_invalid_order_is_refused(method: str, order: Any) -> None:
    with pytest.raises(ValueError, match=r"order must be a whole number from \d to 11"):
        getattr(view_of(), method)(order)


@pytest.mark.parametrize("partition", [-1, True, "0", None])
def test_an_invalid_partition_is_refused(partition: Any) -> None:
    with pytest.raises(ConfigException, match="must be a whole number from 0"):
        view(Journal(), GROUP, TOPIC, partition)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """Group, topic and partition, in `view` and in `raster`; `strip` makes its view by `view`."""
    joined = [(0, 1, MemberJoined(group, "id", "one", (TOPIC,))) for group in (GROUP, "other")]
    journal = journal_of([(0, -1, TopicCreated(TOPIC, "id", 2)), *joined])
    for group, topic, partition, message in (
        ("nope", TOPIC, 0, r"group='nope': the journal has no such group, it has 'g', 'other'"),
        (GROUP, "nope", 0, r"topic='nope': the journal has no such topic, it has 't'"),
        (GROUP, TOPIC, 2, r"partition=2: topic 't' has the partitions 0, 1"),
    ):
        for show in (view, raster):
            with pytest.raises(ConfigException, match=message):
                show(journal, group, topic, partition)
    assert view(journal, GROUP, TOPIC, 1).total() >= 1


@pytest.mark.parametrize(
    "journal",
    [
        pytest.param(journal_of([]), id="without events"),
        pytest.param(
            journal_of([(0, -1, TopicCreated("late", "id", 1))] * 2, capacity=1), id="that has dropped events"
        ),
    ],
)
def test_names_are_not_checked_against_a_journal(journal: Journal) -> None:
    assert view(journal, "nope", "nope", 9).snapshot()["loaded"] is False


def test_letters_continue_after_z_with_two() -> None:
    assert [letter(place) for place in (0, 1, 25, 26, 27, 51, 52, 701, 702)] == [
        "A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        pytest.param([(0, 3, 0, 0), (3, 4, 0, 2)], "○ ○ ○ ○2", id="counts from the second delivery on"),
        pytest.param([(0, 2, 2, 3), (2, 4, 4, 5)], "✓ ✓ ✕ ✕", id="terminal records without counts"),
        pytest.param([(0, 1, 3, 5), (2, 4, 0, 1)], "⧗5 – ○ ○", id="archiving, and a gap"),
        pytest.param([(0, 1, 2, 1)], "✓ – – –", id="a gap at the end"),
        pytest.param([(0, 4, 0, 1)], "○ ○ ○ ○", id="a short run offset by offset"),
    ],
)
def test_the_text_of_a_window(runs: list[tuple[int, int, int, int]], text: str) -> None:
    assert view_of([(0, 0, loaded(0, 4, *runs))]).snapshot()["text"] == f"SPSO 0 | {text} | SPEO 3"


def test_long_runs_and_long_windows_are_shortened() -> None:
    assert view_of([(0, 0, loaded(0, 90, (0, 90, 0, 2)))]).snapshot()["text"] == "SPSO 0 | ○2×90 | SPEO 89"
    many = [(offset, offset + 1, 2 if offset % 2 else 0, 1) for offset in range(90)]
    text = view_of([(0, 0, loaded(0, 90, *many))]).snapshot()["text"]
    assert text == "SPSO 0 | " + "○ ✓ " * 20 + "... | SPEO 89"


# ---- marks -----------------------------------------------------------------------------------------------------------

FREE = RecordsChanged(*WHERE, "lock_timeout", 100, 101, 0, 1)


@pytest.mark.parametrize(
    ("history", "marks"),
    [
        pytest.param([(1, 2, FREE)], [("lock_timeout", "time-out")], id="a lock expires"),
        pytest.param([(1, 2, FREE), (1, 2, FREE)], [("lock_timeout", "time-out")], id="two locks at the same time"),
        pytest.param([(1, 2, FREE._replace(state=4))], [("lock_timeout", "time-out")], id="at the limit"),
        pytest.param([(1, 2, FREE._replace(cause="settled", state=4))], [("archived", "archived 100")], id="archived"),
        pytest.param([(1, 2, FREE._replace(cause="prepared", to_state=4))], [], id="not yet archived"),
        pytest.param([(1, 1, MemberLeft(GROUP, "id-1", "left"))], [("member_left", "id-1 left")], id="a member leaves"),
        pytest.param(
            [(1, 1, MemberLeft(GROUP, "id-1", "session expired"))], [("member_left", "id-1 is gone")], id="expiry"
        ),
        pytest.param([(1, -1, LeaderElected(TOPIC, 0, 2, 0))], [], id="the first leader"),
        pytest.param(
            [(1, -1, LeaderElected(TOPIC, 0, 2, 0)), (2, -1, LeaderElected(TOPIC, 0, 1, 1))],
            [("leader_moved", "broker 1 leads")],
            id="another leader",
        ),
        pytest.param(
            [(1, -1, LeaderElected(TOPIC, 0, 2, 0)), (2, -1, LeaderElected(TOPIC, 0, -1, 1))],
            [("leader_moved", "no leader")],
            id="no leader",
        ),
        pytest.param([(1, 2, StateWriteSettled(*WHERE, 0, 0))], [], id="a durable write"),
        pytest.param([(1, 2, StateWriteSettled(*WHERE, 0, 74))], [("write_failed", "write failed")], id="a failure"),
        pytest.param([(1, -1, BrokerStopped(1, True))], [("broker_killed", "broker 1 killed")], id="a kill"),
        pytest.param([(1, -1, BrokerStopped(1, False))], [("broker_killed", "broker 1 stopped")], id="a stop"),
        pytest.param([(1, -1, LogStartMoved(TOPIC, 0, 9))], [("log_start", "log starts at 9")], id="the log's start"),
        pytest.param([(1, -1, FaultInjected("c crashed"))], [("fault", "c crashed")], id="a fault"),
    ],
)  # fmt: skip
def test_the_marks_of_a_history(history: list[tuple[int, int, Event]], marks: list[tuple[str, str]]) -> None:
    watching = view_of(history)
    watching.total()
    assert [(mark["kind"], mark["text"]) for mark in watching._shown_marks()] == marks


def test_too_many_marks_are_thinned_and_the_rare_ones_stay() -> None:
    history: list[tuple[int, int, Event]] = [(0, 2, loaded(0, 0))]
    for number in range(300):
        history.append((number, 2, FREE._replace(cause="settled", first=number, end=number + 1, state=4)))
        history += [(number, 2, FREE)] * (number % 3 == 0)
    history.insert(450 // 2, (100, -1, BrokerStopped(1, True)))
    watching = view_of(history)
    total = watching.total()
    marks = watching._shown_marks()
    assert len(marks) == MARKS
    kinds = [mark["kind"] for mark in marks]
    assert (kinds.count("broker_killed"), kinds.count("archived") >= 4, kinds.count("lock_timeout") >= 4) == (
        1,
        True,
        True,
    )
    assert [mark["order"] for mark in marks] == sorted({mark["order"] for mark in marks})
    assert marks[-1]["order"] > total * 0.8


def test_a_mark_counts_the_records_of_all_batches_of_its_time() -> None:
    journal = Journal()
    for time_ms, events in ((5, [(0, 0, 5), (1, 0, 5), (2, 0, 5), (3, 0, 5)]), (6, [(0, 5, 7)])):
        for partition, first, end in events:
            journal.record(ORIGIN_MS + time_ms, 0, RecordsAppended(TOPIC, partition, first, end))
    marks = Marks(journal.entries(), str)
    marks.add(by_type(journal.entries()[:2]))
    assert [mark["text"] for mark in marks.shown()] == ["10 appended"]
    marks.add(by_type(journal.entries()[2:]))
    assert [mark["text"] for mark in marks.shown()] == ["20 appended", "2 appended"]
