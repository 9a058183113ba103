"""A time axis in pixels: places of times, round ticks, and short texts of times and durations."""

from __future__ import annotations

from typing import Final, NamedTuple

_STEPS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000),
    *(60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000),
)
_HOUR_MS: Final = 3_600_000


class Tick(NamedTuple):
    x: float
    time_ms: int
    text: str


class TimeScale(NamedTuple):
    """Times from `start_ms` to `end_ms` (since the epoch) on the pixels from `left` to `right`."""

    start_ms: int
    end_ms: int
    left: float
    right: float

    @property
    def per_ms(self) -> float:
        """Pixels per ms."""
        return (self.right - self.left) / max(self.end_ms - self.start_ms, 1)

    def x(self, time_ms: float) -> float:
        """The place of a time; times outside the scale are at its edges."""
        return min(max(self.left + (time_ms - self.start_ms) * self.per_ms, self.left), self.right)

    def ticks(self, origin_ms: int, room: float = 52) -> list[Tick]:
        """Round times since the origin, at least `room` pixels apart."""
        step = round_step((self.end_ms - self.start_ms) / max((self.right - self.left) / room, 1))
        first = -(-(self.start_ms - origin_ms) // step) * step
        times = range(first, self.end_ms - origin_ms + 1, step)
        return [Tick(self.x(origin_ms + t), origin_ms + t, time_text(t, step)) for t in times]


def round_scale(from_ms: int, to_ms: int, origin_ms: int, left: float, right: float) -> TimeScale:
    """A scale from `from_ms` to `to_ms`, extended to round times: it stays the same while they move a little."""
    step = max(round_step((to_ms - from_ms) / 10), 1)
    start = origin_ms + (from_ms - origin_ms) // step * step
    end = origin_ms - (origin_ms - to_ms) // step * step
    return TimeScale(start, max(end, start + step), left, right)


def round_step(least_ms: float) -> int:
    """The shortest round duration that is not below `least_ms`."""
    for step in _STEPS_MS:
        if step >= least_ms:
            return step
    return -int(-least_ms // _HOUR_MS) * _HOUR_MS


def time_text(ms: int, step_ms: int = 1_000) -> str:
    """A time since the origin as m:ss or h:mm:ss, with the decimals that steps of `step_ms` need."""
    sign, ms = ("-", -ms) if ms < 0 else ("", ms)
    hours, rest = divmod(ms, _HOUR_MS)
    minutes, millis = divmod(rest, 60_000)
    decimals = sum(step_ms % unit != 0 for unit in (1_000, 100, 10))
    seconds = f"{millis / 1000:0{3 + decimals if decimals else 2}.{decimals}f}" if decimals else f"{millis // 1000:02}"
    return f"{sign}{hours}:{minutes:02}:{seconds}" if hours else f"{sign}{minutes}:{seconds}"


def duration_text(ms: float) -> str:
    """A duration in its natural unit: "12 ms", "4.1 s", "30 s", "2 min 5 s", "1 h 3 min"."""
    if ms < 1_000:
        return f"{round(ms)} ms"
    tenths = round(ms / 100)
    if tenths < 600:
        return f"{tenths // 10} s" if tenths % 10 == 0 or tenths >= 300 else f"{tenths / 10:.1f} s"
    minutes, seconds = divmod(round(ms / 1_000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
