"""The group coordinator of one broker: an actor that serves the share groups whose partitions of `__consumer_offsets`
it leads. Here requests find their way; the other modules know what to do with them.
Source: KIP-932, "Group coordinator"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from shareq.coordinator.group.alter_offsets import alter_offsets
from shareq.coordinator.group.context import Context, Then
from shareq.coordinator.group.delete import delete_groups, delete_offsets
from shareq.coordinator.group.describe import describe_groups, list_groups
from shareq.coordinator.group.describe_offsets import describe_offsets
from shareq.coordinator.group.heartbeat import heartbeat
from shareq.coordinator.group.initialize import drop_vanished_topics
from shareq.coordinator.group.leave import expire, leave
from shareq.coordinator.group.refusal import Refusal, refuse_request
from shareq.coordinator.group.sessions import MemberKey
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group.state import LEAVE_EPOCH
from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.shard import Operation, Outcome
from shareq.model.actor import Answer, Effect, ImageChanged, Incoming, Message, Respond, Tick
from shareq.model.errors import Errors
from shareq.model.events import HeartbeatReceived
from shareq.model.ids import GROUP_METADATA_TOPIC
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import DeleteGroupsRequest, ListGroupsRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

HeartbeatResponse = ShareGroupHeartbeatResponse


class GroupCoordinator:
    """Answers ShareGroupHeartbeat, ShareGroupDescribe, ListGroups, DeleteGroups and the three share-group offset APIs.

    Groups live in shards, which are elected, loaded and resigned as their partitions are. All actors are made with a
    generator; this one draws nothing from it.
    """

    def __init__(self, broker_id: int, rng: random.Random, *, traced: bool) -> None:
        del rng
        self.broker_id = broker_id
        self._runtime = ShardRuntime(GROUP_METADATA_TOPIC, lambda _: GroupShard(self._on_load), traced=traced)
        self._context = Context(self._runtime, traced=traced)
        self._open: set[int] = set()

    @property
    def wake_at_ms(self) -> int | None:
        """When the first session may be over, or an operation has waited too long."""
        session_ms, operation_ms = self._context.sessions.wake_at_ms, self._runtime.wake_at_ms
        if session_ms is None or operation_ms is None:
            return operation_ms if session_ms is None else session_ms
        return min(session_ms, operation_ms)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """The only way in. Requests of other kinds are the caller's mistake: TypeError."""
        if isinstance(message, Incoming):
            return self._incoming(message, now_ms)
        if isinstance(message, Answer):
            return self._context.answered(message, now_ms)
        if isinstance(message, ImageChanged):
            return self._image_changed(message.image, now_ms)
        effects = self._runtime.handle(message, now_ms)
        if isinstance(message, Tick):
            effects += expire(self._context, now_ms)
        return effects

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _incoming(self, message: Incoming, now_ms: int) -> list[Effect]:
        request = message.request
        then = self._respond(message.id)
        if isinstance(request, ShareGroupHeartbeatRequest):
            return self._heartbeat(message, request, now_ms)
        if isinstance(request, ListGroupsRequest):
            return list(then(list_groups(self._context, request), now_ms))
        serve = _SERVICES.get(type(request))
        if serve is None:
            raise TypeError(f"{type(request).__name__} is none of the group coordinator's requests")
        return serve(self._context, request, then, now_ms)

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

    def _heartbeat(self, message: Incoming, request: ShareGroupHeartbeatRequest, now_ms: int) -> list[Effect]:
        context, respond = self._context, self._respond(message.id)

        def then(response: HeartbeatResponse, now_ms: int) -> Iterable[Effect]:
            effects = respond(response, now_ms)
            if not context.traced:
                return effects
            epoch = request.member_epoch if response.error_code else response.member_epoch
            received = HeartbeatReceived(request.group_id, request.member_id, epoch, response.error_code)
            return (received, *effects)

        refusal = refuse_request(request, context.image)
        if refusal:
            return list(then(refusal.heartbeat(), now_ms))

        def compute(shard: GroupShard, now_ms: int) -> Outcome[HeartbeatResponse]:
            if request.member_epoch == LEAVE_EPOCH:
                return leave(context, shard, request)
            return heartbeat(context, shard, request, message.client, now_ms)

        return context.schedule(request.group_id, compute, _heartbeat_failure, then, now_ms)

    # ---- metadata and loading ----------------------------------------------------------------------------------------

    def _image_changed(self, image: ClusterImage, now_ms: int) -> list[Effect]:
        """Groups whose topics changed look again at their next heartbeat; topics that vanished are forgotten now."""
        context, before = self._context, self._context.image
        context.image = image
        self._runtime.write_timeout_ms = image.broker_config["offsets.commit.timeout.ms"]
        everybody = context.metadata_hash.racks_changed(image) or before.broker_config != image.broker_config
        changed = _changed_topics(before, image)
        vanished = before.topics_by_id.keys() - image.topics_by_id.keys()
        effects: list[Effect] = []
        if not (everybody or changed):
            return effects
        for _, shard in self._runtime.active():
            for group in list(shard.groups.values()):
                if everybody or not changed.isdisjoint(group.subscriptions):
                    group.look_again()
                if vanished and group.share_partitions and group.share_partitions.topics() & vanished:
                    drop = drop_vanished_topics(context, group.group_id)
                    effects += context.write(group.group_id, drop, now_ms)
        return effects

    def _on_load(self, shard: GroupShard, now_ms: int) -> Iterable[Operation[GroupShard, Any]]:
        """Every member gets a full new session; topics may have vanished while nobody led the shard."""
        context = self._context
        for group in shard.groups.values():
            deadline_ms = now_ms + context.image.group_config(group.group_id).session_timeout_ms
            for member_id in group.members:
                context.sessions.restart(MemberKey(group.group_id, member_id), deadline_ms)
            if group.share_partitions:
                yield context.background(drop_vanished_topics(context, group.group_id))


def _heartbeat_failure(error: Errors) -> HeartbeatResponse:
    return Refusal(error).heartbeat()


def _changed_topics(before: ClusterImage, after: ClusterImage) -> set[str]:
    """Names of topics that were created, changed or deleted."""
    if before.topics is after.topics:
        return set()
    names = before.topics.keys() | after.topics.keys()
    return {name for name in names if before.topics.get(name) is not after.topics.get(name)}


_SERVICES: dict[type[Request], Callable[[Context, Any, Any, int], list[Effect]]] = {
    ShareGroupDescribeRequest: describe_groups,
    DescribeShareGroupOffsetsRequest: describe_offsets,
    AlterShareGroupOffsetsRequest: alter_offsets,
    DeleteShareGroupOffsetsRequest: delete_offsets,
    DeleteGroupsRequest: delete_groups,
}
