"""Values of Kafka's metrics that follow from no event: what an actor holds now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

Gauge = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a metric, and its tags."""


@runtime_checkable
class Gauged(Protocol):
    """An actor with gauges; those of several are added."""

    def gauges(self) -> Mapping[Gauge, int]: ...
