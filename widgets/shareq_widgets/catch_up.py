"""The scenes of a live view after a virtual cluster has moved: the new events in a few seconds, then the live end."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from shareq.trace.views.snapshot import Snapshot
from shareq_widgets.position import View

SCENES: Final = 24
"""The maximum number of scenes; with more steps, the scenes are spread over all of them."""
SCENE_MS: Final = 150
LEAST_MS: Final = 1000
MOST_MS: Final = 3000


class Scene(NamedTuple):
    """A snapshot that is displayed after `wait_ms` of real time, during which the displayed clock advances to it."""

    snapshot: Snapshot
    wait_ms: float


def catch_up(view: View, shown: Snapshot, end: Snapshot) -> list[Scene]:
    """The scenes from the displayed snapshot to the live end. They take LEAST_MS to MOST_MS in all.

    Half of that time is divided equally among them, the other half in proportion to the journal's time.
    """
    first, last = int(shown["order"]), int(end["order"])
    count = min(SCENES, last - first)
    orders = {view.next_step(first + i * (last - first) // count) for i in range(count)} | {last}
    snapshots = [view.snapshot(order) for order in sorted(orders) if first < order]
    if not snapshots or snapshots[-1]["now_ms"] < end["now_ms"]:
        snapshots.append(end)
    times = [shown["now_ms"], *(snapshot["now_ms"] for snapshot in snapshots)]
    gaps = [max(later - earlier, 0) for earlier, later in pairwise(times)]
    total_ms = min(max(SCENE_MS * len(snapshots), LEAST_MS), MOST_MS)
    shares = [gap / sum(gaps) if any(gaps) else 1 / len(gaps) for gap in gaps]
    waits = [total_ms * (share + 1 / len(gaps)) / 2 for share in shares]
    return [Scene(snapshot, wait_ms) for snapshot, wait_ms in zip(snapshots, waits, strict=True)]
