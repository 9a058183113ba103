"""Solutions of lesson 12."""

from __future__ import annotations

from typing import Final

from shareq.broker import Cluster


def sooner(cluster: Cluster) -> None:
    cluster.configure_group("crew", {"share.record.lock.duration.ms": 15_000})


def go_on(cluster: Cluster) -> None:
    cluster.configure_group("crew", {"share.partition.max.record.locks": 200})


SOLUTIONS: Final = {"12.1": sooner, "12.2": go_on}
