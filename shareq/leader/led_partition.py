"""A share-partition on its leader, with its fetch lock, its waiting fetches and the number of its state writes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from shareq.leader.fetch_states import LOCK_TRANSITIONS, LockEvent, LockState
from shareq.leader.share_partition import SharePartition
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicIdPartition, TopicPartition
from shareq.model.states import LoadEvent, PartitionLoadState

# Bound once: Python 3.11 runs a function for each access to a member of an enumeration.
_FREE, _CHANGED, _EXHAUSTED = LockState.FREE, LockEvent.CHANGED, LockEvent.EXHAUSTED
_ACTIVE = PartitionLoadState.ACTIVE


class LedPartition:
    """One share-partition on its leader.

    `owner` is the fetch (`share_fetch.ShareFetch`, which imports this module) that holds the fetch lock: only it may
    read and acquire, and only it releases the lock. `lock`: the state of the lock. Waiting fetches are `untried` if
    they have not tried since the last change, else `tried`; the next one stands first. `log_end`: the end of the log at
    the last read, None after it has grown. `writes`: state writes under way. `letters_id`: the id of its dead letters,
    None before the first one.
    `letters_out`: records on their way to the dead-letter queue; `letters_stopped`: no more of them are sent.
    `dropped`: the error with which this share-partition was dropped.
    """

    __slots__ = (
        "at",
        "dropped",
        "key",
        "leader_epoch",
        "letters_id",
        "letters_out",
        "letters_stopped",
        "lock",
        "log_end",
        "owner",
        "share_partition",
        "topic_partition",
        "tried",
        "untried",
        "writes",
    )

    def __init__(
        self, key: SharePartitionKey, topic: str, leader_epoch: int, *, traced: bool, kind: type[SharePartition]
    ) -> None:
        self.key = key
        self.at = TopicIdPartition(key.topic_id, key.partition)
        self.topic_partition = TopicPartition(topic, key.partition)
        self.leader_epoch = leader_epoch
        self.share_partition = kind(key, topic, leader_epoch=leader_epoch, traced=traced)
        self.share_partition.step(LoadEvent.READ)
        self.owner: Any = None
        self.untried: OrderedDict[Any, None] = OrderedDict()
        self.tried: dict[Any, None] = {}
        self.lock = LockState.FREE
        self.log_end: int | None = None
        self.writes = 0
        self.letters_id: int | None = None
        self.letters_out = 0
        self.letters_stopped = False
        self.dropped = Errors.NONE

    def acquirable(self, config: GroupConfig) -> bool:
        """True if it is loaded, its window has room or AVAILABLE records, and its group is not paused."""
        share_partition, experiments = self.share_partition, config.experiments
        if experiments is not None and not experiments.delivery_enable:
            return False
        active = share_partition.status is _ACTIVE
        return active and share_partition.can_acquire(config.partition_max_record_locks)

    def ready(self, config: GroupConfig) -> bool:
        """True if a fetch that takes the lock now can read records and acquire them."""
        if self.lock is not _FREE:
            return False
        has_more = self.log_end is None or self.share_partition.next_fetch_offset < self.log_end
        if has_more and self.acquirable(config):
            return True
        self.step(_EXHAUSTED)
        return False

    def step(self, event: LockEvent) -> None:
        """Change the state of the fetch lock. KeyError for an event that cannot occur in this state."""
        self.lock = LOCK_TRANSITIONS[self.lock, event]

    def change(self) -> None:
        """Something has changed: every waiting fetch may try again."""
        self.step(_CHANGED)
        if self.tried:
            for fetch in reversed(self.tried):  # tried fetches have waited longer than untried ones
                self.untried[fetch] = None
                self.untried.move_to_end(fetch, last=False)
            self.tried.clear()

    def leave(self, fetch: object) -> None:
        """Remove a fetch from the queues."""
        self.untried.pop(fetch, None)
        self.tried.pop(fetch, None)
