"""Crews of clients at work, each client in its own thread: the times at which each was busy, as figures and a plot.

A client needs `close()`, and messages with a partition, an offset and an error; clients of any library will do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from shareq.trace.views.palette import SERIES
from shareq.trace.views.plots import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOK_S = 0.01


class Stint(NamedTuple):
    """A worker's time on one record, in seconds since the crew began."""

    worker: str
    partition: int
    offset: int
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Shift:
    """The work of a crew; `workers` are all consumers, including idle ones."""

    workers: tuple[str, ...]
    stints: tuple[Stint, ...]

    @property
    def records(self) -> int:
        """The number of different records that were processed."""
        return len({(stint.partition, stint.offset) for stint in self.stints})

    @property
    def busy(self) -> int:
        """The number of workers that processed any record."""
        return len({stint.worker for stint in self.stints})

    @property
    def at_once(self) -> int:
        """The most workers that were busy at the same time."""
        turns = sorted([(s.began_s, 1) for s in self.stints] + [(s.ended_s, -1) for s in self.stints])
        return max(accumulate(change for _, change in turns), default=0)

    @property
    def duration_s(self) -> float:
        """Seconds from the beginning of the first record to the end of the last one."""
        ended, began = (s.ended_s for s in self.stints), (s.began_s for s in self.stints)
        return max(ended, default=0.0) - min(began, default=0.0)

    def __repr__(self) -> str:
        return (
            f"{self.records} records, {self.busy} of {len(self.workers)} workers busy, {self.at_once} at once, "
            f"{self.duration_s:.2f} s of wall time"
        )


@dataclass(frozen=True, slots=True)
class Crew:
    """The consumers of one group, by name. `take(consumer)` polls for a short time and returns messages; `ready()` is
    true once every consumer is in the group."""

    consumers: Mapping[str, Any]
    take: Callable[[Any], Iterable[Any]]
    ready: Callable[[], bool]


def work_together(
    crews: Mapping[str, Crew], begin: Callable[[], int], *, cost_ms: float, patience_s: float = 60.0
) -> dict[str, Shift]:
    """Let crews, by title, process the records of `begin()`, `cost_ms` per record; close their consumers.

    All poll until all crews are ready; then `begin()` sends the records and returns their number per crew.
    TimeoutError after `patience_s`; the exception of a worker is raised here.
    """
    over = threading.Event()
    desks = {
        title: [_Desk(name, consumer, crew.take, cost_ms / 1000) for name, consumer in crew.consumers.items()]
        for title, crew in crews.items()
    }
    done: dict[str, list[Stint]] = {title: [] for title in crews}
    with ThreadPoolExecutor(sum(map(len, desks.values()))) as pool:
        workers = [pool.submit(_work, desk, done[title], over) for title in crews for desk in desks[title]]
        try:
            _wait(
                lambda: all(crew.ready() for crew in crews.values()), workers, patience_s, "not every consumer joined"
            )
            began_s, records = time.perf_counter(), begin()
            _wait(lambda: min(map(_different, done.values())) >= records, workers, patience_s, "work was left over")
        finally:
            over.set()
    for worker in workers:
        worker.result()
    return {title: Shift(tuple(crew.consumers), _since(began_s, done[title])) for title, crew in crews.items()}


def _since(began_s: float, stints: list[Stint]) -> tuple[Stint, ...]:
    moved = (s._replace(began_s=s.began_s - began_s, ended_s=s.ended_s - began_s) for s in stints)
    return tuple(sorted(moved, key=lambda stint: stint.began_s))


class _Desk(NamedTuple):
    """A worker: its consumer, how to poll it, and the time that a record takes."""

    worker: str
    consumer: Any
    take: Callable[[Any], Iterable[Any]]
    cost_s: float


def _work(desk: _Desk, stints: list[Stint], over: threading.Event) -> None:
    try:
        while not over.is_set():
            for message in desk.take(desk.consumer):
                if message.error() is not None:
                    raise RuntimeError(f"{desk.worker}: {message.error()}")
                began_s = time.perf_counter()
                time.sleep(desk.cost_s)
                ended_s = time.perf_counter()
                stints.append(Stint(desk.worker, message.partition(), message.offset(), began_s, ended_s))
    finally:
        desk.consumer.close()


def _wait(until: Callable[[], bool], workers: list[Future[None]], patience_s: float, otherwise: str) -> None:
    deadline_s = time.perf_counter() + patience_s
    while not until():
        for worker in workers:
            if worker.done():  # a worker that ends before the work is done has failed
                worker.result()
        if time.perf_counter() > deadline_s:
            raise TimeoutError(f"{otherwise} in {patience_s:g} s")
        time.sleep(_LOOK_S)


def _different(stints: list[Stint]) -> int:
    return len({(stint.partition, stint.offset) for stint in list(stints)})


# ---- the picture -----------------------------------------------------------------------------------------------------


def shifts_plot(shifts: Mapping[str, Shift]) -> Plot:
    """A timeline of the work: a panel per shift, a row per worker, a colour and hatch per partition.

    Needs matplotlib, which is imported here. The text colour follows the current light or dark style.
    """
    from matplotlib.figure import Figure

    rows = [len(shift.workers) for shift in shifts.values()]
    figure = Figure(figsize=(10, 0.7 * len(rows) + 0.28 * sum(rows)), layout="constrained")
    axes = figure.subplots(len(rows), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
    for axis, (title, shift) in zip(axes, shifts.items(), strict=True):
        _draw(axis, title, shift)
    axes[-1].set_xlabel("seconds")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize="small")
    text = "\n".join(f"{title}: {shift!r}" for title, shift in shifts.items())
    return Plot(figure, list(axes), text, shown=True)


def _draw(axis: Axes, title: str, shift: Shift) -> None:
    partitions = sorted({stint.partition for stint in shift.stints})
    for partition in partitions:
        mine = [stint for stint in shift.stints if stint.partition == partition]
        axis.barh(
            [shift.workers.index(stint.worker) for stint in mine],
            [stint.ended_s - stint.began_s for stint in mine],
            left=[stint.began_s for stint in mine],
            color=SERIES[partition % len(SERIES)][0],
            hatch="///" if partition % 2 else None,
            edgecolor="white",
            linewidth=0.3,
            label=f"partition {partition}",
        )
    axis.set_yticks(range(len(shift.workers)), shift.workers)
    axis.set_ylim(len(shift.workers) - 0.4, -0.6)
    axis.set_title(f"{title}: {shift.busy} of {len(shift.workers)} busy", loc="left", fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
