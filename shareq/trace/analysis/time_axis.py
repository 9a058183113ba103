"""The time axis of a timeline: proportional to time, with long idle stretches folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FOLD_OVER_MS = 60_000
"""A stretch without events that is longer than this is folded."""
FOLDED_MS = 5_000
"""A folded stretch takes as much room as this time."""


class Fold(NamedTuple):
    """A folded stretch, from one event to the next, ms since the epoch."""

    from_ms: int
    to_ms: int


class TimeAxis(NamedTuple):
    """Times from `start_ms` to `end_ms`, ms since the epoch, and the folds between them in order."""

    start_ms: int
    end_ms: int
    folds: tuple[Fold, ...]

    @property
    def length_ms(self) -> int:
        """The room that the axis takes: its time, with FOLDED_MS for each fold."""
        folded = sum(fold.to_ms - fold.from_ms - FOLDED_MS for fold in self.folds)
        return self.end_ms - self.start_ms - folded

    def between(self, from_ms: int, to_ms: int) -> TimeAxis:
        """The part of the axis between two times; the rest of a fold is folded if it is longer than its room."""
        start_ms, end_ms = max(from_ms, self.start_ms), min(to_ms, self.end_ms)
        inside = (Fold(max(fold.from_ms, start_ms), min(fold.to_ms, end_ms)) for fold in self.folds)
        folds = tuple(fold for fold in inside if fold.to_ms - fold.from_ms > FOLDED_MS)
        return TimeAxis(start_ms, max(end_ms, start_ms), folds)


class Folds:
    """The folds of a timeline that grows."""

    def __init__(self, start_ms: int) -> None:
        self._last_ms = start_ms
        self._start_ms = start_ms
        self._folds: list[Fold] = []

    def add(self, times_ms: Sequence[int]) -> None:
        """Add the times of the next events."""
        last_ms, latest_ms = self._last_ms, max(times_ms, default=0)
        if latest_ms - last_ms <= FOLD_OVER_MS:  # as nearly always: no stretch between two of them is longer
            self._last_ms = max(last_ms, latest_ms)
            return
        for time_ms in times_ms:
            if time_ms > last_ms:
                if time_ms - last_ms > FOLD_OVER_MS:
                    self._folds.append(Fold(last_ms, time_ms))
                last_ms = time_ms
        self._last_ms = last_ms

    def axis(self, end_ms: int) -> TimeAxis:
        """The axis up to `end_ms`, or to the last event if that is later."""
        end_ms = max(end_ms, self._last_ms)
        tail = (Fold(self._last_ms, end_ms),) if end_ms - self._last_ms > FOLD_OVER_MS else ()
        return TimeAxis(self._start_ms, end_ms, (*self._folds, *tail))
