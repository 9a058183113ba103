"""Solutions of lesson 08."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench
from shareq.lessons.transactions import transactional


def only_committed() -> dict[str, object]:
    return {"share.isolation.level": "read_committed"}


def read_the_log() -> tuple[list[int], int]:
    return [0, 1, 2, 3, 4, 9], 13 - 10


def dead_bank(bench: Bench) -> None:
    transactional(bench, "bank")


def weekend() -> dict[str, object]:
    return {"retention.ms": 66 * 3_600_000}


SOLUTIONS: Final = {"08.1": only_committed, "08.2": read_the_log, "08.3": dead_bank, "08.4": weekend}
