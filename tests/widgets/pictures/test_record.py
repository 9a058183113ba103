"""The biography of a record: its content equals the journal, and it draws its content."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    DurableStateRead,
    Event,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    Run,
    SharePartitionDropped,
    SharePartitionsInitialized,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.model.states import RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures.record import AHEAD_MS, SHOWN_CHAPTERS, RecordContent, content, draw
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded
from tests.trace.random_groups import random_journal
from tests.widgets.pictures.layout import check_layout

AVAILABLE, ACQUIRED, ACKNOWLEDGED, _, ARCHIVED = RecordState
WIDTHS = (320, 374, 480, 760, 1_200)


# ---- random runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_random_records_at_random_moments(seed: int) -> None:
    journal, draw_ = random_journal(seed), random.Random(seed)
    history = GroupHistory(journal, "g")
    end = instant_of(history)
    for _ in range(cases(120, 250)):
        until = draw_.randrange(1, history.total + 1)
        instant = end._replace(until=until, now_ms=journal[until - 1].time_ms + draw_.choice([0, 700]))
        topic, partition = draw_.choice([("orders", 0), ("orders", 2), ("facts", 1)])
        state = history.share_partition(topic, partition, until)
        offset = draw_.randrange(max(state.spso - 30, 0), max(state.log_end, 0) + 3)
        record = content(instant, topic, partition, offset)
        check_chapters(record)
        assert [chapter.title for chapter in record.chapters[:1]] == ["written to the log"] * (offset < state.log_end)
        check_layout(draw(record, draw_.choice(WIDTHS)))
        state = history.share_partition(topic, partition, until)
        found = state.runs.overlap(offset, offset + 1)
        if found and offset < state.log_end:
            assert record.place.name == found[0][2].name
        deliveries = [chapter for chapter in record.chapters if chapter.holder is not None]
        acquired = [
            entry
            for entry in journal.select(RecordsChanged, group="g", topic=topic, partition=partition)
            if entry.order < until
            if (event := entry.event).first <= offset < event.end  # type: ignore[union-attr]
            if event.cause == "acquire" and event.state == ACQUIRED  # type: ignore[union-attr]
        ]
        assert [c.start_ms for c in deliveries] == [entry.time_ms for entry in acquired]
        assert [c.holder.member_id for c in deliveries if c.holder] == [
            getattr(entry.event, "member_id", "") for entry in acquired
        ]


@pytest.mark.parametrize("seed", range(2))
def test_a_bounded_journal_that_has_dropped_entries(seed: int) -> None:
    whole, draw_ = random_journal(seed), random.Random(seed)
    for _ in range(6):
        kept = Journal(whole.origin_ms, capacity=draw_.randrange(20, 300))
        for entry in whole.entries()[: draw_.randrange(300, len(whole))]:
            kept.record(*entry[1:])
        history = GroupHistory(kept, "g")
        instant = instant_of(history)
        for topic, partition in history.share_partitions(history.total):
            state = history.share_partition(topic, partition, history.total)
            for offset in range(max(state.spso - 5, 0), state.window_end + 2):
                record = content(instant, topic, partition, offset)
                check_chapters(record)
                check_layout(draw(record, 374))


def check_chapters(record: RecordContent) -> None:
    """Chapters follow each other without a gap; the last one goes on."""
    for one, two in pairwise(record.chapters):
        assert one.end_ms is not None
        assert one.start_ms <= one.end_ms <= two.start_ms
    assert all(chapter.end_ms is None for chapter in record.chapters[-1:])


# ---- a written story -------------------------------------------------------------------------------------------------


def changed(
    cause: str, state: int = ACQUIRED, member: str = "m-ann", until_s: float = 0, **more: Any
) -> RecordsChanged:
    held: dict[str, Any] = {}
    if state == ACQUIRED:
        held = {"member_id": member, "deadline_ms": ORIGIN_MS + round(until_s * 1000)}
    first, end, count = more.pop("first", 2), more.pop("end", 4), more.pop("count", 1)
    return RecordsChanged(*WHERE, cause, first, end, state, count, **(held | more))


JOINED: list[tuple[float, int, Event]] = [
    (0, 0, TopicCreated(TOPIC, "id", 1)),
    *[(0, 0, MemberJoined(GROUP, f"m-{name}", name, (TOPIC,))) for name in ("ann", "bob")],
    (0, 0, SharePartitionsInitialized(GROUP, TOPIC, (0,))),
]
BEGIN: list[tuple[float, int, Event]] = [
    *JOINED,
    (0.5, 1, RecordsAppended(TOPIC, 0, 0, 9)),
    (0.6, 1, loaded(2, 2, limit=3)),
]
HELD: list[tuple[float, int, Event]] = [
    *BEGIN,
    (1, 1, changed("acquire", until_s=31)),
    (1, 1, WindowMoved(*WHERE, 2, 4)),
]
LOCK = "share.record.lock.duration.ms"
LIFE: list[tuple[float, int, Event]] = [
    *HELD,
    (5, 1, changed("renew", until_s=35)),
    (35, 1, changed("lock_timeout", AVAILABLE)),
    (36, 0, ConfigChanged(f"group:{GROUP}", LOCK, "15000")),
    (40, 1, changed("acquire", member="m-bob", until_s=55, count=2)),
    (41, 1, changed("prepared", member="m-bob", until_s=55, count=2, write_id=1, to_state=ACKNOWLEDGED, why="accept")),
    (41, 1, StateWritePrepared(*WHERE, 1, 2, 2, ())),
    (42, 1, StateWriteSettled(*WHERE, 1, Errors.NOT_ENOUGH_REPLICAS)),
    (42, 1, changed("abandoned", member="m-bob", until_s=55, count=2, why="accept")),
    (43, -1, BrokerStopped(1, True)),
    (44, 2, loaded(2, 4, (2, 4, AVAILABLE, 1), limit=3)),
    (45, 2, changed("acquire", member="m-ann", until_s=60, count=2)),
    (46, 2, changed("prepared", until_s=60, count=2, write_id=1, to_state=AVAILABLE, why="release")),
    (46.2, 2, changed("settled", AVAILABLE, count=2, why="release")),
    (50, 2, changed("acquire", member="m-bob", until_s=65, count=3)),
    (51, 2, changed("prepared", member="m-bob", until_s=65, count=3, write_id=2, to_state=ACKNOWLEDGED, why="accept")),
    (51.5, 2, changed("settled", ACKNOWLEDGED, count=3, why="accept")),
    (51.5, 2, WindowMoved(*WHERE, 4, 4)),
]


def life(
    events: list[tuple[float, int, Event]],
    offset: int = 2,
    *,
    now_s: float = 0,
    partition: int = 0,
    capacity: int | None = None,
) -> RecordContent:
    journal = Journal(ORIGIN_MS, capacity=capacity)
    for time_s, broker_id, event in events:
        journal.record(ORIGIN_MS + round(time_s * 1000), broker_id, event)
    instant = instant_of(GroupHistory(journal, GROUP), now_ms=ORIGIN_MS + round(now_s * 1000))
    return content(instant, TOPIC, partition, offset)


UNCOUNTED = "1 earlier delivery is not counted: acquisitions are not durable, and were lost with the leader"


def test_a_whole_life_in_words() -> None:
    lines = draw(life(LIFE), 400).text.splitlines()
    assert lines[:2] == [
        "t-0 offset 2: acknowledged, below the SPSO 4",
        "It is done: bob accepted it at 0:51.500, in delivery 4, counted as 3.",
    ]
    assert [line.split("; ") for line in lines[2:]] == [
        ["0:00.500 written to the log (500 ms)", "by the leader of the partition, broker 1"],
        [
            "0:01.000 delivery 1 of 3, A ann (34 s)",
            "lock 30 s, delivery limit 3, window 20 records",
            "renewed at 0:05.000, locked until 0:35.000",
            "not acknowledged: the lock ran out at 0:35.000, after 34 s",
        ],
        ["0:35.000 available again (5 s)", "it waits for a fetch"],
        [
            "0:40.000 delivery 2 of 3, B bob (3 s)",
            "configuration now: lock 15 s",
            "its accept was not stored at 0:42.000: the state write failed, NOT_ENOUGH_REPLICAS",
            "the lock was lost with the leader at 0:43.000",
        ],
        ["0:43.000 no leader (1 s)", "broker 1 was killed"],
        [
            "0:44.000 loaded by broker 2 (1 s)",
            "available, delivered once",
            "lost, because not durable: 1 delivery of its count",
        ],
        [
            "0:45.000 delivery 3, counted as 2 of 3, A ann (1.2 s)",
            "configuration now: lock 30 s",
            UNCOUNTED,
            "released at 0:46.200, after 1.2 s, of which the state write took 200 ms",
        ],
        ["0:46.200 available again (3.8 s)", "it waits for a fetch"],
        [
            "0:50.000 delivery 4, counted as 3 of 3, the last attempt, B bob (1.5 s)",
            "accepted at 0:51.500, after 1.5 s, of which the state write took 500 ms",
        ],
        ["0:51.500 acknowledged (until now)", "the SPSO passed it at 0:51.500"],
    ]


@pytest.mark.parametrize(("killed", "why"), [(True, "broker 1 was killed"), (False, "broker 1 stopped")])
def test_the_next_leader_does_not_count_what_was_not_durable(killed: bool, why: str) -> None:
    """It is loaded and acquired at one instant, so that the load has no chapter of its own."""
    events: list[tuple[float, int, Event]] = [
        *HELD,
        (3, -1, BrokerStopped(1, killed)),
        (4, 2, loaded(2, 2, limit=3)),
        (4, 2, changed("acquire", until_s=34)),
        (4, 2, WindowMoved(*WHERE, 2, 4)),
        (34, 2, changed("lock_timeout", AVAILABLE)),
    ]
    shown = life(events)
    assert [chapter.title for chapter in shown.chapters] == [
        "written to the log", "delivery 1 of 3", "no leader", "delivery 2, counted as 1 of 3", "available again",
    ]  # fmt: skip
    assert shown.chapters[2].details == (why,)
    assert UNCOUNTED in shown.chapters[3].details
    assert shown.place.why.endswith("ran out at 0:34.000, in delivery 2, counted as 1.")


FULL: list[tuple[float, int, Event]] = [
    (2.0, 1, changed("acquire", first=4, end=22, until_s=32)),
    (2.0, 1, WindowMoved(*WHERE, 2, 22)),
]
MORE: list[tuple[float, int, Event]] = [(0.5, 1, RecordsAppended(TOPIC, 0, 9, 60))]
WRITTEN = changed("prepared", first=3, until_s=31, write_id=1, to_state=ACKNOWLEDGED, why="accept")
DONE: list[tuple[float, int, Event]] = [
    (2.0, 1, WRITTEN),
    (2.0, 1, changed("settled", ACKNOWLEDGED, first=3, why="accept")),
]
DONE_BELOW = (
    "It is done, because ann accepted it at 0:02.000, in delivery 1; it stays in the window until the SPSO can pass: "
    "offset 2 is acquired by ann."
)
PLACES: list[tuple[list[tuple[float, int, Event]], int, str, str, str]] = [
    (BEGIN[:4], 0, "none", "not written yet", "Offset 0 is not written yet: the log of t-0 is empty."),
    (BEGIN, 9, "none", "not written yet", "Offset 9 is not written yet: the log of t-0 ends at 8."),
    (
        [*JOINED[:3], BEGIN[4]],
        3,
        "above",
        "not in the group",
        "The group g does not read t-0 yet: it has no share-partition there.",
    ),
    (BEGIN, 1, "below", "below the SPSO 2", "No member of the group had it: the SPSO is 2, above it."),
    (
        [*BEGIN, (2, 1, LogStartMoved(TOPIC, 0, 5))],
        3,
        "below",
        "below the log start",
        "The log of t-0 begins at 5: it no longer has offset 3.",
    ),
    (BEGIN, 3, "above", "the window is empty", "No fetch has reached it yet."),
    (BEGIN[:5], 3, "above", "the window is empty", "No broker has the share-partition t-0 in memory."),
    (
        [*HELD, *[(2.0, 0, MemberLeft(GROUP, f"m-{name}", "left")) for name in ("ann", "bob")]],
        5,
        "above",
        "above the SPEO 3",
        "The group has no member that could fetch it.",
    ),
    (
        [*HELD[:5], *MORE, *HELD[5:], *FULL],
        30,
        "above",
        "above the SPEO 21",
        "The window is full, with 20 records: its SPSO 2 must move first: offset 2 is acquired by ann.",
    ),
    (
        HELD,
        3,
        "acquired",
        "in the window 2–3, delivered 1 of 3",
        "ann has held it since 0:01.000 and must acknowledge it by 0:31.000.",
    ),
    (
        LIFE[:-2],
        2,
        "acquired",
        "in the window 2–3, delivered 3 of 3",
        "bob has held it since 0:50.000; its accept counts when the state write has succeeded.",
    ),
    (
        LIFE[:-3],
        2,
        "acquired",
        "in the window 2–3, delivered 3 of 3",
        "bob has held it since 0:50.000 and must acknowledge it by 1:05.000, or it is archived.",
    ),
    (
        LIFE[:-4],
        2,
        "available",
        "in the window 2–3, delivered 2 of 3",
        "It waits for the next fetch of a member, because ann released it at 0:46.200, in delivery 3, counted as 2.",
    ),
    (
        LIFE[:10],
        2,
        "available",
        "in the window 2–3, delivered 1 of 3",
        "It waits for the next fetch of a member, because the lock of ann ran out at 0:35.000, in delivery 1.",
    ),
    (
        [*HELD, *DONE],
        3,
        "acknowledged",
        "in the window 2–3, delivered 1 of 3",
        DONE_BELOW,
    ),
    (
        [*HELD, (2, 1, SharePartitionDropped(*WHERE, "moved"))],
        2,
        "acquired",
        "in the window 2–3, delivered 1 of 3",
        "No broker has the share-partition t-0 in memory: its durable state is loaded next.",
    ),
    (
        [*HELD, (3, 2, loaded(4, 4))],
        2,
        "below",
        "below the SPSO 4",
        "It is done: the SPSO is 4; its last state is not in the journal.",
    ),
    (
        [*BEGIN, (1, 1, WindowMoved(*WHERE, 2, 6))],
        4,
        "above",
        "in the window 2–5",
        "No delivery of it is known: the log has no record there, or no fetch has read it since the last load.",
    ),
    (
        [*HELD, (31, 1, changed("lock_timeout", ARCHIVED)), (31, 1, WindowMoved(*WHERE, 4, 4))],
        2,
        "archived",
        "below the SPSO 4",
        "It is done: the lock of ann ran out at 0:31.000, in delivery 1, the last one: it was archived.",
    ),
]


@pytest.mark.parametrize(("events", "offset", "name", "where", "why"), PLACES)
def test_where_a_record_is_and_why(
    events: list[tuple[float, int, Event]], offset: int, name: str, where: str, why: str
) -> None:
    shown = life(events, offset)
    assert shown.place == (name, where, why)
    for width in WIDTHS:
        drawing = draw(shown, width)
        check_layout(drawing)
        lines = [drawing.find(key)["text"] for key in drawing.keys("why ")]
        assert " ".join(lines) == why


def test_a_partition_or_a_topic_that_does_not_exist() -> None:
    assert life(BEGIN, partition=7).place.why == "The topic t has 1 partition, counted from 0."
    assert life(BEGIN[4:5], partition=7).place.where == "no such partition"
    assert life([]).place == ("none", "no such topic", "There is no topic t at this moment.")


@pytest.mark.parametrize("bad", [-1, 1.0, True, "4", None])
def test_what_is_no_offset_is_refused(bad: Any) -> None:
    instant = instant_of(GroupHistory(Journal(ORIGIN_MS), GROUP))
    with pytest.raises(ValueError, match=r"^offset=.*: must be a whole number from 0$"):
        content(instant, TOPIC, 0, bad)
    with pytest.raises(ValueError, match=r"^partition=.*: must be a whole number from 0$"):
        content(instant, TOPIC, bad, 0)


def test_the_configuration_of_a_delivery_is_that_of_its_time() -> None:
    deliveries = [chapter for chapter in life(LIFE).chapters if chapter.config is not None]
    assert [c.config[:3] for c in deliveries if c.config] == [
        *((30_000, 3, 20), (15_000, 3, 20), (30_000, 3, 20), (30_000, 3, 20))
    ]
    assert [c.config.overrides for c in deliveries if c.config] == [(), *[((LOCK, "15000"),)] * 3]


def test_the_end_of_the_log_and_of_the_window() -> None:
    shown = life([*LIFE, (60, 2, LogStartMoved(TOPIC, 0, 3))])
    assert shown.place.where == "below the SPSO 4, and below the log start 3"
    assert shown.chapters[-1].details[-1] == "the log start moved above it at 1:00.000: the log no longer has it"


def test_an_observer_names_what_is_not_known() -> None:
    events: list[tuple[float, int, Event]] = [
        *JOINED,
        (1, -1, DurableStateRead(*WHERE, 0, (), 0, 0, 1, 0)),
        (2, -1, RecordsAppended(TOPIC, 0, 0, 9)),
        (3, -1, RecordsHeld(*WHERE, "m-ann", 2, 4, 1)),
        (4, -1, MemberLeft(GROUP, "m-ann", "left")),
        (5, -1, DurableStateRead(*WHERE, 0, (Run(2, 4, AVAILABLE, 1),), 0, 0, 1, 0)),
        (6, -1, DurableStateRead(*WHERE, 4, (), 0, 0, 1, 0)),
    ]
    unknown = "It is above the durable SPSO: whether a member holds it is not known to an observer."
    assert [(life(events[: 4 + n]).place.name, life(events[: 4 + n]).place.why) for n in range(2, 7)] == [
        ("unknown", unknown),
        ("acquired", "ann has held it since 0:03.000; the deadline is not known."),
        ("unknown", unknown),
        ("returned", "It was returned, and a member may hold it again: an observer does not know."),
        ("below", "It is done: the SPSO is 4; its last state is not in the journal."),
    ]
    assert [chapter.title for chapter in life(events).chapters] == [
        "written to the log",
        "delivery 1",
        "not held by a known member",
        "returned, delivered once",
        "passed over",
    ]


def test_an_acquisition_that_is_not_in_the_journal() -> None:
    shown = life([*HELD, (5, 1, changed("renew", until_s=35)), (36, 1, changed("lock_timeout", AVAILABLE))], capacity=2)
    assert [(chapter.title, chapter.details) for chapter in shown.chapters] == [
        (
            "delivery 1",
            (
                "acquired before the journal begins",
                "renewed at 0:05.000, locked until 0:35.000",
                "not acknowledged: the lock ran out at 0:36.000, after 31 s",
            ),
        ),
        ("available again", ("it waits for a fetch",)),
    ]


# ---- the drawing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_every_chapter_is_in_the_story_and_in_the_band(width: int) -> None:
    shown = life(LIFE, now_s=55)
    drawing = draw(shown, width)
    check_layout(drawing)
    for chapter in shown.chapters:
        title = " ".join(drawing.find(key)["text"] for key in drawing.keys(f"{chapter.key} title "))
        assert chapter.title in title
        for number, text in enumerate(chapter.details):
            assert " ".join(drawing.find(k)["text"] for k in drawing.keys(f"{chapter.key} {number} ")) == text
        segment = drawing.find(f"{chapter.key} segment")["attributes"]
        if chapter.state is not None:
            fill = {AVAILABLE: "bg", ACQUIRED: "acquired", ACKNOWLEDGED: "acknowledged"}[chapter.state]
            assert (segment["fill"], drawing.find(f"{chapter.key} dot")["attributes"]["fill"]) == (fill, fill)
    starts = [drawing.find(f"{c.key} segment")["attributes"]["x"] for c in shown.chapters]
    assert starts == sorted(starts)
    hot = " ".join(e["text"] for e in drawing.elements if "hot" in e.get("style", ""))
    assert hot == " ".join(text for chapter in shown.chapters for text in chapter.alarms)
    assert [text.split(":")[0] for c in shown.chapters for text in c.alarms] == [
        *("its accept was not stored at 0", "lost, because not durable")
    ]


@pytest.mark.parametrize(("events", "style"), [(LIFE[:-3], "hot"), (LIFE, "strong"), (HELD, "strong")])
def test_the_last_attempt_is_in_the_alarm_colour_while_it_lasts(
    events: list[tuple[float, int, Event]], style: str
) -> None:
    shown = life(events)
    delivery = [chapter for chapter in shown.chapters if chapter.holder is not None][-1]
    assert draw(shown, 760).find(f"{delivery.key} title 0")["style"] == style


@pytest.mark.parametrize("later_ms", [40, 3_000, 5_000])
def test_what_moves_between_snapshots_is_where_the_next_snapshot_has_it(later_ms: int) -> None:
    before, after = (draw(life(HELD, now_s=now_s), 600) for now_s in (3, 3 + later_ms / 1000))
    moving = [element for element in before.elements if "rates" in element]
    assert {element["key"] for element in moving} == {"now", f"{life(HELD).chapters[-1].key} segment"}
    for element in moving:
        for name, rate in element["rates"].items():
            moved = element["attributes"][name] + rate * later_ms
            assert moved == pytest.approx(after.find(element["key"])["attributes"][name], abs=0.05)
    now = before.find("now")
    assert now["attributes"]["x1"] + now["rates"]["x1"] * (AHEAD_MS - 1_000) <= before.width


def test_a_held_record_shows_its_holder_and_its_seconds() -> None:
    shown = life(HELD, now_s=3)
    drawing, key = draw(shown, 374), shown.chapters[-1].key
    assert drawing.find("cell letter")["text"] == "A"
    assert drawing.find(f"{key} seconds")["countdown"] == ORIGIN_MS + 31_000
    lock = drawing.find("lock")["attributes"]
    segment = drawing.find(f"{key} segment")["attributes"]
    assert lock["x"] == segment["x"]
    assert lock["width"] == pytest.approx(segment["width"] * 30_000 / 2_000, abs=0.1)
    assert drawing.find(f"{key} badge")["about"] == ["record:t-0:2", "partition:t-0", "member:m-ann"]


def test_many_renewals_are_one_detail_and_few_notches() -> None:
    renewals: list[tuple[float, int, Event]] = [(1.0 + n, 1, changed("renew", until_s=31 + n)) for n in range(1, 60)]
    shown = life([*HELD, *renewals])
    assert shown.chapters[-1].details[1:] == ("renewed 59 times, last at 1:00.000, locked until 1:30.000",)
    drawing = draw(shown, 480)
    assert drawing.keys("renewed ")[-1] == f"renewed {ORIGIN_MS + 60_000}"
    assert len(drawing.keys("renewed ")) == 20
    check_layout(drawing)


def test_many_failed_writes_are_shortened() -> None:
    fails: list[tuple[float, int, Event]] = []
    for n in range(1, 13):
        accept: dict[str, Any] = {"until_s": 31, "write_id": n, "to_state": ACKNOWLEDGED, "why": "accept"}
        fails += [
            (1.0 + n, 1, changed("prepared", **accept)),
            (1.0 + n, 1, changed("abandoned", until_s=31, why="accept")),
        ]
    details = life([*HELD, *fails]).chapters[-1].details
    assert (len(details), details[3]) == (8, "6 more")
    assert details[-1] == "its accept was not stored at 0:13.000: the state write failed"


def test_a_long_life_is_shortened_with_a_note() -> None:
    again = [
        event
        for n in range(40)
        for event in (
            (40.0 + 2 * n, 1, changed("acquire", until_s=90 + 2 * n, count=n + 2)),
            (41.0 + 2 * n, 1, changed("lock_timeout", AVAILABLE, count=n + 2)),
        )
    ]
    shown = life([*HELD, (31, 1, changed("lock_timeout", AVAILABLE)), *again])
    assert len(shown.chapters) == 83
    for width in WIDTHS:
        drawing = draw(shown, width)
        check_layout(drawing)
        assert drawing.find("hidden")["text"] == f"{83 - SHOWN_CHAPTERS} chapters left out"
        assert len(drawing.keys("")) <= 400
        dots = [key for key in drawing.keys("") if key.endswith(" dot")]
        assert len(dots) == SHOWN_CHAPTERS
        assert len(drawing.text.splitlines()) == SHOWN_CHAPTERS + 3
