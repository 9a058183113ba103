"""Solutions of lesson 18."""

from __future__ import annotations

from itertools import accumulate
from typing import Final


def the_last_try(first_ms: int, most_ms: int, limit: int) -> int:
    return sum(min(most_ms, first_ms * 2 ** (count - 1)) for count in range(1, limit))


def whose_turn(window: list[tuple[str, str]], in_flight: int) -> list[int]:
    closed = {key for key, state in window if state == "held"}
    taken: dict[str, int] = {}
    allowed = []
    for place, (key, _) in enumerate(window):
        if key not in closed and taken.get(key, 0) < in_flight:
            taken[key] = taken.get(key, 0) + 1
            allowed.append(place)
    return allowed


def cut_the_line(weights: list[int], members: int) -> list[list[int]]:
    length, ends = sum(weights), [end * members for end in accumulate(weights)]
    begins = [0, *ends[:-1]]
    return [
        [
            partition
            for partition in range(len(weights))
            if begins[partition] < (member + 1) * length and ends[partition] > member * length
        ]
        for member in range(members)
    ]


SOLUTIONS: Final = {"18.1": the_last_try, "18.2": whose_turn, "18.3": cut_the_line}
