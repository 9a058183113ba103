"""Which initialization of a share-partition is the newest one.

An attempt counts as lost after a time, and a heartbeat begins another one, at a higher state epoch. If the first one
succeeds late, the other is still under way, and resets the state when it reaches the share coordinator. Members must
not be assigned the partition before: what they accept would be delivered again.
"""

from __future__ import annotations

from collections.abc import Iterator

from shareq.coordinator.share_group.partitions import PartitionSets
from shareq.model.ids import TopicId

Key = tuple[str, TopicId, int]


class InitializationAttempts:
    """The state epoch of the newest attempt under way, by group and partition."""

    def __init__(self) -> None:
        self._epochs: dict[Key, int] = {}

    def begin(self, group_id: str, partitions: PartitionSets, state_epoch: int) -> None:
        """A request to the persister initializes these partitions."""
        for key in _keys(group_id, partitions):
            self._epochs[key] = max(state_epoch, self._epochs.get(key, state_epoch))

    def end(self, group_id: str, partitions: PartitionSets, state_epoch: int) -> PartitionSets:
        """The request has its answer; returns the partitions without a newer one. Only its result counts for these."""
        newest: dict[TopicId, set[int]] = {}
        for key in _keys(group_id, partitions):
            if self._epochs.get(key, state_epoch) <= state_epoch:
                self._epochs.pop(key, None)
                newest.setdefault(key[1], set()).add(key[2])
        return {topic: frozenset(parts) for topic, parts in newest.items()}


def _keys(group_id: str, partitions: PartitionSets) -> Iterator[Key]:
    return ((group_id, topic, index) for topic, indexes in partitions.items() for index in sorted(indexes))
