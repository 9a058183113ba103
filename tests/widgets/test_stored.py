"""The pictures that a notebook stores beside a view: their forms, their sizes, and those of the end of a notebook."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from io import BytesIO
from typing import Any
from weakref import WeakValueDictionary
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from shareq import view
from shareq.broker import Cluster
from shareq.producer import Producer
from shareq.trace.views.themed_svg import themed
from shareq_widgets import control_room, race, room_picture, stored, strip, views
from shareq_widgets.svg import size_of
from tests.browser.busy import GROUP, TOPIC, busy
from tests.browser.busy import VIEWS as ALL_VIEWS
from tests.browser.story import acknowledge, member

PLACE: dict[str, Any] = {"group": GROUP, "topic": TOPIC}
MANY = 10_000
ODD = "a\x03<b>\x1b[31m\ufffe&\"'"
VIEWS = ("strip", "control_room", *(name for name in ALL_VIEWS if name != "timeline"))
"""All views with a picture."""
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return busy()


@pytest.fixture(scope="module")
def crowded() -> Cluster:
    """A window of 10,000 records: accepted, rejected, held by one and by another member, in turn."""
    made = Cluster(brokers=1, config={"group.share.max.partition.max.record.locks": MANY})
    made.create_topic(TOPIC)
    locks = {"share.partition.max.record.locks": MANY}
    made.configure_group(GROUP, {"share.auto.offset.reset": "earliest", **locks})
    producer = Producer({"bootstrap.servers": made.bootstrap_servers})
    for _ in range(MANY):
        producer.produce(TOPIC, b"")
    producer.flush()
    first, second = (member(made, name, MANY, group=GROUP, topic=TOPIC) for name in ("ann", "bob"))
    first.poll(0)
    made.advance(6_000)
    acknowledge(first, "○✓✕○✓" * (MANY // 5))
    second.poll(10)
    snapshot = view(made, GROUP, TOPIC).snapshot()
    assert (snapshot["spso"], snapshot["window_end"], len(snapshot["runs"])) == (0, MANY, MANY)
    return made


def made(cluster: Cluster, name: str, group: str = GROUP) -> Any:
    """A view by its name."""
    more = {"topic": TOPIC} if name in ("strip", "raster", "record", "state_topic", "control_room") else {}
    makers: dict[str, Callable[..., Any]] = {"strip": strip, "control_room": control_room}
    return makers.get(name, vars(views).get(name, strip))(cluster, group=group, **more)


def opened(png: str) -> Image.Image:
    return Image.open(BytesIO(b64decode(png)))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_a_picture_in_each_form(cluster: Cluster, name: str) -> None:
    widget = made(cluster, name)
    shown = widget._repr_mimebundle_()
    data = shown[0] if isinstance(shown, tuple) else shown
    assert {WIDGET, "text/plain", "image/png"} <= data.keys()
    assert data["text/plain"] == repr(widget)
    picture = widget.picture()
    assert data.get("image/svg+xml", themed(picture)) == themed(picture)
    assert ("image/svg+xml" in data) == (len(picture.encode()) <= stored.MOST_BYTES)
    png, (width, height) = opened(data["image/png"]), size_of(picture)
    assert abs(png.width / png.height - width / height) < width / height / 50
    widget.close()


@pytest.fixture(scope="module")
def oddly_named() -> Cluster:
    """A group and a member with names that Kafka allows and XML does not."""
    made = Cluster(brokers=1)
    made.create_topic(TOPIC)
    made.configure_group(ODD, {"share.auto.offset.reset": "earliest"})
    with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
        producer.produce(TOPIC, b"")
    member(made, ODD, 1, group=ODD, topic=TOPIC).poll(6)
    return made


@pytest.mark.parametrize("name", VIEWS)
def test_a_picture_is_well_formed_with_any_name(oddly_named: Cluster, name: str) -> None:
    widget = made(oddly_named, name, ODD)
    ET.fromstring(widget.picture())
    data = widget._repr_mimebundle_()
    assert "image/png" in (data[0] if isinstance(data, tuple) else data)
    widget.close()


def test_markup_that_cannot_be_parsed_is_an_exception() -> None:
    with pytest.raises(ValueError, match="malformed picture"):
        stored.png('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>\x03</text></svg>')


def test_a_timeline_has_no_picture(cluster: Cluster) -> None:
    data, _ = views.timeline(cluster, group=GROUP)._repr_mimebundle_()
    assert data.keys() == {WIDGET, "text/plain"}


def test_a_png_is_small_for_a_cell_that_waits_and_sharp_for_a_stored_notebook(cluster: Cluster) -> None:
    small, large = strip(cluster, **PLACE).to_svg(), control_room(cluster, **PLACE).picture()
    for svg in (small, large):
        width, _ = size_of(svg)
        quick, sharp = opened(stored.png(svg)), opened(stored.png(svg, sharp=True))
        assert quick.width * quick.height <= stored.PIXELS * 1.01
        assert quick.width <= width
        assert quick.width <= sharp.width <= stored.SHARP * width
    assert opened(stored.png(small, sharp=True)).width == stored.SHARP * size_of(small)[0]


@pytest.mark.long
@pytest.mark.parametrize("name", VIEWS)
def test_the_pictures_of_a_crowd_are_bounded(crowded: Cluster, name: str) -> None:
    """Also with 10,000 records in view, each in another state than its neighbours."""
    data = stored.pictures(made(crowded, name).picture())
    assert data
    assert all(len(picture.encode()) <= stored.MOST_BYTES + 4_000 for picture in data.values())


def test_a_picture_that_is_too_large_is_a_png_only(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    svg = strip(cluster, **PLACE).to_svg()
    monkeypatch.setattr(stored, "MOST_BYTES", 9_000)
    data = stored.pictures(svg)
    assert data.keys() == {"image/png"}
    assert len(data["image/png"]) <= 9_000


def test_without_the_rasterizer_there_is_no_png(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "find_spec", lambda name: None if name == "resvg" else name)
    data, _ = strip(cluster, **PLACE)._repr_mimebundle_()
    assert data.keys() == {WIDGET, "text/plain", "image/svg+xml"}


def test_later_a_displayed_view_has_another_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pictures of the end of a notebook, for a view that was displayed before there was anything to show."""
    monkeypatch.setattr(stored, "_displayed", WeakValueDictionary())
    cluster = Cluster(brokers=1)
    cluster.create_topic("orders")
    cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
    displayed, hidden = (strip(cluster, group="payments", topic="orders") for _ in range(2))
    data, _ = displayed._repr_mimebundle_()
    consumer, other = (member(cluster, name, 1) for name in ("ann", "bob"))
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        producer.produce("orders", b"")
    for one in (consumer, other):
        one.poll(0)
    cluster.advance(6_000)
    consumer.poll(1)
    cluster.crash(consumer)
    cluster.advance(50_000)  # its lock times out, and its session
    acknowledge(other, "✓")
    shown = stored.later()
    assert list(shown) == [displayed.model_id] != [hidden.model_id]
    assert shown[displayed.model_id] == stored.pictures(displayed.picture(whole=True), sharp=True)
    assert "moments of the recording" in shown[displayed.model_id]["image/svg+xml"] not in data.values()


def test_the_picture_of_a_room_has_all_its_views(cluster: Cluster) -> None:
    """At the end the storyboard of the strip, and the other views at its most important moment; else the moment."""
    room = control_room(cluster, **PLACE)
    texts = [
        "".join(node.itertext()) for node in ET.fromstring(room.picture()).iter("{http://www.w3.org/2000/svg}text")
    ]
    titles = {"Locks", "Record states", "Group", "Offsets over time", "Messages"}
    assert titles <= set(texts)
    assert any(text.startswith("All views at t 00:15.000: broker 1 was killed") for text in texts)
    room.screen.timeline.seek(20)
    now = room.picture()
    third = int((room_picture.SCREEN_WIDTH - room_picture.MARGIN) / 3) - room_picture.MARGIN
    assert room.screen.strip.to_svg("light", room_picture.SCREEN_WIDTH - 2 * room_picture.MARGIN) in now
    assert all(room.screen.shown[area].to_svg("light", third) in now for area in ("left", "middle", "right"))
    room.close()


def test_a_race_has_its_pictures() -> None:
    shown = race(workers=3)
    data = shown._repr_mimebundle_()
    assert data["image/svg+xml"] == themed(shown.to_svg())
    assert opened(data["image/png"]).width > 500


def test_a_room_without_events_has_a_picture() -> None:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic(TOPIC)
        cluster.configure_group(GROUP, {})
        room = control_room(cluster, **PLACE)
        assert {"image/svg+xml", "image/png"} <= room._repr_mimebundle_().keys()
        room.close()
