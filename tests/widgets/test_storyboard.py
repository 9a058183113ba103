"""The storyboard of a saved notebook: which moments it shows, and when there is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from shareq.broker import Cluster
from shareq.trace.journal import Journal
from shareq.trace.views.snapshot import Event, StripSnapshot
from shareq.trace.views.themed_svg import themed
from shareq_widgets import cluster as cluster_view
from shareq_widgets import group, locks, states, strip
from shareq_widgets.player import Player
from shareq_widgets.stored import MOST_BYTES
from shareq_widgets.storyboard import climax, moments, storyboard
from shareq_widgets.strip_picture import draw
from shareq_widgets.words import clock_text
from tests.browser.story import acknowledge, member, payments
from tests.widgets.fakes import FakeCluster, History

SVG = "{http://www.w3.org/2000/svg}"
PLACE: dict[str, Any] = {"group": "payments", "topic": "orders"}
LONG = 40


def shown(history: History) -> Player:
    cluster = FakeCluster(history, len(history.snapshots) - 1)
    return strip(cluster, **PLACE, view=cluster.view)


def eventful(kinds: str) -> History:
    """An acquisition, then for each letter `t` a time-out with the acquisition after it, for each `a` only that."""
    history = History().acquire("m-a", 100, 104)
    for place, kind in enumerate(kinds):
        first = 100 + place % 4
        if kind == "t":
            history.settle(first, first + 1, "available", "lock_timeout", after_ms=5_000)
        history.acquire("m-b", first, first + 1, after_ms=5_000)
    return history


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """A cluster whose last events are dull: broker 0 is killed and recovers before them."""
    made = payments()
    made.kill_broker(0)
    made.advance(40_000)
    consumer = member(made, "consumer-4", 1)
    for _ in range(6):
        acknowledge(consumer, "✓")
    return made


def test_it_begins_with_the_first_acquisition_and_ends_with_the_present() -> None:
    frames = moments(shown(eventful("aataa")))
    orders = [frame.snapshot["order"] for frame in frames]
    assert orders == [1, 4, 7]  # acquired, timed out, the end


@pytest.mark.parametrize(("kinds", "count"), [("t", 3), ("tata", 4), ("t" * LONG, 5)])
def test_of_one_kind_the_moments_are_spread_in_time(kinds: str, count: int) -> None:
    player = shown(eventful(kinds))
    frames = moments(player)
    assert len(frames) == count
    times = [frame.snapshot["now_ms"] for frame in frames]
    assert times == sorted(times)
    if len(kinds) == LONG:
        assert times[2] - times[1] > (times[-1] - times[0]) / 4


def test_a_failure_counts_more_than_archived_records(cluster: Cluster) -> None:
    for view in (strip(cluster, **PLACE), states(cluster, group="payments")):
        by_importance = sorted(moments(view), key=lambda frame: frame.importance)
        [beginning, worst, *_] = [cast(Any, frame.snapshot) for frame in by_importance]
        assert beginning["event"]["time_ms"] <= worst["event"]["time_ms"]
        mark = min(view.snapshot["marks"], key=lambda mark: mark["rank"])
        assert mark["kind"] in ("broker_killed", "leader_moved")
        assert worst["order"] == view.view.next_step(mark["order"] - 1)


def test_without_a_failure_the_climax_is_the_fullest_moment_not_the_beginning() -> None:
    history = History().acquire("m-a", 100, 104)
    for first in (104, 108):
        history.acquire("m-b", first, first + 4, after_ms=1_000)
        history.settle(first - 4, first - 2, "acknowledged", "accept", after_ms=1_000)
    frames = moments(shown(history))
    assert len(frames) > 2
    held = [
        sum(run[1] - run[0] for run in cast(StripSnapshot, frame.snapshot)["runs"] if run[2] == "acquired")
        for frame in frames
    ]
    best = climax(shown(history)).snapshot["order"]
    assert best == max(frame.snapshot["order"] for frame, count in zip(frames, held, strict=True) if count == max(held))
    assert best > frames[0].snapshot["order"]


def test_the_climax_is_a_failure_if_there_is_one(cluster: Cluster) -> None:
    player = strip(cluster, **PLACE)
    shown = climax(player)
    shown_orders = range(1, shown.snapshot["order"] + 1)
    events = [cast(Event, player.view.snapshot(order)["event"])["text"] for order in shown_orders]
    assert player.view.next_step(events.index("broker 0 was killed")) == shown.snapshot["order"]


def test_without_an_acquisition_the_climax_is_the_first_failure() -> None:
    made = Cluster(brokers=2, seed=3)
    made.create_topic("orders")
    made.configure_group("payments", {"share.auto.offset.reset": "earliest"})
    for broker in (0, 1):
        made.kill_broker(broker)
        made.advance(5_000)
        made.start_broker(broker)
        made.advance(5_000)
    player = group(made, group="payments")
    first, second = [mark["order"] for mark in player.snapshot["marks"] if mark["kind"] == "broker_killed"]
    assert first < climax(player).snapshot["order"] == player.view.next_step(first - 1) < second


@pytest.mark.parametrize(
    "make", [lambda c: strip(c, **PLACE), *(lambda c, v=v: v(c, group="payments") for v in (locks, states, group))]
)
def test_each_frame_has_its_picture_its_sentence_and_its_time(cluster: Cluster, make: Callable[..., Player]) -> None:
    player = make(cluster)
    made = storyboard(player)
    assert made is not None
    root = ET.fromstring(made)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    pictures = root.findall(f"{SVG}g/{SVG}svg")
    assert 3 <= len(pictures) <= 5
    assert len({ET.tostring(picture) for picture in pictures}) == len(pictures)
    for number, line in enumerate(root.findtext(f"{SVG}title", "").split("\n"), start=1):
        place, time, text = re.fullmatch(r"(\d+)\. (t [\d:.]+): (.+)", line).groups()  # type: ignore[union-attr]
        assert place == str(number)
        assert time in texts
        assert any(text.startswith(shown.rstrip("…")) for shown in texts if len(shown) > 8)


def test_a_long_sentence_has_two_lines_and_its_picture_stands_below(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(sentence: str) -> tuple[list[tuple[str, float]], list[str]]:
        monkeypatch.setattr("shareq_widgets.storyboard.caption", lambda *_: ("t 0:01", sentence, False))
        root = ET.fromstring(storyboard(shown(eventful("aataa"))) or "")
        texts = [("".join(node.itertext()), float(node.attrib["y"])) for node in root.findall(f"{SVG}text")]
        return texts, [node.attrib["transform"] for node in root.findall(f"{SVG}g")]

    short, places = drawn("ann accepted 0")
    words = " ".join(["ann accepted 0–9;"] * 10)
    long, moved = drawn(words)
    lines = [text for text, _ in long if text.startswith("ann") or text.endswith("0–9;")]
    assert " ".join(lines[:2]) == words
    assert [y for text, y in long if text in lines[:2]][:2] == [71, 87]
    assert ("ann accepted 0", 71) in short
    assert (places[0], moved[0]) == ("translate(0 90)", "translate(0 106)")


def test_a_frame_is_the_picture_of_that_moment(cluster: Cluster) -> None:
    player = strip(cluster, **PLACE)
    made = storyboard(player)
    assert made is not None
    for frame in moments(player)[:-1]:
        snapshot = player.view.snapshot(frame.snapshot["order"])
        assert draw(cast(StripSnapshot, snapshot), bare=True) in made
        assert f"t {clock_text(snapshot['now_ms'] - snapshot['origin_ms'])}" in made


def test_without_three_moments_there_is_none() -> None:
    assert storyboard(shown(History())) is None
    assert storyboard(shown(eventful("aa"))) is None
    assert storyboard(strip(Journal(), **PLACE)) is None


def test_a_storyboard_has_a_bounded_size(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for player in (
        strip(cluster, **PLACE),
        cluster_view(cluster, group="payments"),
        locks(cluster, group="payments"),
    ):
        made = storyboard(player)
        assert made is not None
        assert len(made.encode()) <= MOST_BYTES
    player = shown(eventful("t" * LONG))
    whole = storyboard(player)
    assert whole is not None
    monkeypatch.setattr("shareq_widgets.storyboard.MOST_BYTES", len(whole.encode()) - 1)
    fewer = storyboard(player)
    assert fewer is not None
    assert fewer.count('<circle cx="26"') == whole.count('<circle cx="26"') - 1
    monkeypatch.setattr("shareq_widgets.storyboard.MOST_BYTES", 1000)
    assert storyboard(player) is None


def test_a_saved_cell_has_the_storyboard_at_the_end_and_else_the_shown_moment(cluster: Cluster) -> None:
    for player in (strip(cluster, **PLACE, linked=False), locks(cluster, group="payments", linked=False)):
        data, _ = player._repr_mimebundle_()
        assert data["image/svg+xml"] == themed(str(storyboard(player)))
        player.seek(40)
        data, _ = player._repr_mimebundle_()
        assert data["image/svg+xml"] == themed(player.to_svg())
