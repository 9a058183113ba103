"""The group coordinator of one broker: an actor that serves the groups whose partitions of `__consumer_offsets` it
leads. Here requests find their way; the other modules know what to do with them.
Source: KIP-932, "Group coordinator"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shareq.coordinator.group.alter_offsets import alter_offsets
from shareq.coordinator.group.classic.describe import describe_classic_groups
from shareq.coordinator.group.classic.join import join_group
from shareq.coordinator.group.classic.kind import CLASSIC
from shareq.coordinator.group.classic.leave import join_over, leave_group, session_over, sync_over
from shareq.coordinator.group.classic.stay import heartbeat, sync_group
from shareq.coordinator.group.consumer.describe import describe_consumer_groups
from shareq.coordinator.group.consumer.leave import expire as expire_consumer
from shareq.coordinator.group.consumer.membership import CONSUMER, consumer_heartbeat
from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.deadlines import Due, What
from shareq.coordinator.group.delete import delete_groups, delete_offsets
from shareq.coordinator.group.describe import describe_groups, list_groups
from shareq.coordinator.group.describe_offsets import describe_offsets
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.kind import Kind, TopicsChanged
from shareq.coordinator.group.leave import expire
from shareq.coordinator.group.membership import SHARE, share_heartbeat
from shareq.coordinator.group.offsets.commit import commit_offsets
from shareq.coordinator.group.offsets.delete import delete_committed_offsets
from shareq.coordinator.group.offsets.expiry import expire_offsets, may_expire, watch_offsets
from shareq.coordinator.group.offsets.fetch import fetch_offsets
from shareq.coordinator.group.offsets.transactional import commit_transactional_offsets
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.vanished import forget_vanished_topics
from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.shard import Operation
from shareq.model.actor import (
    Answer,
    ClientContext,
    Effect,
    ImageChanged,
    Incoming,
    Message,
    Respond,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.ids import GROUP_METADATA_TOPIC
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from shareq.model.messages.cluster import DeleteGroupsRequest, ListGroupsRequest
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from shareq.model.messages.transactions import TxnOffsetCommitRequest

Service = Callable[[Context, Any, ClientContext, Then[Any], int], list[Effect]]
"""Serves one request: (context, request, client, then, now_ms). `then` answers it, now or later."""


class GroupCoordinator:
    """Answers the requests of `_SERVICES`, for groups of all types.

    Groups live in shards, which are elected, loaded and resigned as their partitions are.
    """

    def __init__(self, broker_id: int, rng: random.Random, *, traced: bool) -> None:
        self.broker_id = broker_id
        self._runtime = ShardRuntime(GROUP_METADATA_TOPIC, lambda _: GroupShard(self._on_load), traced=traced)
        self._context = Context(self._runtime, rng, traced=traced)
        self._open: set[int] = set()

    @property
    def wake_at_ms(self) -> int | None:
        """When the first deadline may be over, or an operation has waited too long."""
        deadline_ms, operation_ms = self._context.deadlines.wake_at_ms, self._runtime.wake_at_ms
        if deadline_ms is None or operation_ms is None:
            return operation_ms if deadline_ms is None else deadline_ms
        return min(deadline_ms, operation_ms)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """The only way in. Requests of other kinds are the caller's mistake: TypeError."""
        if isinstance(message, Incoming):
            serve = _SERVICES.get(type(message.request))
            if serve is None:
                raise TypeError(f"{type(message.request).__name__} is none of the group coordinator's requests")
            return serve(self._context, message.request, message.client, self._respond(message.id), now_ms)
        if isinstance(message, Answer):
            return self._context.answered(message, now_ms)
        if isinstance(message, ImageChanged):
            return self._image_changed(message.image, now_ms)
        if isinstance(message, ShardElected | ShardResigned):
            return self._leadership_changed(message, now_ms)
        effects = self._runtime.handle(message, now_ms)
        if isinstance(message, Tick):
            for due in self._context.deadlines.take_expired(now_ms):
                effects += _WHEN_DUE[due.what](self._context, due, now_ms)
        return effects

    def _respond(self, request_id: int) -> Then[Response]:
        """The way to answer a request. The first answer counts: when a commit came too late for its time-out, a second
        one may follow."""
        self._open.add(request_id)

        def then(response: Response, now_ms: int) -> Iterable[Effect]:
            del now_ms
            if request_id not in self._open:
                return ()
            self._open.remove(request_id)
            return (Respond(request_id, response),)

        return then

    # ---- metadata and leadership -------------------------------------------------------------------------------------

    def _image_changed(self, image: ClusterImage, now_ms: int) -> list[Effect]:
        context, before = self._context, self._context.image
        context.image = image
        self._runtime.write_timeout_ms = image.broker_config["offsets.commit.timeout.ms"]
        everybody = context.metadata_hash.racks_changed(image) or before.broker_config != image.broker_config
        change = TopicsChanged(_changed_topics(before, image), everybody)
        effects: list[Effect] = []
        if not (change.everybody or change.names):
            return effects
        any_vanished = not before.topics_by_id.keys() <= image.topics_by_id.keys()
        for partition, shard in self._runtime.active():
            if any_vanished:
                effects += self._runtime.schedule(partition, forget_vanished_topics(context), now_ms)
            for group in list(shard.groups.values()):
                effects += _KINDS[group.TYPE].topics_changed(context, group, change, now_ms)
        return effects

    def _leadership_changed(self, message: ShardElected | ShardResigned, now_ms: int) -> list[Effect]:
        """Whoever waits at a group that is coordinated elsewhere from now on is told so."""
        shard = self._runtime.shard(message.partition)
        effects = self._runtime.handle(message, now_ms)
        if shard is not None and self._runtime.shard(message.partition) is not shard:
            for group in shard.groups.values():
                effects += _KINDS[group.TYPE].resigned(self._context, group, now_ms)
        return effects

    def _on_load(self, shard: GroupShard, now_ms: int) -> Iterable[Operation[GroupShard, Any]]:
        if any(may_expire(group) for group in shard.groups.values()):
            watch_offsets(self._context, now_ms)
        yield forget_vanished_topics(self._context)
        for group in list(shard.groups.values()):
            yield from _KINDS[group.TYPE].loaded(self._context, group, now_ms)


def _changed_topics(before: ClusterImage, after: ClusterImage) -> frozenset[str]:
    """Names of topics that were created, changed or deleted."""
    if before.topics is after.topics:
        return frozenset()
    names = before.topics.keys() | after.topics.keys()
    return frozenset(name for name in names if before.topics.get(name) is not after.topics.get(name))


def _for_anybody(serve: Callable[[Context, Any, Then[Any], int], list[Effect]]) -> Service:
    """A service that does not care who asks."""

    def service(context: Context, request: Any, client: ClientContext, then: Then[Any], now_ms: int) -> list[Effect]:
        del client
        return serve(context, request, then, now_ms)

    return service


_SERVICES: Mapping[type[Request], Service] = {
    ListGroupsRequest: _for_anybody(list_groups),
    DeleteGroupsRequest: _for_anybody(delete_groups),
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
    DescribeGroupsRequest: describe_classic_groups,
    OffsetCommitRequest: _for_anybody(commit_offsets),
    TxnOffsetCommitRequest: commit_transactional_offsets,
    OffsetFetchRequest: fetch_offsets,
    OffsetDeleteRequest: _for_anybody(delete_committed_offsets),
    ConsumerGroupHeartbeatRequest: consumer_heartbeat,
    ConsumerGroupDescribeRequest: _for_anybody(describe_consumer_groups),
    ShareGroupHeartbeatRequest: share_heartbeat,
    ShareGroupDescribeRequest: _for_anybody(describe_groups),
    DescribeShareGroupOffsetsRequest: _for_anybody(describe_offsets),
    AlterShareGroupOffsetsRequest: _for_anybody(alter_offsets),
    DeleteShareGroupOffsetsRequest: _for_anybody(delete_offsets),
}

_KINDS: Mapping[GroupType, Kind] = {GroupType.CLASSIC: CLASSIC, GroupType.CONSUMER: CONSUMER, GroupType.SHARE: SHARE}

_WHEN_DUE: Mapping[What, Callable[[Context, Due, int], list[Effect]]] = {
    What.CLASSIC_SESSION: session_over,
    What.CLASSIC_JOIN: join_over,
    What.CLASSIC_SYNC: sync_over,
    What.CONSUMER_SESSION: expire_consumer,
    What.CONSUMER_REBALANCE: expire_consumer,
    What.SHARE_SESSION: expire,
    What.OFFSET_EXPIRY: expire_offsets,
    What.RETRY: Context.retry_due,
}
