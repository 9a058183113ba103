"""The features of a cluster: their ranges, and their levels when the cluster is created (KIP-584)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

SHARE_VERSION_FEATURE: Final = "share.version"


class Feature(NamedTuple):
    """The supported levels (inclusive), and that of a new cluster."""

    low: int
    high: int
    level: int


FEATURES: Final = MappingProxyType(
    {
        "eligible.leader.replicas.version": Feature(0, 1, 1),
        "group.version": Feature(0, 1, 1),
        "metadata.version": Feature(7, 33, 33),
        SHARE_VERSION_FEATURE: Feature(0, 2, 2),
        "streams.version": Feature(0, 1, 1),
        "transaction.version": Feature(0, 2, 2),
    }
)
"""The features of a new cluster of Kafka 4.4, by name."""
