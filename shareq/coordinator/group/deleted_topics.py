"""Deleted topics: the shards remove the offsets committed for them, and their share-partitions.

One workflow for each shard searches the committed state for such topics. It runs after all workflows that used the
earlier metadata, so it also finds what they wrote. Source: Kafka's OffsetMetadataManager
(onPartitionsDeleted) and GroupMetadataManager (maybeCleanupShareGroupState).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.turn import Append, BackgroundTurn, Retry
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow


class Removal(NamedTuple):
    """The records that remove deleted topics. `contested`: something can only be removed after a transaction ends."""

    records: Sequence[CoordinatorRecord]
    contested: bool = False


Remover = Callable[[GroupShard, ClusterImage], Removal]
"""Finds what a room keeps of deleted topics."""


def remove_deleted_topics(context: Context, partition: int, removers: Sequence[Remover]) -> Workflow[None]:
    """Clean up one shard; waits for open transactions where necessary."""
    shard = yield BackgroundTurn(partition)
    while True:
        removals = [remover(shard, context.image) for remover in removers]
        error = yield Append([record for removal in removals for record in removal.records])
        if not (error or any(removal.contested for removal in removals)):
            return
        shard = yield Retry()
