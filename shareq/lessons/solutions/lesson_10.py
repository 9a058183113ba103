"""Solutions of lesson 10."""

from __future__ import annotations

from math import ceil
from random import Random
from typing import Final


def consumers() -> int:
    return ceil(30 * 0.2 / 0.8)


def lock_from_times(times_ms: list[int]) -> int:
    rng = Random(1)
    return ceil(1.1 * max(sum(rng.choices(times_ms, k=20)) for _ in range(5_000)))


def record_locks(arrival_rate: float, lock_ms: int, batch_records: int) -> int:
    return ceil(1.1 * (arrival_rate * lock_ms / 1000 + batch_records))


SOLUTIONS: Final = {"10.1": consumers, "10.2": lock_from_times, "10.3": record_locks}
