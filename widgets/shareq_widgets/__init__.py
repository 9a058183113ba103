"""Live views of shareq in a notebook. They only read the journal, and change no records; the panel steers a cluster."""

from shareq.extras import missing

try:
    from shareq_widgets.control_room import ControlRoom, control_room
    from shareq_widgets.partition_strip import PartitionStrip, strip
    from shareq_widgets.race_view import Race, race
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
except ModuleNotFoundError as problem:
    raise missing("lab", problem) from None

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
