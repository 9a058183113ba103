"""Diagram of the record states, drawn from the transition table.

Needs matplotlib, which is imported when it is drawn. The text colour follows the current light or dark style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from shareq.extras import require
from shareq.model.states import RecordState
from shareq.trace.analysis.state_arrows import Arrow, arrow_text, arrows
from shareq.trace.views.palette import LIGHT, SYMBOLS
from shareq.trace.views.plots import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AVAILABLE, _ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
_ACKNOWLEDGED, _ARCHIVED, _ARCHIVING = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED, RecordState.ARCHIVING


def state_diagram(ax: Axes | None = None) -> Plot:
    """The states of the transition table, with one arrow for all events from one state to another."""
    require("lab", "matplotlib")
    from matplotlib.figure import Figure

    drawn = arrows()
    axis = Figure(figsize=(10, 5.6), layout="constrained").subplots() if ax is None else ax
    figure = axis.get_figure(root=True)
    assert isinstance(figure, Figure)
    axis.set(xlim=(0, 10.6), ylim=(0, 6.4))
    axis.set_axis_off()
    for state in dict.fromkeys(state for arrow in drawn for state in (arrow.source, arrow.target)):
        _draw_state(axis, state)
    for arrow in drawn:
        _draw_arrow(axis, arrow)
    return Plot(figure, [axis], "\n".join(arrow_text(arrow) for arrow in drawn), shown=ax is None)


_PLACES: Final = {
    _AVAILABLE: (1.3, 4.3),
    _ACQUIRED: (5.2, 4.3),
    _ACKNOWLEDGED: (9.3, 5.6),
    _ARCHIVED: (9.3, 2.4),
    _ARCHIVING: (5.2, 0.6),
}
_GLYPHS: Final = {**SYMBOLS, "archiving": "\N{ENVELOPE}"}
"""The symbols of the states. Matplotlib's own font has no hourglass."""
_SIDE = (1.1, 0.4)
"""The distances from the middle of a state to its edges."""


class _Course(NamedTuple):
    """The course of an arrow: its start and end in parts of a state's half width and height, its bend, and the middle
    of its label."""

    leaves: tuple[float, float]
    arrives: tuple[float, float]
    bend: float
    label: tuple[float, float]


_COURSES: Final = {
    (_AVAILABLE, _ACQUIRED, False): _Course((1, 0.5), (-1, 0.5), -0.25, (3.25, 4.92)),
    (_ACQUIRED, _AVAILABLE, False): _Course((-1, -0.5), (1, -0.5), -0.25, (3.25, 3.35)),
    (_ACQUIRED, _ACQUIRED, False): _Course((-0.4, 1), (0.4, 1), -1.6, (5.2, 5.72)),
    (_ACQUIRED, _ACKNOWLEDGED, False): _Course((1, 0.5), (-1, 0), 0, (7.1, 5.3)),
    (_ACQUIRED, _ARCHIVED, False): _Course((1, -0.2), (-0.2, 1), -0.2, (8.2, 4.05)),
    (_ACQUIRED, _ARCHIVED, True): _Course((0.5, -1), (-1, 0.5), 0.15, (5.95, 2.95)),
    (_AVAILABLE, _ARCHIVED, False): _Course((-0.2, -1), (-1, 0), 0.2, (2.6, 2.45)),
    (_ACQUIRED, _ARCHIVING, False): _Course((-0.1, -1), (-0.1, 1), 0, (5.85, 1.55)),
    (_ACQUIRED, _ARCHIVING, True): _Course((-0.6, -1), (-0.6, 1), 0.1, (3.75, 1.55)),
    (_ARCHIVING, _ARCHIVED, False): _Course((1, 0), (-0.3, -1), 0.2, (8.1, 0.85)),
}
"""Courses with room for the labels. Any other transition is drawn straight, with its label in the middle."""


def _draw_state(axis: Axes, state: RecordState) -> None:
    from matplotlib.patches import FancyBboxPatch

    name, (x, y) = state.name.lower(), _PLACES[state]
    box = FancyBboxPatch(
        (x - _SIDE[0] + 0.1, y - _SIDE[1] + 0.1), 2 * _SIDE[0] - 0.2, 2 * _SIDE[1] - 0.2, boxstyle="round,pad=0.1",
        facecolor=LIGHT[name] + "40", edgecolor=LIGHT[name], linewidth=2.2 if state.terminal else 1.4, gid=name,
    )  # fmt: skip
    axis.add_patch(box)
    axis.text(x, y, f"{_GLYPHS[name]}  {name}", ha="center", va="center")


def _draw_arrow(axis: Axes, arrow: Arrow) -> None:
    from matplotlib.patches import FancyArrowPatch

    (x, y), (x2, y2) = _PLACES[arrow.source], _PLACES[arrow.target]
    middle = _Course((0, 0), (0, 0), 0, ((x + x2) / 2, (y + y2) / 2))
    leaves, arrives, bend, label = _COURSES.get((arrow.source, arrow.target, arrow.at_limit), middle)
    line = FancyArrowPatch(
        (x + leaves[0] * _SIDE[0], y + leaves[1] * _SIDE[1]), (x2 + arrives[0] * _SIDE[0], y2 + arrives[1] * _SIDE[1]),
        arrowstyle="-|>,head_length=6,head_width=3", connectionstyle=f"arc3,rad={bend}", shrinkA=1, shrinkB=2,
        linestyle="--" if arrow.at_limit else "-", color=LIGHT["soft"], linewidth=1.4, gid=arrow_text(arrow),
    )  # fmt: skip
    axis.add_patch(line)
    conditions = ["at the limit"] * arrow.at_limit + ["with a queue"] * arrow.queue
    text = "\n".join([event.value for event in arrow.events] + conditions)
    axis.text(*label, text, ha="center", va="center", fontsize="small")
