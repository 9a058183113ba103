"""Views as files: pictures, and pages that hold a recording."""

from __future__ import annotations

import itertools
import json
import random
import re
from base64 import b64decode
from collections.abc import Iterator
from gzip import decompress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from shareq.broker import Cluster
from shareq.consumer import AcknowledgeType
from shareq.producer import Producer
from shareq.trace.journal import Journal
from shareq_widgets import ControlRoom, control_room, locks, room_picture, states, strip
from shareq_widgets.changes import change, changed
from shareq_widgets.export import PAGE_BYTES, page
from shareq_widgets.player import Player
from tests.browser.busy import GROUP, TOPIC, busy, consumer
from tests.browser.story import payments

PLACE: dict[str, Any] = {"group": "payments", "topic": "orders"}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return payments()


def views(cluster: Cluster) -> list[Player]:
    return [strip(cluster, **PLACE), locks(cluster, group="payments"), states(cluster, group="payments")]


def recorded(text: str) -> dict[str, Any]:
    """The content of a page."""
    packed = re.search(r'id="shareq-recording">([^<]*)<', text)
    assert packed is not None
    content: dict[str, Any] = json.loads(decompress(b64decode(packed[1])))
    return content


def states_of(frames: dict[str, list[Any]]) -> list[Any]:
    """What each frame shows."""
    shown, found = None, []
    for one in frames["changes"]:
        shown = changed(shown, one)
        found.append(shown)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_change_leads_from_one_value_to_the_other(seed: int) -> None:
    chance = random.Random(seed)

    def value(depth: int = 3) -> Any:
        kind = chance.randrange(4) if depth else 0
        if kind == 1:
            return [value(depth - 1) for _ in range(chance.randrange(5))]
        if kind > 1:
            return {chance.choice("abcdef"): value(depth - 1) for _ in range(chance.randrange(5))}
        return chance.choice([None, 0, 1, "x", "y", True])

    for _ in range(50):
        before, after = value(), value()
        kept = json.dumps(before)
        assert changed(before, json.loads(json.dumps(change(before, after)))) == after
        assert json.dumps(before) == kept


def test_a_change_holds_only_what_differs() -> None:
    before = {"runs": [[0, 1], [1, 2], [2, 9]], "lag": 3, "gone": 1}
    after = {"runs": [[0, 1], [1, 5], [5, 9]], "lag": 3}
    assert change(before, after) == ["{", {"runs": ["[", 1, 2, [[1, 5], [5, 9]]]}, ["gone"]]
    assert change(after, dict(after)) is None


def test_an_svg_and_a_png_show_the_same_moment(cluster: Cluster, tmp_path: Path) -> None:
    for view in views(cluster):
        for theme in ("light", "dark"):
            svg = view.save(tmp_path / "view.svg", theme=theme, width=700)
            assert svg.read_text() == view.to_svg(theme, 700)
            picture = Image.open(view.save(tmp_path / "view.png", theme=theme, width=700))
            height = int(re.findall(r'height="(\d+)"', svg.read_text())[0])
            assert picture.size == (1400, 2 * height)
            assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 20  # the texts and the shapes are there


def test_a_png_has_the_ground_of_its_theme(cluster: Cluster, tmp_path: Path) -> None:
    view = strip(cluster, **PLACE)
    for theme in ("light", "dark"):
        ground = str(view.palette[theme]["bg"])
        picture = Image.open(BytesIO(view.save(tmp_path / "view.png", theme=theme).read_bytes())).convert("RGB")
        assert picture.tobytes()[:3].hex() == ground.lstrip("#").lower()


def test_a_recording_has_each_snapshot_of_the_journal(cluster: Cluster) -> None:
    for view in views(cluster):
        [content] = recorded(page({"": view}))["views"]
        frames = content["recording"]
        shown = states_of(frames)
        assert frames["orders"][: view.view.total() + 1] == list(range(view.view.total() + 1))
        for order, state in zip(range(view.view.total() + 1), shown, strict=False):
            assert state["snapshot"] == json.loads(json.dumps(view.view.snapshot(order)))
        assert shown[-1]["snapshot"]["now_ms"] == cluster.now_ms
        assert frames["untils"] == sorted(frames["untils"])
        assert frames["times"] == sorted(frames["times"])


def test_a_recording_has_each_drawing(cluster: Cluster) -> None:
    view = locks(cluster, group="payments", linked=False)
    [content] = recorded(page({"": view}))["views"]
    shown = states_of(content["recording"])
    for order in (0, 40, 80, view.view.total()):
        view.seek(order)
        if order < view.view.total():
            assert shown[order]["drawing"] == json.loads(json.dumps(view.drawing))


def test_saving_moves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    view, other = strip(cluster, **PLACE), locks(cluster, group="payments")
    view.seek(30)
    moment = other.order
    view.save(tmp_path / "view.html")
    assert (view.order, other.order) == (30, moment)


def test_a_page_without_room_is_thinned_with_a_note(cluster: Cluster) -> None:
    view = strip(cluster, **PLACE)
    whole = page({"": view})
    most_bytes = len(whole) - 4_000
    thinned = page({"": view}, most_bytes=most_bytes)
    assert len(thinned) <= most_bytes
    assert "It is thinned" in thinned
    assert "It is thinned" not in whole
    orders = recorded(thinned)["views"][0]["recording"]["orders"]
    assert 2 <= len(set(orders)) < view.view.total()
    assert {0, view.view.total()} <= set(orders)


def test_a_page_that_cannot_be_thinned_further_is_made(cluster: Cluster) -> None:
    """All moments with a mark stay."""
    view = strip(cluster, **PLACE)
    made = page({"": view}, most_bytes=1_000)
    marked = {view.view.next_step(mark["order"] - 1) for mark in view.view.snapshot()["marks"]}
    assert marked <= set(recorded(made)["views"][0]["recording"]["orders"])


def test_a_page_asks_for_nothing_else(cluster: Cluster) -> None:
    made = page({"": strip(cluster, **PLACE)})
    addresses = set(re.findall(r"https?://[^\"'\s<>)]*", made))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a namespace
    assert made.count("</script>") == 2


@pytest.mark.parametrize("path", ["view", "view.pdf", "view.PNG"])
def test_another_suffix_is_refused(cluster: Cluster, tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match=rf"path must end in one of .svg, .png, .html, not '.*{path}'"):
        strip(cluster, **PLACE).save(tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_another_theme_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="theme must be one of light, dark, or None, not 'auto'"):
        strip(cluster, **PLACE).save(tmp_path / "view.svg", theme="auto")


def test_a_file_that_cannot_be_written_is_an_error_with_its_path(cluster: Cluster, tmp_path: Path) -> None:
    view = strip(cluster, **PLACE)
    with pytest.raises(FileNotFoundError, match=r"cannot write the view: .*missing/view\.svg"):
        view.save(tmp_path / "missing" / "view.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(OSError, match=r"cannot write the view: .*folder\.svg"):
        view.save(tmp_path / "folder.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


def test_without_the_rasterizer_a_png_names_the_line_to_run(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shareq.extras.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"the package resvg is missing: pip install .*\[lab\]"):
        strip(cluster, **PLACE).save(tmp_path / "view.png")
    assert list(tmp_path.iterdir()) == []


def test_a_journal_without_events_can_be_saved(tmp_path: Path) -> None:
    view = strip(Journal(), **PLACE)
    for suffix in ("svg", "png", "html"):
        assert view.save(tmp_path / f"view.{suffix}").stat().st_size > 0


# ---- a whole control room --------------------------------------------------------------------------------------------

AREAS = ("strip", "timeline", "left", "middle", "right", "wide", "narrow")


@pytest.fixture(scope="module")
def long_room() -> Iterator[ControlRoom]:
    """The room of a journal of 10,000 events."""
    cluster = Cluster(brokers=3, seed=5, trace_messages=True)
    cluster.create_topic(TOPIC, 2)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    clerks = [consumer(cluster, f"clerk-{number}") for number in (1, 2, 3)]
    kinds = itertools.cycle((AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT))
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        while cluster.journal.total < 10_000:
            for number in range(10):
                producer.produce(TOPIC, b"work", partition=number % 2)
            producer.flush()
            for clerk in clerks:
                for message in clerk.poll(1):
                    clerk.acknowledge(message, next(kinds))
            cluster.advance(700)
    room = control_room(cluster, group=GROUP, topic=TOPIC)
    yield room
    room.close()


def test_a_room_is_saved_as_a_picture_of_all_its_views(tmp_path: Path) -> None:
    room = control_room(busy(), group=GROUP, topic=TOPIC)
    svg = room.save(tmp_path / "room.svg", theme="dark").read_text()
    shown = room.screen.shown
    drawn = {
        area: shown[area].to_svg("dark", width) for area, width in room_picture.widths(room_picture.SCREEN).items()
    }
    assert set(drawn) == set(AREAS) - {"timeline"}
    assert all(picture in svg for picture in drawn.values())
    picture = Image.open(room.save(tmp_path / "room.png", width=1200))
    assert picture.width == 2400
    room.close()


def test_the_page_of_a_room_plays_all_its_views() -> None:
    room = control_room(busy(), group=GROUP, topic=TOPIC)
    made = page(room.screen.shown)
    content = recorded(made)["views"]
    assert tuple(one["area"] for one in content) == AREAS
    assert "the views that the room showed: Locks, Record states, Group, Offsets over time, Messages" in made
    for one in content:
        view, frames = room.screen.shown[one["area"]], one["recording"]
        assert frames["untils"][-1] == view.view.journal.total
        widths = {state["drawing"]["width"] for state in states_of(frames) if "drawing" in state}
        assert widths == {room_picture.widths(room_picture.PAGE).get(one["area"], 760)} or one["area"] == "strip"
    room.close()


@pytest.mark.long
def test_the_page_of_a_long_room_has_the_same_moments_in_all_views(long_room: ControlRoom, tmp_path: Path) -> None:
    path = long_room.save(tmp_path / "room.html")
    assert path.stat().st_size <= PAGE_BYTES
    made = path.read_text()
    assert "A recording of 5," in made
    assert "It is thinned: " in made
    untils = {one["area"]: one["recording"]["untils"] for one in recorded(made)["views"]}
    assert len(untils["timeline"]) > 200
    assert all(untils[area] == untils["timeline"] for area in AREAS if area != "strip")
    assert set(untils["strip"]) <= set(untils["timeline"])


@pytest.mark.parametrize(
    ("name", "theme", "message"), [("room.pdf", None, "path must"), ("r.svg", "blue", "theme must")]
)
def test_a_room_refuses_what_a_view_refuses(tmp_path: Path, name: str, theme: str | None, message: str) -> None:
    room = control_room(busy(), group=GROUP, topic=TOPIC)
    with pytest.raises(ValueError, match=message):
        room.save(tmp_path / name, theme=theme)
    room.close()
