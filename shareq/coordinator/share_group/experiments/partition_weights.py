"""The weights of share-partitions, by which "cut" assigns: lag + 1, as read last. Soft state of a coordinator."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.coordinator.share_group.assignor import NO_WEIGHTS, Weights
from shareq.model.ids import TopicIdPartition


class PartitionWeights:
    """The weights by group."""

    def __init__(self) -> None:
        self._by_group: dict[str, Weights] = {}

    def of(self, group_id: str) -> Weights:
        """The weights of the group's partitions; a partition whose lag was never read is absent."""
        return self._by_group.get(group_id, NO_WEIGHTS)

    def learn(self, group_id: str, lags: Mapping[TopicIdPartition, int | None]) -> None:
        """The lags of all partitions of the group; None: it could not be read, so that the weight stays as it is."""
        before = self.of(group_id)
        read = {key: before.get(key) if lag is None else max(lag, 0) + 1 for key, lag in lags.items()}
        self._by_group[group_id] = {key: weight for key, weight in read.items() if weight is not None}

    def forget(self, group_id: str) -> None:
        """Remove the weights of the group."""
        self._by_group.pop(group_id, None)
