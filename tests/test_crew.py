"""Crews at work: the counts of a shift, joins, failures, and the picture."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import NamedTuple

import pytest
from matplotlib.patches import Rectangle

from shareq.lessons import Crew, Shift, Stint, shifts_plot, work_together


def shift(*stints: tuple[str, int, int, float, float], workers: str = "abc") -> Shift:
    return Shift(tuple(workers), tuple(Stint(*stint) for stint in stints))


@pytest.mark.parametrize(
    ("done", "records", "busy", "at_once", "duration_s"),
    [
        pytest.param(shift(), 0, 0, 0, 0.0, id="nothing to do"),
        pytest.param(shift(("a", 0, 0, 1.0, 2.0)), 1, 1, 1, 1.0, id="one record"),
        pytest.param(shift(("a", 0, 0, 0.0, 1.0), ("a", 0, 1, 1.0, 2.0)), 2, 1, 1, 2.0, id="one after the other"),
        pytest.param(shift(("a", 0, 0, 0.0, 1.0), ("b", 0, 1, 1.0, 2.0)), 2, 2, 1, 2.0, id="ends as another begins"),
        pytest.param(shift(("a", 0, 0, 0.0, 2.0), ("b", 0, 1, 1.0, 3.0)), 2, 2, 2, 3.0, id="two at once"),
        pytest.param(
            shift(("a", 0, 0, 0.0, 9.0), ("b", 0, 1, 1.0, 2.0), ("c", 1, 0, 3.0, 4.0)),
            3,
            3,
            2,
            9.0,
            id="never all three",
        ),
        pytest.param(shift(("a", 0, 7, 0.0, 1.0), ("b", 0, 7, 2.0, 3.0)), 1, 2, 1, 3.0, id="delivered twice"),
        pytest.param(shift(("a", 0, 7, 0.0, 1.0), ("b", 1, 7, 0.0, 1.0)), 2, 2, 2, 1.0, id="same offset elsewhere"),
    ],
)
def test_what_a_shift_counts(done: Shift, records: int, busy: int, at_once: int, duration_s: float) -> None:
    assert (done.records, done.busy, done.at_once, done.duration_s) == (records, busy, at_once, duration_s)


def test_a_shift_in_words() -> None:
    done = shift(("a", 0, 0, 0.0, 1.0), ("b", 1, 0, 0.5, 1.5))
    assert repr(done) == "2 records, 2 of 3 workers busy, 2 at once, 1.50 s of wall time"


# ---- at work ---------------------------------------------------------------------------------------------------------


class Record(NamedTuple):
    place: tuple[int, int]
    trouble: str | None = None

    def partition(self) -> int:
        return self.place[0]

    def offset(self) -> int:
        return self.place[1]

    def error(self) -> str | None:
        return self.trouble


class Desk:
    """A consumer that takes one record at a time from a pile that it may share with others."""

    def __init__(self, pile: SimpleQueue[Record]) -> None:
        self.pile = pile
        self.polled = threading.Event()
        self.closed = False

    def take(self) -> Iterable[Record]:
        self.polled.set()
        try:
            return [self.pile.get(timeout=0.001)]
        except Empty:
            return []

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def crew_of(*piles: SimpleQueue[Record]) -> tuple[Crew, list[Desk]]:
    desks = [Desk(pile) for pile in piles]
    consumers = {f"worker {number}": desk for number, desk in enumerate(desks)}
    return Crew(consumers, Desk.take, lambda: all(desk.polled.is_set() for desk in desks)), desks


def test_all_wait_for_each_other_and_every_crew_does_all_of_the_work() -> None:
    mine, yours, shared = SimpleQueue[Record](), SimpleQueue[Record](), SimpleQueue[Record]()
    (owners, first), (sharers, second) = crew_of(mine, yours, SimpleQueue()), crew_of(shared, shared)

    def begin() -> int:
        assert all(desk.polled.is_set() for desk in first + second), "work began before everybody was there"
        for offset in range(6):
            (mine if offset % 2 else yours).put(Record((offset % 2, offset)))
            shared.put(Record((offset % 2, offset)))
        return 6

    shifts = work_together({"owning": owners, "sharing": sharers}, begin, cost_ms=1)
    assert [shifts[title].records for title in ("owning", "sharing")] == [6, 6]
    assert shifts["owning"].workers == ("worker 0", "worker 1", "worker 2")
    assert {stint.worker for stint in shifts["owning"].stints} == {"worker 0", "worker 1"}
    begun = [stint.began_s for stint in shifts["sharing"].stints]
    assert begun == sorted(begun)
    assert begun[0] >= 0
    assert all(stint.ended_s - stint.began_s >= 0.001 for stint in shifts["sharing"].stints)
    assert all(desk.closed for desk in first + second)


@pytest.mark.parametrize(
    ("records", "comes", "patience_s", "error", "says"),
    [
        pytest.param([], False, 0.05, TimeoutError, "not every consumer joined in 0.05 s", id="no consumer is ready"),
        pytest.param([], True, 0.05, TimeoutError, "work was left over in 0.05 s", id="too little work"),
        pytest.param([Record((0, 0), "torn")], True, 60, RuntimeError, "worker 0: torn", id="a message with an error"),
    ],
)
def test_failures_are_reported_and_consumers_closed(
    records: list[Record], *, comes: bool, patience_s: float, error: type[Exception], says: str
) -> None:
    pile = SimpleQueue[Record]()
    crew, desks = crew_of(pile)

    def begin() -> int:
        for record in records:
            pile.put(record)
        return 1

    with pytest.raises(error, match=says):
        work_together({"all": Crew(crew.consumers, crew.take, lambda: comes)}, begin, cost_ms=0, patience_s=patience_s)
    assert [desk.closed for desk in desks] == [True]


# ---- the picture -----------------------------------------------------------------------------------------------------


def test_the_picture_has_a_panel_for_each_shift_and_a_row_for_each_worker() -> None:
    one = shift(("a", 0, 0, 0.0, 1.0), ("b", 1, 0, 0.5, 1.5))
    plot = shifts_plot({"few": one, "more": shift(("a", 0, 0, 0.0, 1.0), ("d", 0, 1, 0.0, 1.0), workers="abcd")})
    assert [axis.get_title(loc="left") for axis in plot.axes] == ["few: 2 of 3 busy", "more: 2 of 4 busy"]
    assert [[tick.get_text() for tick in axis.get_yticklabels()] for axis in plot.axes] == [[*"abc"], [*"abcd"]]
    bars = [bar for bar in plot.axes[0].patches if isinstance(bar, Rectangle)]
    assert [(round(bar.get_y() + bar.get_height() / 2), bar.get_x(), bar.get_width()) for bar in bars] == [
        (0, 0.0, 1.0),
        (1, 0.5, 1.0),
    ]
    assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in bars}) == 2
    assert repr(plot) == f"few: {one!r}\nmore: 2 records, 2 of 4 workers busy, 2 at once, 1.00 s of wall time"
