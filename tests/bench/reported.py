"""A clock for figures that somebody else has taken: what a client reports, or what a process has cost."""

from __future__ import annotations


class Reported:
    """It goes on by what is reported, so that a round lasts as long as the figure says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


REPORTED = Reported()
