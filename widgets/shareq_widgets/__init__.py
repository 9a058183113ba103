"""Live views of shareq in a notebook. They only read the journal, and change no records; the panel steers a cluster.

Every public name can be imported from here. Its module is loaded on first access, so that `shareq show` refuses a
wrong argument without the packages of a notebook.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shareq.extras import missing

if TYPE_CHECKING:
    from shareq_widgets.partition_strip import PartitionStrip, strip
    from shareq_widgets.race_view import Race, race
    from shareq_widgets.room import ControlRoom, control_room
    from shareq_widgets.views import (
        charts,
        cluster,
        group,
        locks,
        messages,
        raster,
        record,
        state_topic,
        states,
        timeline,
    )
    from shareq_widgets.what_if_view import WhatIf, what_if

_HOMES = {
    "ControlRoom": "room",
    "PartitionStrip": "partition_strip",
    "Race": "race_view",
    "WhatIf": "what_if_view",
    "charts": "views",
    "cluster": "views",
    "control_room": "room",
    "group": "views",
    "locks": "views",
    "messages": "views",
    "race": "race_view",
    "raster": "views",
    "record": "views",
    "state_topic": "views",
    "states": "views",
    "strip": "partition_strip",
    "timeline": "views",
    "what_if": "what_if_view",
}
"""The module of each public name. None has the name of a module here: its import would take the name's place."""

__all__ = [
    "ControlRoom",
    "PartitionStrip",
    "Race",
    "WhatIf",
    "charts",
    "cluster",
    "control_room",
    "group",
    "locks",
    "messages",
    "race",
    "raster",
    "record",
    "state_topic",
    "states",
    "strip",
    "timeline",
    "what_if",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'shareq_widgets' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"shareq_widgets.{home}"), name)
    except ModuleNotFoundError as problem:
        raise missing("lab", problem) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
