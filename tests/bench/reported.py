"""A benchmark clock for figures that another process has measured, such as a client's durations or CPU time."""

from __future__ import annotations


class Reported:
    """Advances only by the reported figures, so that a round lasts as long as the figure."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


REPORTED = Reported()
