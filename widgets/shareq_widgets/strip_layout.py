"""What stands where in a strip: the range of offsets, flags, labels and lanes. The texts are those of `words`.

`js/camera.js` and `js/scene.js` place the live strip by the same rules; `tests/browser/test_strip_forms.py` compares
both.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log10
from typing import Final, NamedTuple

from shareq.trace.views.snapshot import StripSnapshot
from shareq_widgets.look import LOCK_ALARM, SIZES, fit, in_width
from shareq_widgets.words import Lane, ends, flags

FOOT: Final = SIZES["cell_top"] + SIZES["cell_height"]


class OffsetScale(NamedTuple):
    """Positions of offsets in a picture: x = (offset - first) * pitch."""

    first: float
    pitch: float
    width: float

    def x(self, offset: float) -> float:
        """The left edge of an offset."""
        return round((offset - self.first) * self.pitch, 2)

    def offset(self, x: float) -> float:
        """The offset at a place."""
        return self.first + x / self.pitch

    @property
    def cells(self) -> bool:
        """True if each offset has a cell; else runs are blocks."""
        return self.pitch >= SIZES["pitch_cells"]


class Line(NamedTuple):
    """A vertical line, from `top` to `bottom`. `kind`: flag (of the window) or edge (of the log)."""

    x: float
    top: float
    bottom: float
    kind: str


class Label(NamedTuple):
    """A text. `style`: strong, small (and secondary), hot (an alarm), or none."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    style: str = ""


def scale_of(first: int, window: int, width: float) -> OffsetScale:
    """The range that shows `window` offsets from `first` on between the gutters; cells begin at the edge of one."""
    pitch = fit(window, width)
    columns = in_width("gutter_left", width) / pitch
    return OffsetScale(first - (ceil(columns) if pitch >= SIZES["pitch_cells"] else columns), pitch, width)


def lines(snapshot: StripSnapshot, scale: OffsetScale) -> Iterator[Line]:
    """The sides of the window, and the ends of the log."""
    for x in dict.fromkeys(_sides(snapshot, scale)):
        yield Line(x, 6, FOOT + SIZES["band_below"], "flag")
    for offset in (snapshot["log_start"], snapshot["log_end"]):
        if offset >= 0:
            yield Line(scale.x(offset) - 1.5, 34, FOOT + 36, "edge")


def labels(snapshot: StripSnapshot, scale: OffsetScale) -> Iterator[Label]:
    """The names of the flags, the ends of the log, and round offsets. Those out of view are named at the edge."""
    return (_kept(scale, label) for label in _labels(snapshot, scale))


def _labels(snapshot: StripSnapshot, scale: OffsetScale) -> Iterator[Label]:
    left, right = _sides(snapshot, scale)
    low, high = flags(snapshot)
    outside = bool(high) and right - left < max(160, 8.4 * len(low + high) + 24)  # both cannot stand inside
    yield Label(left + (-6 if outside else 6), 18, low, "end" if outside else "start", "strong")
    if high:
        yield Label(right + (6 if outside else -6), 18, high, "start" if outside else "end", "strong")
    start, end = snapshot["log_start"], snapshot["log_end"]
    near = start >= 0 and scale.x(end) - scale.x(start) < SIZES["ends_near"]
    for name, offset, side, aside in zip(ends(snapshot), (start, end), ("end", "start"), (-4, 4), strict=True):
        if name:
            x = scale.x(offset) - 1.5 + aside * near
            yield Label(x, FOOT + 48, name, side if near else "middle", "small")
    middle = (scale.pitch - SIZES["gap"]) / 2 if scale.cells else 0
    edges = [line.x for line in lines(snapshot, scale)]
    for offset in _round_offsets(snapshot, scale):
        x, text = scale.x(offset) + middle, str(offset)
        half = len(text) * SIZES["digit"] / 2 + 1
        if all(abs(x - edge) > half for edge in edges):  # else a line would cross it, which has a name
            yield Label(x, FOOT + 18, text, "middle", "small")


def _sides(snapshot: StripSnapshot, scale: OffsetScale) -> tuple[float, float]:
    left = scale.x(snapshot["spso"]) - 4
    empty = snapshot["spso"] == snapshot["window_end"]
    return left, left if empty else scale.x(snapshot["window_end"]) + 1


def _kept(scale: OffsetScale, label: Label) -> Label:
    """A label kept inside the picture."""
    x, text, anchor, half = label.x, label.text, label.anchor, len(label.text) * 3.2 + 7
    edge = half if anchor == "middle" else 0
    if x < 2:
        return label._replace(x=4, text=f"‹ {text}", anchor="start")
    if x > scale.width - 2:
        return label._replace(x=scale.width - 4, text=f"{text} ›", anchor="end")
    if anchor == "start" and x + 2 * half > scale.width:
        return label._replace(x=scale.width - 2, anchor="end")
    return label._replace(anchor="start" if x < edge else "end" if x > scale.width - edge else anchor)


def _round_offsets(snapshot: StripSnapshot, scale: OffsetScale) -> range:
    """Round offsets of the log in view, at legible distances."""
    exact = max(100, len(str(snapshot["window_end"])) * 7 + 40) / scale.pitch
    ten = 10 ** floor(log10(exact))
    step = max(round(next((n for n in (1, 2, 5) if n * ten >= exact), 10) * ten), 1)
    end = min(scale.offset(scale.width - 12), max(snapshot["log_end"], snapshot["window_end"]))
    first = ceil(max(scale.offset(12), snapshot["log_start"], 0) / step) * step
    return range(first, ceil(end), step)


# ---- lanes -----------------------------------------------------------------------------------------------------------


def lane_y(row: int) -> float:
    """The top of a lane."""
    return SIZES["lane_top"] + SIZES["lane"] * row


def lane_labels(snapshot: StripSnapshot, lanes: list[Lane], more: str, scale: OffsetScale) -> Iterator[Label]:
    """For each lane the name of its member, and what it holds or the time left on the first lock to expire."""
    left, right = in_width("gutter_left", scale.width), scale.width - in_width("gutter_right", scale.width)
    x, narrow = min(max(scale.x(snapshot["window_end"]) + 12, left + 8), right + 12), scale.width < SIZES["narrow"]
    for row, lane in enumerate(lanes):
        y = lane_y(row) + 11
        yield Label(left - SIZES["name_right"], y, lane.name[narrow], "end", "" if lane.held else "small")
        if lane.deadline_ms is None:
            yield Label(x, y, lane.holds[narrow], "start", "small")
        else:
            left_ms, hot = lock_left(snapshot, lane.deadline_ms)
            text = f"{left_ms / 1000:.1f} s{'' if narrow else ' of lock left'}"
            yield Label(x, y, text, "start", "hot" if hot else "")
    if more:
        yield Label(left - SIZES["name_right"], lane_y(len(lanes)) + 11, more, "end", "small")


def lock_left(snapshot: StripSnapshot, deadline_ms: int) -> tuple[int, bool]:
    """Lock time left, and whether that is an alarm."""
    left_ms = max(deadline_ms - snapshot["now_ms"], 0)
    return left_ms, left_ms * LOCK_ALARM < snapshot["lock_duration_ms"]
