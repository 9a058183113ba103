"""Solutions of lesson 17."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shareq.lessons.persisters import folded
from shareq.model.messages.share_state import StateBatch


def passed_over(offsets: list[int]) -> int:
    return offsets[-1] - offsets[0] + 1 - len(offsets)


def can_a_delta_express_it(start: int, stored: Sequence[StateBatch], asked: int, added: Sequence[StateBatch]) -> bool:
    return folded(start, stored, added) == folded(max(start, asked), stored, added)


def never_twice(last: int, used: set[int]) -> int | None:
    index = (last + 1) % 16
    return None if index in used else index


SOLUTIONS: Final = {"17.1": passed_over, "17.2": can_a_delta_express_it, "17.3": never_twice}
