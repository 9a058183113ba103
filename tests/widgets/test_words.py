"""Texts of the strip."""

from __future__ import annotations

from typing import Any

import pytest

from shareq_widgets.look import SIZES
from shareq_widgets.text_fit import text_width
from shareq_widgets.words import chips, clock_text, lanes, sentence, where
from tests.widgets.fakes import payments

SNAPSHOTS = payments().snapshots
WRITING = next(snapshot for snapshot in SNAPSHOTS if snapshot["writes"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param({}, "orders-0 · leader broker 2", id="leader known"),
        pytest.param({"leader": -1}, "orders-0 · no leader", id="no leader"),
        pytest.param(
            {"loaded": False},
            "orders-0 · no leader has its records in memory: it waits for a fetch",
            id="after the broker was killed",
        ),
    ],
)
def test_where(changes: dict[str, Any], text: str) -> None:
    assert where(WRITING | changes) == text


FULL: dict[str, Any] = {"in_flight": 20}


@pytest.mark.parametrize(
    ("changes", "text", "hot"),
    [
        pytest.param({}, "in flight 16 / 20", False, id="in flight of the limit"),
        pytest.param(FULL, "in flight 20 / 20 · window full", True, id="window full"),
        pytest.param(FULL | {"waits": "window full, held"}, "in flight 20 / 20 · window full, held", True, id="held"),
        pytest.param(
            FULL | {"waits": "resting"}, "in flight 20 / 20 · window full", True, id="full, some records rest"
        ),
        pytest.param({"waits": "resting"}, "resting", True, id="resting"),
        pytest.param({"waits": "paused"}, "paused", True, id="paused"),
        pytest.param({}, "lag 24", False, id="lag"),
        pytest.param({}, "1 record on its last attempt", True, id="one last attempt"),
        pytest.param({"delivery_count_limit": 2}, "4 records on their last attempt", True, id="several last attempts"),
        pytest.param({}, "1 state write under way", False, id="one write"),
        pytest.param({"writes": [1, 2]}, "2 state writes under way", False, id="two writes"),
    ],
)
def test_chips(changes: dict[str, Any], text: str, hot: bool) -> None:
    shown = {"".join(chip[:3]): chip.hot for chip in chips(WRITING | changes)}
    assert shown.get(text) is hot


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        pytest.param({"lag": None}, "lag", id="unknown lag is not shown"),
        pytest.param({"waits": "log end"}, "log end", id="all records are delivered, as lag and window show"),
        pytest.param({"writes": []}, "write", id="no writes"),
        pytest.param({"delivery_count_limit": 9}, "attempt", id="no last attempt"),
    ],
)
def test_chips_left_out(changes: dict[str, Any], gone: str) -> None:
    assert not any(gone in "".join(chip[:3]) for chip in chips(WRITING | changes))


KILLED = {"marks": [{"order": WRITING["order"], "time_ms": 0, "kind": "broker_killed", "text": "broker 2 killed"}]}


@pytest.mark.parametrize(
    ("changes", "messages", "what", "why", "hot"),
    [
        pytest.param({}, (), "consumer-2 accepted 111–112", ", state write under way", False, id="event"),
        pytest.param({"event": None, "step": None}, (), "nothing has happened here yet", "", False, id="no event yet"),
        pytest.param({}, ("The end.", ""), "The end.", "", False, id="a message replaces the event"),
        pytest.param({}, ("The end.", "KeyError: 3"), "KeyError: 3", "", True, id="an error replaces both"),
        pytest.param(KILLED, (), "consumer-2 accepted 111–112", ", state write under way", True, id="alarming mark"),
    ],
)
def test_sentence(changes: dict[str, Any], messages: tuple[str, ...], what: str, why: str, hot: bool) -> None:
    shown = sentence(WRITING | changes, 512, *messages)
    assert shown == (f"event {WRITING['order']} of 512: ", what, why, hot)


STEP = {"first": WRITING["order"] - 2, "text": "c accepted 1–2, the state write succeeded"}


@pytest.mark.parametrize(
    ("changes", "internals", "place", "what"),
    [
        pytest.param({"step": STEP}, False, "events {first}–{order} of 512: ", "c accepted 1–2", id="a step"),
        pytest.param({"step": STEP}, True, "event {order} of 512: ", "consumer-2 accepted 111–112", id="internals"),
        pytest.param({"step": None}, False, "event {order} of 512: ", "consumer-2 accepted 111–112", id="in a step"),
        pytest.param(
            {"now_ms": WRITING["now_ms"] + 2340}, False, "2.3 s after event {order} of 512: ",
            "consumer-2 accepted 111–112", id="between two events",
        ),
        pytest.param(
            {"now_ms": WRITING["now_ms"] + 7}, False, "7 ms after event {order} of 512: ",
            "consumer-2 accepted 111–112", id="shortly after an event",
        ),
    ],
)  # fmt: skip
def test_where_a_sentence_stands(changes: dict[str, Any], internals: bool, place: str, what: str) -> None:
    shown = sentence(WRITING | changes, 512, internals=internals)
    expected = place.format(first=WRITING["order"] - 2, order=WRITING["order"])
    assert (shown.place, shown.what) == (expected, what)


def test_a_mark_inside_a_step_alarms() -> None:
    marked = {"marks": [{**KILLED["marks"][0], "order": WRITING["order"] - 1}]}
    assert sentence(WRITING | marked | {"step": STEP}, 512).hot
    assert not sentence(WRITING | marked, 512).hot


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "00:00.000"), (12_400, "00:12.400"), (3_599_999, "59:59.999"), (3_600_000, "1:00:00.000"), (-5, "00:00.000")],
)
def test_clock(ms: int, text: str) -> None:
    assert clock_text(ms) == text


def test_dead_and_frozen_members_have_a_sign() -> None:
    one = payments().snapshots[-1]
    members = [
        {**one["members"][0], "id": f"m{n}", "name": f"clerk-{n}", "held": 0, "deadline_ms": None, "letter": "A"}
        | {"alive": alive, "frozen": frozen}
        for n, (alive, frozen) in enumerate([(True, False), (True, True), (False, False)])
    ]
    found, _ = lanes(one | {"members": members}, everyone=True)
    assert [lane.name[0] for lane in found] == ["clerk-0 A", "clerk-1 ❄ A", "clerk-2 † A"]


@pytest.mark.parametrize("name", ["clerk-101", "a-consumer-in-a-namespace-101", "m" * 40])
def test_the_name_of_a_lane_fits_its_gutter(name: str) -> None:
    """With the sign of a dead member and a letter of two; the end of a long name stays."""
    one = payments().snapshots[-1]
    members = [{**one["members"][0], "name": name, "letter": "CW", "alive": False}]
    (lane,), _ = lanes(one | {"members": members}, everyone=True)
    for shown, gutter in zip(lane.name, ("gutter_left", "gutter_left_narrow"), strict=True):
        assert text_width(shown) <= SIZES[gutter] - SIZES["name_right"]
        assert shown.endswith(f"{name[-3:]} † CW")
