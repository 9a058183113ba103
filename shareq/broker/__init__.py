"""Puts actors together: a cluster in this process, on virtual, wall or scaled time."""

from shareq.broker.cluster import Cluster

__all__ = ["Cluster"]
