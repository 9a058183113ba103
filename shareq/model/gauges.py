"""Values of Kafka's metrics that follow from no event: what an actor holds now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

Gauge = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a metric, and its tags."""


@runtime_checkable
class Gauged(Protocol):
    """An actor with gauges; those of several are added."""

    def gauges(self) -> Mapping[Gauge, int]: ...


def summed(several: Iterable[Gauged]) -> Counter[Gauge]:
    """The sums of the gauges of several actors."""
    found: Counter[Gauge] = Counter()
    for each in several:
        found.update(each.gauges())
    return found
