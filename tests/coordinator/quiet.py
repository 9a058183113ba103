"""Checks that a coordinator has nothing pending, to be used some time after the last fault."""

from __future__ import annotations

from typing import Any

from shareq.coordinator.group.deadlines import DeadlineKind
from shareq.coordinator.group.deleted_topics import Removal
from shareq.coordinator.group.group import Group
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group_coordinator import REMOVERS, GroupCoordinator
from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.share_group.state import ShareGroup
from shareq.coordinator.transactions import TransactionCoordinator

REBALANCING = frozenset({DeadlineKind.CLASSIC_JOIN, DeadlineKind.CLASSIC_SYNC, DeadlineKind.CONSUMER_REBALANCE})
"""The deadlines of rebalances. Deadlines of sessions and of the expiry of offsets may be pending."""


def check_runtime(runtime: ShardRuntime[Any]) -> None:
    """No workflow waits for a turn, an append, a reply, or a retry."""
    assert not runtime._repeats
    assert not runtime._calls
    assert runtime._pauses.wake_at_ms is None
    assert runtime.wake_at_ms is None
    for slot in runtime._slots.values():
        assert (slot.holder, slot.appending, list(slot.queue)) == (None, None, [])


def check_group_coordinator(coordinator: GroupCoordinator) -> None:
    """Also: no rebalance is under way, and no records of deleted topics are left."""
    check_runtime(coordinator._runtime)
    context = coordinator._context
    known: dict[str, Group] = {}
    for _, shard in coordinator._runtime.active():
        known |= shard.groups
        check_topics(coordinator, shard)
    waiting = {due for due in context.deadlines._deadlines if due.kind in REBALANCING and due.group_id in known}
    assert not {due for due in waiting if due in context.deadlines._queued}


def check_topics(coordinator: GroupCoordinator, shard: GroupShard) -> None:
    image = coordinator._context.image
    assert [remover(shard, image) for remover in REMOVERS] == [Removal([])] * len(REMOVERS)
    for group in shard.groups.values():
        if isinstance(group, ShareGroup) and group.share_partitions and group.members:
            for name in group.subscriptions:
                topic = image.topics.get(name)
                if topic is not None:
                    assert topic.topic_id not in group.share_partitions.initializing
                    assert len(group.share_partitions.initialized[topic.topic_id]) == len(topic.partitions)


def check_transaction_coordinator(coordinator: TransactionCoordinator) -> None:
    """Also: no transaction waits for its markers or its completion."""
    check_runtime(coordinator._runtime)
    assert coordinator._endings._endings == set()
    for _, shard in coordinator._runtime.active():
        assert not [known for known in shard.transactions.values() if known.state.is_preparing]
