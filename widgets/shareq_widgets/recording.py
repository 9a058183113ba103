"""What a view shows at each moment of its journal, as changes from one to the next, for a page without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from shareq_widgets.changes import change
from shareq_widgets.showable import Showable


class Recording(NamedTuple):
    """The frames of a view. `thinned`: some steps are left out; `events`: each event is a frame."""

    frames: dict[str, list[Any]]
    thinned: bool
    events: bool


def record(player: Showable, most: int, width: int | None = None) -> Recording:
    """The recording of a view, of `most` frames at most.

    With too many events the frames are the steps; with too many steps, some of them, and those with a mark.
    """
    orders, steps = _orders(player, most)
    frames: dict[str, list[Any]] = {"orders": [], "times": [], "untils": [], "ends": [], "changes": []}
    before: dict[str, Any] | None = None
    since = 0
    for snapshot, until in _moments(player, orders):
        shown = player.shown_at(snapshot, until, since, width)
        order = snapshot["order"]
        row = (order, snapshot["now_ms"], until, int(order in steps), change(before, shown))
        for column, value in zip(frames.values(), row, strict=True):
            column.append(value)
        before, since = shown, until
    return Recording(frames, len(steps) > len(orders), len(orders) > player.view.total())


def _orders(player: Showable, most: int) -> tuple[list[int], set[int]]:
    """The orders of the frames, and those at which a step ends."""
    view, total = player.view, player.view.total()
    steps = [0]
    while steps[-1] < total:
        steps.append(view.next_step(steps[-1]))
    if total < most:
        return list(range(total + 1)), set(steps)
    if len(steps) <= most:
        return steps, set(steps)
    marked = {view.next_step(mark["order"] - 1) for mark in view.snapshot()["marks"]} | {0, total}
    room = max(most - len(marked), 1)
    spread = {steps[i * len(steps) // room] for i in range(room)}
    return sorted(marked | spread), set(steps)


def _moments(player: Showable, orders: list[int]) -> Iterator[tuple[dict[str, Any], int]]:
    """A snapshot and its moment of the journal for each order; and the live end, if time has passed since then."""
    view = player.view
    last: dict[str, Any] = {}
    for order in orders:
        last = view.snapshot(order)
        yield last, view.moment(order)
    end = view.snapshot()
    if end["now_ms"] > last["now_ms"] or view.moment() > view.moment(orders[-1]):
        yield {**last, "now_ms": max(end["now_ms"], last["now_ms"])}, view.moment()
