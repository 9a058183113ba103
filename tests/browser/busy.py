"""A recorded cluster in which all happens that the views show, and the views of it, for a notebook."""

from __future__ import annotations

from typing import Any, NamedTuple

import ipywidgets

from shareq.broker import Cluster
from shareq.consumer import AcknowledgeType, ShareConsumer
from shareq.producer import Producer
from shareq_widgets import control_room, race, strip, views
from shareq_widgets.group_picture import GroupPicture
from shareq_widgets.partition_strip import PartitionStrip
from shareq_widgets.race_view import Race
from shareq_widgets.room import ControlRoom
from shareq_widgets.svg import seconds_left

GROUP, TOPIC = "crew", "jobs"
VIEWS = (
    "locks",
    "states",
    "group",
    "cluster",
    "messages",
    "raster",
    "charts",
    "record",
    "state_topic",
    "timeline",
)


def busy() -> Cluster:
    """Three consumers that accept, release, renew and reject; one crashes, a broker stops."""
    cluster = Cluster(brokers=3, seed=5, trace_messages=True)
    cluster.create_topic(TOPIC, 2)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(60):
        producer.produce(TOPIC, b"work", partition=number % 2)
    producer.flush()
    members = [consumer(cluster, f"clerk-{number}") for number in (1, 2, 3)]
    for turn in range(3):
        for member in members:
            for place, message in enumerate(member.poll(2)):
                member.acknowledge(message, _KINDS[(place + turn) % len(_KINDS)])
        cluster.advance(3000)
    cluster.crash(members[2])
    cluster.advance(2000)
    cluster.kill_broker(1)
    cluster.advance(1500)
    members[0].poll(2)
    return cluster


_KINDS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW, AcknowledgeType.REJECT)


def consumer(cluster: Cluster, name: str) -> ShareConsumer:
    conf: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": GROUP,
        "client.id": name,
        "share.acknowledgement.mode": "explicit",
        "share.acquire.mode": "record_limit",
        "max.poll.records": 5,
    }
    made = ShareConsumer(conf)
    made.subscribe([TOPIC])
    return made


def shown(cluster: Cluster) -> dict[str, GroupPicture]:
    """All pictures by their names, linked."""
    place = {"raster", "record", "state_topic"}
    return {
        name: getattr(views, name)(cluster, group=GROUP, **({"topic": TOPIC} if name in place else {}))
        for name in VIEWS
    }


class Everything(NamedTuple):
    """All views of the busy cluster. `pictures` and `strips` are in the order of the page, those of the room last."""

    pictures: dict[str, GroupPicture]
    strips: tuple[PartitionStrip, ...]
    race: Race
    room: ControlRoom

    @property
    def page(self) -> ipywidgets.Widget:
        """All of them, one below the other."""
        columns = {"grid_template_columns": "repeat(auto-fit, minmax(min(440px, 100%), 1fr))", "width": "100%"}
        alone = [picture for name, picture in self.pictures.items() if not name.startswith("room ")]
        return ipywidgets.VBox([ipywidgets.GridBox(alone, layout=columns), self.strips[0], self.race, self.room])


def everything() -> Everything:
    """Each view alone, and the control room."""
    cluster = busy()
    pictures = shown(cluster)
    alone = strip(cluster, group=GROUP, topic=TOPIC)
    room = control_room(cluster, group=GROUP, topic=TOPIC)
    pictures |= {f"room {name}": view for name, view in pictures_of(room).items()}
    return Everything(pictures, (alone, room.screen.strip), race(records=60), room)


def pictures_of(room: ControlRoom) -> dict[str, GroupPicture]:
    """The pictures that a room shows, in the order of the page."""
    shown_views = {slot.shown: slot.views[slot.shown] for slot in room.screen.slots.values()}
    shown_views["timeline"] = room.screen.timeline
    return {name: view for name, view in shown_views.items() if isinstance(view, GroupPicture)}


def cells_of(shown: PartitionStrip) -> dict[str, list[Any]]:
    """State, delivery count and holder's letter of each offset in the window, as a browser must show them."""
    snapshot = shown.snapshot
    letters = {member["id"]: member["letter"] for member in snapshot["members"]}
    return {
        str(offset): [run[2], str(run[3]), letters.get(run[4])]
        for run in snapshot["runs"]
        for offset in range(run[0], run[1])
    }


def described(pictures: dict[str, GroupPicture]) -> dict[str, Any]:
    """What a browser must show of the pictures: moment, selection, and the texts of the elements by key."""
    return {name: _described(picture) for name, picture in pictures.items()}


def _described(picture: GroupPicture) -> dict[str, Any]:
    drawing, now_ms = picture.drawing, int(picture.snapshot["now_ms"])
    return {
        "now": str(now_ms),
        "order": str(picture.order),
        "words": drawing["text"],
        "keys": drawing["keys"],
        "texts": {e["key"]: _text(e, now_ms) for e in drawing["elements"].values() if e["tag"] == "text"},
        "selected": sorted(
            e["key"]
            for e in drawing["elements"].values()
            if picture.selection and picture.selection in e.get("about", [])
        ),
    }


def _text(element: dict[str, Any], now_ms: int) -> str:
    if "countdown" in element:
        return seconds_left(element["countdown"] - now_ms)
    if "countup" in element:
        return str(element.get("text") or "{}").replace("{}", seconds_left(now_ms - element["countup"]))
    return str(element.get("text", ""))
