"""A share-partition together with what the actor has to know beside it: who reads, who waits, what is on its way."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from shareq.leader.share_partition import SharePartition
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicIdPartition, TopicPartition
from shareq.model.states import PartitionLoadState


class LedPartition:
    """One share-partition on its leader.

    Fetches (`fetch.Fetch`) stand above this file; here they are only kept. `owner` is the fetch that may read and
    acquire now: the fetch lock, which only its holder gives back. Of the fetches that wait, the `untried` ones have not
    tried what came last, the `tried` ones have; the next one stands first. `idle`: nothing can be fetched until
    something happens. `fresh`: nothing has happened since the read under way began. `log_end` is where the log was
    seen to end, until it grows. `writes` are on their way to the persister. `dropped` is the error after which this
    share-partition is no more.
    """

    __slots__ = (
        "at",
        "dropped",
        "fresh",
        "idle",
        "key",
        "leader_epoch",
        "log_end",
        "owner",
        "share_partition",
        "topic_partition",
        "tried",
        "untried",
        "writes",
    )

    def __init__(self, key: SharePartitionKey, topic: str, leader_epoch: int, *, traced: bool) -> None:
        self.key = key
        self.at = TopicIdPartition(key.topic_id, key.partition)
        self.topic_partition = TopicPartition(topic, key.partition)
        self.leader_epoch = leader_epoch
        self.share_partition = SharePartition(key, topic, leader_epoch=leader_epoch, traced=traced)
        self.share_partition.status = PartitionLoadState.INITIALIZING
        self.owner: Any = None
        self.untried: OrderedDict[Any, None] = OrderedDict()
        self.tried: dict[Any, None] = {}
        self.idle = False
        self.fresh = False
        self.log_end: int | None = None
        self.writes = 0
        self.dropped = Errors.NONE

    def acquirable(self, max_record_locks: int) -> bool:
        """Whether it is loaded and its window has room or something to give again."""
        share_partition = self.share_partition
        return share_partition.status is PartitionLoadState.ACTIVE and share_partition.can_acquire(max_record_locks)

    def ready(self, max_record_locks: int) -> bool:
        """Whether a fetch that takes the lock now has something to read and room to acquire it."""
        if self.idle:
            return False
        has_more = self.log_end is None or self.share_partition.next_fetch_offset < self.log_end
        self.idle = not (has_more and self.acquirable(max_record_locks))
        return not self.idle

    def leave(self, fetch: object) -> None:
        """The fetch waits no longer."""
        self.untried.pop(fetch, None)
        self.tried.pop(fetch, None)
