"""What pictures with time share: texts of times, ticks of an axis, and the brush."""

from __future__ import annotations

from typing import Final, NamedTuple

from shareq_widgets.drawing import Drawing
from shareq_widgets.text_fit import SMALL, text_width

STEPS_MS: Final = (
    *(base * 10**power for power in range(4) for base in (1, 2, 5)),
    10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000,
)  # fmt: skip


DRAG: Final = "click to look at another moment, drag to show a span of time in all views"
"""The tooltip of a brush."""


class TimeRange(NamedTuple):
    """Times ms since the epoch, drawn from x `left` to `right`, px."""

    from_ms: int
    to_ms: int
    left: float
    right: float

    def x(self, time_ms: float) -> float:
        """The place of a time, inside the range."""
        share = (time_ms - self.from_ms) / max(self.to_ms - self.from_ms, 1)
        return self.left + min(max(share, 0), 1) * (self.right - self.left)

    def ticks(self, origin_ms: int) -> list[tuple[float, str]]:
        """(x, text) of round times since the origin, far enough from each other for their texts."""
        room = max(int((self.right - self.left) / 64), 1)
        step = next((s for s in STEPS_MS if s >= (self.to_ms - self.from_ms) / room), STEPS_MS[-1])
        first = -(-(self.from_ms - origin_ms) // step) * step
        times = range(first, self.to_ms - origin_ms + 1, step)
        return [(self.x(origin_ms + time_ms), clock(time_ms, step)) for time_ms in times]

    def brush(self, top: float, bottom: float) -> dict[str, float]:
        """The area in which a drag selects times."""
        return {
            "left": self.left, "right": self.right, "top": top, "bottom": bottom,
            "from_ms": self.from_ms, "to_ms": self.to_ms,
        }  # fmt: skip


def clock(ms: int, step_ms: int = 1) -> str:
    """A time since the origin as m:ss, with as many decimals as steps of `step_ms` need."""
    decimals = 0 if step_ms % 1000 == 0 else 1 if step_ms % 100 == 0 else 3
    sign, ms = ("-" if ms < 0 else ""), abs(ms)
    minutes, rest = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:0{3 + decimals if decimals else 2}.{decimals}f}"
    return sign + (f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}")


def duration(ms: int) -> str:
    """A span of time in words: "80 ms", "1.5 s", "2 min"."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 120_000:
        return f"{ms / 1000:g} s" if ms % 100 == 0 else f"{ms / 1000:.1f} s"
    return f"{ms / 60_000:.3g} min"


def draw_axis(drawing: Drawing, key: str, time: TimeRange, origin_ms: int, y: float) -> None:
    """The texts of the ticks, with their base line at y."""
    for x, text in time.ticks(origin_ms):
        half = text_width(text, SMALL) / 2
        if time.left - 14 <= x - half and x + half <= time.right + 12:
            drawing.label(f"{key} {text}", x, y, text, anchor="middle", style="small soft")


def draw_moment(drawing: Drawing, time: TimeRange, now_ms: int, top: float, bottom: float) -> None:
    """The moment as a vertical line, if it is in the range."""
    if time.from_ms <= now_ms <= time.to_ms:
        x = time.x(now_ms)
        drawing.line("now", x, top, x, bottom, stroke="ink", stroke_width=1.5, title="the moment shown")
