"""What a view can do with its source."""

from __future__ import annotations

from typing import Any

from shareq.broker import Cluster


def open_cluster(source: Any) -> Cluster | None:
    """The cluster of a source, if it is in this process and open."""
    cluster = getattr(source, "cluster", source)
    return cluster if isinstance(cluster, Cluster) and not cluster.closed else None
