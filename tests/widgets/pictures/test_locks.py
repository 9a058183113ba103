"""The picture of locks: its content equals the journal, and it draws its content."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shareq.model.events import (
    DurableStateRead,
    Event,
    FaultInjected,
    HoldEnded,
    MemberJoined,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionsInitialized,
)
from shareq.model.states import RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures.locks import AHEAD_MS, LockRow, LocksContent, content, draw
from shareq_widgets.svg import seconds_left, to_svg
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded
from tests.trace.random_groups import random_journal
from tests.widgets.pictures.layout import check_layout

AVAILABLE, ACQUIRED, ACKNOWLEDGED, _, ARCHIVED = RecordState
WIDTHS = (320, 374, 480, 760, 1_200)


# ---- random runs -----------------------------------------------------------------------------------------------------


def offsets(rows: tuple[LockRow, ...]) -> list[tuple[Any, ...]]:
    return [
        (row.topic, row.partition, offset, row.holder.member_id, row.delivery_count, row.deadline_ms, row.writing)
        for row in rows
        for offset in range(row.first, row.end)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_the_acquired_records_of_all_share_partitions(seed: int) -> None:
    history, draw_ = GroupHistory(random_journal(seed), "g"), random.Random(seed)
    end = instant_of(history)
    for until in [draw_.randrange(history.total + 1) for _ in range(cases(40, 340))]:
        instant = end._replace(until=until, now_ms=max(history.journal[until - 1].time_ms, 0))
        expected = [
            (topic, partition, offset, status.member_id, status.delivery_count, status.deadline_ms, status.why or "")
            for topic, partition in history.share_partitions(until)
            for first, stop, status in history.share_partition(topic, partition, until).runs
            if status.deadline_ms is not None  # a share-partition without a leader has holders and no locks
            for offset in range(first, stop)
        ]
        whole, few = content(instant, rows=10_000), content(instant, rows=5)
        single = content(instant, "record", rows=10_000)
        assert sorted(offsets(whole.rows)) == sorted(expected) == sorted(offsets(single.rows))
        assert whole.records == len(expected) == len(single.rows)
        assert whole.locks == len(whole.rows) == few.locks
        deadlines = [row.deadline_ms for row in whole.rows]
        assert deadlines == sorted(deadlines, key=lambda ms: ms or 0)
        assert few.rows == whole.rows[: len(few.rows)]
        assert len(few.rows) + few.more == whole.locks
        assert few.more_deadline_ms == (deadlines[len(few.rows)] if few.more else None)
        members = set(history.group(until).members)
        assert all(row.holder.alive == (row.holder.member_id in members) for row in whole.rows + whole.ended)
        assert all(0 <= instant.now_ms - (row.ended_ms or 0) <= 5_000 for row in whole.ended)
        for width in (320, 760):
            check_layout(draw(few, width))


def test_one_topic_or_one_partition() -> None:
    instant = instant_of(GroupHistory(random_journal(1), "g"))
    busy = [until for until in range(0, instant.until, 5) if content(instant._replace(until=until), rows=99).locks > 1]
    for until in busy:
        shown = instant._replace(until=until)
        for topic in ("orders", "facts"):
            every = [row for row in content(shown, rows=99).rows if row.topic == topic]
            assert list(content(shown, topic=topic, rows=99).rows) == every
            alone = content(shown, topic=topic, partition=1, rows=99)
            assert list(alone.rows) == [row for row in every if row.partition == 1]
            assert not alone.several
    assert len(busy) >= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "member"}, "by='member': must be 'holder' or 'record'"),
        ({"recent_ms": -1}, "recent_ms=-1: must be at least 0"),
        ({"rows": 0}, "rows=0: must be at least 1"),
    ],
)
def test_a_bad_argument_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        content(instant_of(GroupHistory(Journal(ORIGIN_MS), "g")), **arguments)


# ---- a written story -------------------------------------------------------------------------------------------------


def changed(cause: str, first: int, end: int, member: str = "", deadline_s: float = 0, **more: Any) -> RecordsChanged:
    state = ACQUIRED if member else more.pop("state")
    deadline_ms = ORIGIN_MS + round(deadline_s * 1000) if member else None
    return RecordsChanged(*WHERE, cause, first, end, state, more.pop("count", 1), member or None, deadline_ms, **more)


JOINED = [MemberJoined(GROUP, f"m-{name}", name, (TOPIC,)) for name in ("ann", "bob", "cas")]
STORY: list[tuple[float, Event]] = [
    *[(0, event) for event in JOINED],
    (0, SharePartitionsInitialized(GROUP, TOPIC, (0,))),
    (0, RecordsAppended(TOPIC, 0, 0, 100)),
    (0, loaded(0, 0, limit=2)),
    (1, changed("acquire", 0, 3, "m-ann", 31)),
    (2, changed("acquire", 3, 9, "m-bob", 32)),
    (5, changed("renew", 3, 9, "m-bob", 35)),
    (6, changed("acquire", 9, 10, "m-cas", 36)),
    (7, changed("lock_timeout", 9, 10, state=AVAILABLE)),
    (8, changed("acquire", 9, 10, "m-ann", 38, count=2)),
    (9, changed("prepared", 3, 5, "m-bob", 35, write_id=1, to_state=ACKNOWLEDGED, why="accept")),
    (10, changed("settled", 3, 5, state=ACKNOWLEDGED, why="accept")),
    (11, changed("prepared", 5, 7, "m-bob", 35, write_id=2, to_state=ARCHIVED, why="reject")),
    (12, MemberLeft(GROUP, "m-ann", "session expired")),
]


def content_at(now_s: float, *more: tuple[float, Event], by: Any = "holder", **arguments: Any) -> LocksContent:
    return content(at(now_s, *more), by, **arguments)


def at(now_s: float, *more: tuple[float, Event]) -> Instant:
    journal = Journal(ORIGIN_MS)
    for time_s, event in [*STORY, *more]:
        if time_s <= now_s:
            journal.record(ORIGIN_MS + round(time_s * 1000), 1, event)
    return instant_of(GroupHistory(journal, GROUP), now_ms=ORIGIN_MS + round(now_s * 1000))


def test_a_story_in_words() -> None:
    renewed = "since 0:02.000, renewed once, last at 0:05.000, delivery 1 of 2"
    assert draw(content_at(12.5), 400).text.splitlines() == [
        "4 locks on 8 records at 0:12.500",
        "A ann, no longer in the group, holds t-0 0–2 since 0:01.000, delivery 1 of 2, 18.5 s left",
        f"B bob holds t-0 5–6 {renewed}, writing reject, 22.5 s left",
        f"B bob holds t-0 7–8 {renewed}, 22.5 s left",
        "A ann, no longer in the group, holds t-0 9 since 0:08.000, delivery 2 of 2, the last one, 25.5 s left",
        f"B bob held t-0 3–4 {renewed}, accepted 2.5 s ago",
    ]


def test_ended_locks_are_shown_for_a_while() -> None:
    ends = [(row.first, row.ended, row.state) for row in content_at(10).ended]
    assert ends == [(3, "accepted", ACKNOWLEDGED), (9, "expired", AVAILABLE)]
    assert [row.first for row in content_at(12.5, recent_ms=1_000).ended] == []
    assert [row.first for row in content_at(12.5, recent_ms=2_500).ended] == [3]


def test_a_record_that_has_used_up_its_deliveries_ends_as_archived() -> None:
    row = content_at(38, (38, changed("lock_timeout", 9, 10, state=ARCHIVED, count=2))).ended[0]
    assert (row.ended, row.state) == ("expired, archived", ARCHIVED)


def test_most_urgent_first_and_the_rest_counted() -> None:
    few = content_at(12.5, rows=3)
    assert ([row.first for row in few.rows], few.more, few.more_deadline_ms) == ([0, 5], 2, ORIGIN_MS + 35_000)
    assert [row.first for row in few.ended] == [3]
    drawing = draw(few, 374)
    assert drawing.find("more")["text"] == "and 2 more locks, the next ends in"
    assert drawing.find("more left")["countdown"] == ORIGIN_MS + 35_000
    assert drawing.text.endswith("and 2 more locks, the next ends in 22.5 s")
    single = content_at(12.5, by="record", rows=4)
    assert ([(row.first, row.end) for row in single.rows], single.more) == ([(0, 1), (1, 2), (2, 3)], 5)


@pytest.mark.parametrize(("now_s", "urgent"), [(25.9, False), (26, False), (26.001, True), (31, True)])
def test_the_alarm_begins_below_a_sixth_of_the_lock(now_s: float, urgent: bool) -> None:
    shown = content_at(now_s)
    assert shown.rows[0].urgent(shown.now_ms) is urgent
    drawing, key = draw(shown, 374), shown.rows[0].key
    assert drawing.find(f"{key} past")["attributes"]["fill"] == ("alarm" if urgent else "acquired")
    assert drawing.find(f"{key} left")["style"] == ("hot" if urgent else "soft")


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_stand_at_their_times(width: int) -> None:
    shown = content_at(12.5)
    drawing = draw(shown, width)
    check_layout(drawing)
    ticks = [(float(drawing.find(key)["attributes"]["x1"]), int(key.split()[1])) for key in drawing.keys("tick ")[::2]]
    (x0, t0), (x1, t1) = ticks[0], ticks[-1]

    def x(ms: int | None) -> float:
        assert ms is not None
        return x0 + (ms - ORIGIN_MS - t0) * (x1 - x0) / (t1 - t0)

    assert drawing.find("now")["attributes"]["x1"] == pytest.approx(x(shown.now_ms), abs=0.05)
    for row in shown.rows:
        past, lock = (drawing.find(f"{row.key} {part}")["attributes"] for part in ("past", "lock"))
        assert past["x"] == lock["x"] == pytest.approx(x(row.acquired_ms), abs=0.05)
        assert past["x"] + past["width"] == pytest.approx(x(shown.now_ms), abs=0.05)
        assert lock["x"] + lock["width"] == pytest.approx(x(row.deadline_ms), abs=0.05)
        for time_ms in row.renewals:
            notch = drawing.find(f"{row.key} renewed {time_ms}")
            assert notch["attributes"]["x1"] == pytest.approx(x(time_ms), abs=0.05)
    (ended,) = shown.ended
    past = drawing.find(f"{ended.key} past")["attributes"]
    assert past["x"] + past["width"] == pytest.approx(x(ended.ended_ms), abs=0.05)
    assert past["fill"] == "acknowledged"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_words_of_ended_locks_are_whole_when_no_lock_is_left(width: int) -> None:
    shown = content_at(12.5, (12.5, SharePartitionDropped(*WHERE, "broker_stopped")))
    assert (shown.rows, {row.ended for row in shown.ended}) == ((), {"leader lost", "accepted"})
    drawing = draw(shown, width)
    check_layout(drawing)
    assert {drawing.find(f"{row.key} ended")["text"] for row in shown.ended} == {"leader lost", "accepted"}


@pytest.mark.parametrize("later_ms", [1, 40, 2_000, 5_000])
def test_what_moves_between_snapshots_is_where_the_next_snapshot_has_it(later_ms: int) -> None:
    """The axis of the later snapshot is the same here, because it ends and begins at round times."""
    before, after = (draw(content_at(now_s, recent_ms=60_000), 600) for now_s in (13, 13 + later_ms / 1000))
    assert before.keys("tick") == after.keys("tick")
    for element in before.elements:
        later = after.find(element["key"])["attributes"] if element["key"] in after.keys("") else {}
        for name, rate in element.get("rates", {}).items():
            moved = element["attributes"][name] + rate * later_ms
            assert moved == pytest.approx(later[name], abs=0.05), element
        if later and element["tag"] in ("rect", "line"):
            still = set(element["attributes"]) - set(element.get("rates", {})) - {"opacity", "stroke-dasharray"}
            assert {n: element["attributes"][n] for n in still} == {n: later[n] for n in still}


def test_the_now_line_stays_in_the_picture_while_it_moves() -> None:
    for now_s in (0.5, 9.9, 12.5, 30.9, 34.9, 37.9):
        drawing = draw(content_at(now_s), 374)
        now = drawing.find("now")
        assert now["attributes"]["x1"] + now["rates"]["x1"] * (AHEAD_MS - 1_000) <= drawing.width


def test_dead_holders_last_attempts_and_writes_look_it() -> None:
    shown = content_at(12.5)
    drawing, (dead, writing, _, last) = draw(shown, 760), shown.rows
    assert drawing.find(f"{dead.key} lock")["attributes"]["stroke-dasharray"]
    assert drawing.find(f"{dead.key} past")["attributes"]["opacity"] < 1
    assert drawing.find(f"{writing.key} writing")["text"] == "writing reject"
    assert "stroke-dasharray" not in drawing.find(f"{writing.key} lock")["attributes"]
    assert drawing.find(f"{last.key} delivery")["style"] == "small hot"
    assert drawing.find(f"{last.key} delivery")["text"] == "ann † · 2/2"
    assert drawing.find(f"{dead.key} delivery")["style"] == "small faded"


def test_crashed_and_frozen_holders_look_it_while_they_are_in_the_group() -> None:
    shown = content_at(
        10.5,
        (10.1, FaultInjected("ann crashed", "m-ann", "crashed")),
        (10.2, FaultInjected("bob is frozen", "m-bob", "frozen")),
    )
    drawing = draw(shown, 760)
    under = {row.holder.name: drawing.find(f"{row.key} delivery")["text"] for row in shown.rows}
    assert {name: text.partition(" · ")[0] for name, text in under.items()} == {"ann": "ann †", "bob": "bob ❄"}
    bars = {row.holder.name: drawing.find(f"{row.key} lock")["attributes"] for row in shown.rows}
    assert ("stroke-dasharray" in bars["ann"], "stroke-dasharray" in bars["bob"]) == (True, False)
    assert "A ann, whose program has ended, holds t-0 0–2" in drawing.text
    assert "B bob, which is frozen, holds t-0 5–8" in drawing.text
    again = content_at(
        10.9, (10.2, FaultInjected("", "m-bob", "frozen")), (10.8, FaultInjected("", "m-bob", "unfrozen"))
    )
    assert "frozen" not in draw(again, 760).text


def test_a_row_selects_its_holder_and_a_record_itself() -> None:
    shown = content_at(12.5)
    drawing = draw(shown, 374)
    assert drawing.find(f"{shown.rows[0].key} lock")["about"] == [
        *("member:m-ann", "partition:t-0", "record:t-0:0", "record:t-0:1", "record:t-0:2")
    ]
    assert drawing.find(f"{shown.rows[0].key} past")["about"] == ["member:m-ann", "partition:t-0"]
    assert drawing.find(f"{shown.rows[3].key} lock")["about"] == ["record:t-0:9", "member:m-ann", "partition:t-0"]


def test_nothing_held() -> None:
    drawing = draw(content_at(0.5), 320)
    assert drawing.text == "No record is held at 0:00.500"
    assert drawing.find("none")["text"] == "no record is held"
    check_layout(drawing)


def test_a_lock_of_hours_does_not_flatten_the_others() -> None:
    renewals = [(t, changed("renew", 0, 3, "m-ann", t + 30)) for t in range(20, 7_200, 20)]
    shown = content_at(7_199, *renewals, rows=5)
    drawing, key = draw(shown, 374), next(row.key for row in shown.rows if row.first == 0)
    lock, now = drawing.find(f"{key} lock")["attributes"], drawing.find("now")["attributes"]["x1"]
    assert lock["x"] + lock["width"] - now > 30
    assert drawing.find(f"{key} earlier")
    assert "renewed 359 times, last at 1:59:40.000" in drawing.text
    check_layout(drawing)


def test_a_lock_past_its_deadline_has_no_time_left() -> None:
    shown = content_at(31.4)
    assert shown.rows[0].left_ms(shown.now_ms) == 0
    assert "0.0 s left" in draw(shown, 374).text


def test_an_observer_shows_holders_and_no_deadlines() -> None:
    journal = Journal(ORIGIN_MS)
    events: list[Event] = [
        *JOINED,
        DurableStateRead(*WHERE, 0, (), 0, 0, 1, 0),
        RecordsAppended(TOPIC, 0, 0, 20),
        RecordsHeld(*WHERE, "m-bob", 2, 6, 1),
        RecordsHeld(*WHERE, "m-ann", 4, 5, 2),
    ]
    for place, event in enumerate(events):
        journal.record(ORIGIN_MS + 1_000 * place, -1, event)
    shown = content(instant_of(GroupHistory(journal, GROUP), now_ms=ORIGIN_MS + 9_000))
    assert [(row.first, row.end, row.holder.name, row.deadline_ms) for row in shown.rows] == [
        (2, 4, "bob", None),
        (4, 5, "ann", None),
        (5, 6, "bob", None),
    ]
    assert not shown.rows[0].urgent(shown.now_ms)
    drawing = draw(shown, 374)
    assert drawing.find(f"{shown.rows[0].key} left")["text"] == "not known"
    assert "its deadline is not known" in drawing.text
    check_layout(drawing)


def test_an_end_that_is_inferred_is_marked() -> None:
    journal = Journal(ORIGIN_MS)
    events: list[Event] = [
        *JOINED,
        DurableStateRead(*WHERE, 0, (), 0, 0, 1, 0),
        RecordsHeld(*WHERE, "m-ann", 0, 2, 1, ORIGIN_MS + 9_000),
        HoldEnded(*WHERE, "m-ann", "accept", 0, 1, ACKNOWLEDGED, 1),
        HoldEnded(*WHERE, "m-ann", "lock_timeout", 1, 2, AVAILABLE, 1, inferred=True),
    ]
    for event in events:
        journal.record(ORIGIN_MS, -1, event)
    shown = content(instant_of(GroupHistory(journal, GROUP), now_ms=ORIGIN_MS + 1_000))
    assert [(row.first, row.ended) for row in shown.ended] == [(0, "accepted"), (1, "expired, inferred")]
    for width in WIDTHS:
        check_layout(draw(shown, width))


def test_an_observer_without_known_holders_shows_no_statement_that_none_is_held() -> None:
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, -1, DurableStateRead(*WHERE, 0, (), 0, 0, 1, 0))
    drawing = draw(content(instant_of(GroupHistory(journal, GROUP), now_ms=ORIGIN_MS)), 320)
    assert drawing.text == "No holder is known at 0:00.000"
    assert drawing.find("none")["text"] == "no holder is known"


@pytest.mark.parametrize("width", WIDTHS)
def test_five_thousand_locks_of_two_hundred_members(width: int) -> None:
    members = [(0, MemberJoined(GROUP, f"w-{n}", f"worker-{n}", (TOPIC,))) for n in range(200)]
    locks = [(12.6, changed("acquire", 10 + n, 11 + n, f"w-{n * 7 % 200}", 42 + n / 1000)) for n in range(5_000)]
    shown = content_at(13, *members, *locks)
    assert (shown.locks, shown.more, len(shown.rows) + len(shown.ended)) == (5_004, 5_004 - 11, 12)
    drawing = draw(shown, width)
    assert len(drawing.elements) <= 400
    check_layout(drawing)
    assert seconds_left((shown.more_deadline_ms or 0) - shown.now_ms) in to_svg(drawing, now_ms=shown.now_ms)
