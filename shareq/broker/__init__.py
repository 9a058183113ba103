"""Clusters in this process: brokers, controller, network and storage around the actors, on virtual or wall time."""

from shareq.broker.cluster import Cluster

__all__ = ["Cluster"]
