"""Two ways to do the same work, measured in alternating rounds, so that other load of the machine affects both."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from tests.bench.reported import REPORTED

ROUNDS = 5

Rounds = list[tuple[float, float]]
"""The figures of the first and of the second way in each round."""


def alternate(benchmark: Any, ways: tuple[Any, Any], measure: Callable[[Any], float], count: int = ROUNDS) -> Rounds:
    """Measure both ways in each of `count` rounds. The table shows the figure of the second one."""
    rounds: Rounds = []

    def run() -> None:
        order = ways if len(rounds) % 2 else ways[::-1]  # neither is always the first
        found = {way: measure(way) for way in order}
        rounds.append((found[ways[0]], found[ways[1]]))
        REPORTED.now += rounds[-1][1]

    benchmark.pedantic(run, rounds=count)
    return rounds


def rates(benchmark: Any, rounds: Rounds, records: int, first: str) -> None:
    """Add the rate of the first way, and the second one's as a part of it: medians of the rounds."""
    benchmark.extra_info[f"{first} records/s"] = round(records / statistics.median(one for one, _ in rounds))
    benchmark.extra_info["ratio"] = round(statistics.median(one / other for one, other in rounds), 3)
