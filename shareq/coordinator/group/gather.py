"""Waiting for several results that come in any order, now or later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from shareq.model.actor import Effect

T = TypeVar("T")

Task = Callable[[Callable[[T, int], Iterable[Effect]], int], Iterable[Effect]]
"""Something begun with (then, now_ms), which calls `then(result, now_ms)` exactly once."""


def gather(tasks: Sequence[Task[T]], then: Callable[[list[T], int], Iterable[Effect]], now_ms: int) -> list[Effect]:
    """Begin all tasks; once every one has its result, go on with all of them, in the order of the tasks."""
    results: dict[int, T] = {}

    def settle(index: int) -> Callable[[T, int], Iterable[Effect]]:
        def put(result: T, now_ms: int) -> Iterable[Effect]:
            results[index] = result
            return then([results[i] for i in range(len(tasks))], now_ms) if len(results) == len(tasks) else ()

        return put

    effects: list[Effect] = [] if tasks else list(then([], now_ms))
    for index, task in enumerate(tasks):
        effects += task(settle(index), now_ms)
    return effects
