"""Observed share-partitions: unknown states have their own fill, shape, text and place in the legend."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from shareq.model.events import ConfigChanged, Event, MembersBypass, ObservationDisturbed
from shareq.trace import Journal
from shareq.trace.views.palette import DARK, LIGHT
from shareq_widgets import strip
from shareq_widgets.look import SHAPES, SIZES, in_legend
from shareq_widgets.strip_picture import Cell, cell_at, cell_markup, draw
from shareq_widgets.words import chips, where
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC
from tests.trace.test_observed import MIXED, NOTHING, START, TEN, grown, held, observed
from tests.widgets.fakes import payments

SEEN: list[Event] = [*TEN, MIXED, held("b", 9, 10)]
"""`SPSO 2 | ? ✓ ✓ ◌1 ✕ ? ◌3 B | log end 10`."""


def snapshot(*events: Event) -> Any:
    return observed(list(events)).snapshot()


ALL = snapshot(*SEEN)


class Watching:
    """An observer as a strip uses it: a journal, and a clock in real time."""

    clock = "wall"

    def __init__(self, *events: Event) -> None:
        self.journal = Journal(ORIGIN_MS)
        self.closed = False
        self.now_ms = ORIGIN_MS
        for event in events:
            self.see(event)

    def see(self, event: Event) -> None:
        self.now_ms += 1000
        self.journal.record(self.now_ms, -1, event)


@pytest.mark.parametrize(
    ("offset", "cell"),
    [
        pytest.param(2, Cell("run", "unknown"), id="unknown"),
        pytest.param(3, Cell("run", "acknowledged", 1), id="accepted"),
        pytest.param(5, Cell("run", "returned", 1), id="returned"),
        pytest.param(6, Cell("run", "archived", 5), id="archived"),
        pytest.param(8, Cell("run", "returned", 3), id="returned three times"),
        pytest.param(9, Cell("run", "acquired", 1, "B", "", "member1"), id="held by a reporting member"),
        pytest.param(10, Cell("dash"), id="not written yet"),
        pytest.param(1, Cell("dash"), id="below the SPSO"),
    ],
)
def test_cells(offset: int, cell: Cell) -> None:
    assert cell_at(ALL, offset) == cell


@pytest.mark.parametrize(("theme", "colours"), [("light", LIGHT), ("dark", DARK)])
@pytest.mark.parametrize("state", ["returned", "unknown"])
def test_fill_and_shape_and_colour(state: str, theme: str, colours: dict[str, str]) -> None:
    markup = cell_markup(Cell("run", state, 2), ALL, SIZES["pitch"], colours)
    assert "url(#sq-veil)" in markup
    assert SHAPES[state]["glyph"] in markup
    assert colours[state] in markup
    assert ("<circle" in markup) == (state == "returned")  # the delivery count of an unknown record is not known
    picture = draw(ALL, theme=theme)
    assert ET.fromstring(picture).findtext("{http://www.w3.org/2000/svg}title") == ALL["text"]
    assert 'id="sq-veil"' in picture


def test_the_picture_names_unknown_states() -> None:
    nodes = [node for node in ET.fromstring(draw(ALL)).iter() if not node.tag.endswith("title")]
    texts = " ".join(node.text or "" for node in nodes).replace("\N{NO-BREAK SPACE}", " ")
    for text in (
        "SPEO at most ",
        "? unknown",
        "◌ returned",
        "available, or held by an unknown member",
        "seen from outside",
    ):
        assert text in texts
    assert "in flight" not in texts
    assert "lock time left" not in texts


def test_a_wide_window_is_drawn_as_blocks() -> None:
    locks = ConfigChanged(f"group:{GROUP}", "share.partition.max.record.locks", "3000")
    picture = draw(snapshot(locks, *START, MIXED, grown(3000)))
    assert picture.count("url(#sq-veil)") == 2
    assert "SPEO at most " in picture


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        pytest.param(SEEN, ["unknown 2", "returned 2", "lag 5"], id="unknown and returned"),
        pytest.param(TEN, ["unknown 10", "lag 10"], id="all are unknown"),
        pytest.param([*START, NOTHING], ["lag 0"], id="an empty partition"),
        pytest.param(
            [*TEN, ObservationDisturbed("why")],
            ["not all can be seen!", "unknown 10", "lag 10"],
            id="no broker responds",
        ),
    ],
)
def test_chips(events: list[Event], shown: list[str]) -> None:
    found = ["".join(chip[:3]) + "!" * chip.hot for chip in chips(snapshot(*events))]
    assert sorted(found) == sorted(shown)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param(
            [*TEN, MembersBypass(GROUP, ())],
            "t-0 · leader broker 1 · seen through a tap, time-outs inferred",
            id="all members are connected through a tap",
        ),
        pytest.param(
            [*TEN, MembersBypass(GROUP, ("b",))],
            "t-0 · leader broker 1 · seen from outside",
            id="a member is connected past the tap",
        ),
        pytest.param(TEN, "t-0 · leader broker 1 · seen from outside", id="watching"),
        pytest.param(
            [*START, NOTHING], "t-0 · leader broker 1 · seen from outside, nothing durable yet", id="not begun"
        ),
    ],
)
def test_where(events: list[Event], text: str) -> None:
    assert where(snapshot(*events)) == text


def test_the_legend_has_the_states_of_the_strip() -> None:
    assert in_legend(ALL) == ["acquired", "acknowledged", "archived", "returned", "unknown"]
    assert in_legend(payments().snapshots[-1]) == ["available", "acquired", "acknowledged", "archived"]


def test_a_strip_follows_an_observer_until_it_is_closed() -> None:
    source = Watching(*TEN)
    shown = strip(source, group=GROUP, topic=TOPIC)
    assert shown._playback.next_tick_ms() == 100
    source.see(MIXED)
    shown.tick()
    assert shown.snapshot["spso"] == 2
    assert shown.words["sentence"][1] == "durable now: SPSO 2"
    source.see(ObservationDisturbed("the cluster does not answer"))
    shown.tick()
    assert shown.words["sentence"][3]  # hot: needs attention
    source.closed = True
    shown.tick()
    assert shown._playback.next_tick_ms() is None
    shown.close()
