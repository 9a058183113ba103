"""What a view shows at each moment of its journal, as changes from one to the next, for a page without a kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from shareq.trace.views.snapshot import Snapshot
from shareq_widgets.changes import change
from shareq_widgets.showable import Showable


class Recording(NamedTuple):
    """The frames of a view. `thinned`: some steps are left out; `events`: each event is a frame."""

    frames: dict[str, list[Any]]
    thinned: bool
    events: bool


def record(player: Showable, most: int, width: int | None = None, moments: Collection[int] | None = None) -> Recording:
    """The recording of a view, of `most` frames at most.

    With too many events the frames are the steps; with too many steps, some of them, and those with a mark. `moments`:
    the moments of the journal to record instead.
    """
    view = player.view
    if moments is None:
        orders, steps = _orders(player, most)
        untils, thinned = [view.moment(order) for order in orders], len(steps) > len(orders)
    else:
        first = {view.at_moment(until): until for until in sorted(moments, reverse=True)}
        orders, steps, thinned = sorted(first), set(first), True
        untils = [first[order] for order in orders]
    frames: dict[str, list[Any]] = {"orders": [], "times": [], "untils": [], "ends": [], "changes": []}
    before: dict[str, Any] | None = None
    since = 0
    for snapshot, until in _moments(player, orders, untils):
        shown = player.shown_at(snapshot, until, since, width)
        order = snapshot["order"]
        row = (order, snapshot["now_ms"], until, int(order in steps), change(before, shown))
        for column, value in zip(frames.values(), row, strict=True):
            column.append(value)
        before, since = shown, until
    return Recording(frames, thinned, len(orders) > view.total())


def thinned_moments(player: Showable, most: int) -> list[int] | None:
    """The moments of the journal that a thinned recording of a view has; None if it need not be thinned."""
    orders, steps = _orders(player, most)
    return [player.view.moment(order) for order in orders] if len(orders) < len(steps) else None


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


def _moments(player: Showable, orders: list[int], untils: list[int]) -> Iterator[tuple[Snapshot, int]]:
    """A snapshot and its moment of the journal for each order; and the live end, if time has passed since then."""
    view = player.view
    for order, until in zip(orders, untils, strict=True):
        last = view.snapshot(order)
        yield last, until
    end = view.snapshot()
    if end["now_ms"] > last["now_ms"] or view.moment() > untils[-1]:
        yield {**last, "now_ms": max(end["now_ms"], last["now_ms"])}, view.moment()
