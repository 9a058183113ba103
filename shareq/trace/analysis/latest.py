"""The values that were asked for last, so that the next picture of nearly the same moment computes only what is new."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Latest(Generic[V]):
    """The values of the `limit` keys that were asked for last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[Hashable, V] = {}

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key; `make` makes it, if it is not kept."""
        values = self._values
        value = values.pop(key) if key in values else make()
        values[key] = value
        if len(values) > self._limit:
            del values[next(iter(values))]
        return value

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()
