"""The time of day, for an actor whose own time counts durations."""

from __future__ import annotations

from collections.abc import Callable

TimeOfDay = Callable[[int], int]
"""The time of day at a time of the actor, both in ms since the epoch: for timestamps, and what is compared with them.
The time of an actor does not follow changes of the system's clock."""


def same_time(time_ms: int) -> int:
    """The `TimeOfDay` of a virtual clock."""
    return time_ms
