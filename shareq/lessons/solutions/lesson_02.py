"""Solutions of lesson 02."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench


def three_numbers() -> tuple[int, int, int]:
    return 4, 9, 10 - 4 - 2


def wide_enough() -> int:
    return 4 * 10 * 30 + 10  # four workers, ten a second, thirty seconds; and the batch with the stuck record


def begin_at_seven(bench: Bench) -> None:
    bench.admin.delete_records({(bench.topic, 0): 7})


def patience() -> dict[str, object]:
    return {"share.record.lock.duration.ms": 15_000}


SOLUTIONS: Final = {"02.1": three_numbers, "02.2": wide_enough, "02.3": begin_at_seven, "02.4": patience}
