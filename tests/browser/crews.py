"""Groups of any size for benchmarks and pictures: 10,000 records in flight, held by 200 members; and a busy one."""

from __future__ import annotations

from typing import Any

from shareq.broker import Cluster
from shareq.team import Feed, Policy, Team
from shareq_widgets import control_room, race, strip, views
from shareq_widgets.screen import SLOTS

GROUP, TOPIC = "crew", "jobs"
RECORDS, MEMBERS = 10_000, 200
SIX = ("strip", "locks", "states", "group", "raster", "messages")
"""The linked views of the control room, without its timeline."""

LARGE = {
    "group.share.max.size": 1_000,
    "group.share.max.partition.max.record.locks": RECORDS,
    "group.share.partition.max.record.locks": RECORDS,
}


def crew(records: int = RECORDS, members: int = MEMBERS) -> Cluster:
    """Twenty seconds of a group on a virtual clock: each member takes its part of `records`, one has crashed."""
    held = -(-records // members)
    cluster = Cluster(brokers=3, seed=3, trace_messages=True, config=LARGE)
    cluster.create_topic(TOPIC)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    Feed(cluster, TOPIC, batch=min(records, 500), poison_every=17).send(records + records // 2)
    team = Team(cluster, GROUP, [TOPIC], max_poll_records=held)
    for number in range(members):
        work_ms = 7_000 // held + 40 * (number % 11)
        team.add(f"clerk-{number + 1}", Policy(work_ms=work_ms, poison="reject", release=0.05))
    cluster.advance(12_000)
    cluster.crash(team[f"clerk-{members // 2 + 1}"].consumer)
    cluster.advance(8_000)
    return cluster


def running(rate: float = 0) -> tuple[Cluster, Feed]:
    """A cluster on the wall clock, and its feed. Three members accept each record at once."""
    cluster = Cluster(brokers=3, seed=3, clock="wall", trace_messages=True)
    cluster.create_topic(TOPIC, 4)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    team = Team(cluster, GROUP, [TOPIC])
    for number in range(3):
        team.add(f"clerk-{number + 1}", Policy(work_ms=0))
    return cluster, Feed(cluster, TOPIC, rate=rate)


def shown(cluster: Cluster, name: str) -> Any:
    """The view of this name; "room2" is a control room with the views of its other tabs."""
    place: dict[str, Any] = {"group": GROUP, "topic": TOPIC}
    if name == "race":
        return race()
    if name in ("room", "room2"):
        room = control_room(cluster, **place)
        if name == "room2":
            room.state = {"time_ms": None, "selection": "", "views": {slot: of[-1] for slot, of in SLOTS.items()}}
        return room
    if name == "strip":
        return strip(cluster, **place)
    if name not in ("raster", "record", "state_topic"):
        del place["topic"]
    return getattr(views, name)(cluster, **place)
