"""How `run on` drives a virtual cluster to the next step of a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shareq_widgets.position import View

STEPS_AT_ONCE: Final = 2000
"""The maximum number of steps of a virtual cluster in search of the view's next event."""
QUIET_MS: Final = 10_000
"""The cluster's time without an event that ends a run: two heartbeat intervals, in which members report and join."""
QUIET_AGAIN_MS: Final = 1_000
"""The interval, of the cluster's time, of checks whether more than heartbeats is awaited."""


def drive(source: Any, view: View, order: int, shown_ms: int, awaits: Callable[[int], bool]) -> None:
    """Step the cluster from a shown time on until the step after `order` is complete, or only heartbeats are to come;
    within bounds. `awaits`: see `quiet`."""
    quiet_ms = shown_ms + QUIET_MS
    for _ in range(STEPS_AT_ONCE):
        if (now_ms := int(source.now_ms)) >= quiet_ms and view.total() == order:
            if not awaits(now_ms):
                return
            quiet_ms = now_ms + QUIET_AGAIN_MS
        if not source.step():
            return
        if view.total() > order and int(source.now_ms) > view.snapshot(order + 1)["now_ms"]:
            return
