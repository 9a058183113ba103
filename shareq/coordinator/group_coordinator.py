"""The group coordinator of one broker: an actor that serves the groups whose partitions of `__consumer_offsets` it
leads. This module routes requests to the modules that serve them.
Source: KIP-932, "Group coordinator"; Kafka's GroupCoordinatorService.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any

from shareq.coordinator.classic_group.describe import describe_classic_groups
from shareq.coordinator.classic_group.hooks import CLASSIC
from shareq.coordinator.classic_group.join import join_group
from shareq.coordinator.classic_group.leave import join_timed_out, leave_group, session_timed_out, sync_timed_out
from shareq.coordinator.classic_group.records import GROUP_METADATA
from shareq.coordinator.classic_group.replay import replay as replay_classic
from shareq.coordinator.classic_group.state import ClassicGroup, ClassicGroupState
from shareq.coordinator.classic_group.sync import heartbeat, sync_group
from shareq.coordinator.consumer_group.describe import describe_consumer_groups
from shareq.coordinator.consumer_group.leave import expire as expire_consumer
from shareq.coordinator.consumer_group.membership import CONSUMER, consumer_heartbeat
from shareq.coordinator.consumer_group.records import RecordType as ConsumerRecordType
from shareq.coordinator.consumer_group.state import ConsumerGroupState
from shareq.coordinator.consumer_group.state import replay as replay_consumer
from shareq.coordinator.group.context import Context, GroupHooks, TopicsChanged
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group.deleted_topics import Remover, remove_deleted_topics
from shareq.coordinator.group.describe import list_groups
from shareq.coordinator.group.group import Group, GroupType
from shareq.coordinator.group.heartbeat_events import HEARTBEAT_EVENTS
from shareq.coordinator.group.shard import GroupShard, Replays, StoredRecord
from shareq.coordinator.offsets.commit import commit_offsets
from shareq.coordinator.offsets.delete import all_offset_tombstones, delete_committed_offsets
from shareq.coordinator.offsets.deleted_topics import offsets_of_deleted_topics
from shareq.coordinator.offsets.expiry import expire_offsets, may_expire
from shareq.coordinator.offsets.fetch import fetch_offsets
from shareq.coordinator.offsets.records import OFFSET_COMMIT_TYPES
from shareq.coordinator.offsets.state import Offsets
from shareq.coordinator.offsets.transactional import commit_transactional_offsets
from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import Append, itself
from shareq.coordinator.share_group.alter_offsets import alter_offsets
from shareq.coordinator.share_group.delete import delete_offsets
from shareq.coordinator.share_group.deleted_topics import share_partitions_of_deleted_topics
from shareq.coordinator.share_group.describe import describe_groups
from shareq.coordinator.share_group.describe_offsets import describe_offsets
from shareq.coordinator.share_group.experiments.review import review
from shareq.coordinator.share_group.leave import expire
from shareq.coordinator.share_group.membership import SHARE, share_heartbeat
from shareq.coordinator.share_group.records import RecordType as ShareRecordType
from shareq.coordinator.share_group.state import replay as replay_share
from shareq.model.actor import (
    ClientContext,
    Effect,
    ImageChanged,
    Incoming,
    Message,
    Respond,
    ShardElected,
    ShardResigned,
    Tick,
    isolated,
)
from shareq.model.errors import Errors
from shareq.model.events import GroupDeleted
from shareq.model.gauges import Gauge
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
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse, ListGroupsRequest
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
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.workflow import Workflow

Service = Callable[[Context, Any, ClientContext], Workflow[Any]]
"""Serves one request: (context, request, client)."""


_STATES: Mapping[str, type[StrEnum]] = {GroupType.CLASSIC: ClassicGroupState, GroupType.CONSUMER: ConsumerGroupState}
_OFFSETS: Gauge = ("offset-count", ())
_GAUGES: list[Gauge] = [
    _OFFSETS,
    *(("group-count", (("protocol", kind),)) for kind in _STATES),
    *((f"{kind}-group-count", (("state", state),)) for kind, states in _STATES.items() for state in states),
]
"""Those that are 0 without a group, too."""


class GroupCoordinator:
    """Answers the requests of `_SERVICES`, for groups of all types.

    A shard holds the groups of one partition, and is elected, loaded and resigned with it.
    """

    def __init__(self, broker_id: int, rng: random.Random, *, traced: bool, time_of_day: TimeOfDay = same_time) -> None:
        self.broker_id = broker_id
        self._runtime: ShardRuntime[GroupShard] = ShardRuntime(
            GROUP_METADATA_TOPIC, lambda _: new_shard(), self._on_load, traced=traced, time_of_day=time_of_day
        )
        self._context = Context(self._runtime, rng, _HOOKS, traced=traced)

    @property
    def wake_at_ms(self) -> int | None:
        """The first time at which a deadline may pass, or a workflow times out."""
        deadline_ms, runtime_ms = self._context.deadlines.wake_at_ms, self._runtime.wake_at_ms
        if deadline_ms is None or runtime_ms is None:
            return runtime_ms if deadline_ms is None else deadline_ms
        return min(deadline_ms, runtime_ms)

    def gauges(self) -> Counter[Gauge]:
        """Groups that leave no or not all events, by protocol and state, and the committed offsets of all groups."""
        found: Counter[Gauge] = Counter(dict.fromkeys(_GAUGES, 0))
        for _, shard in self._runtime.active():
            found[_OFFSETS] += sum(not pending for _, _, pending in shard.own(Offsets).commits())
            for group in shard.groups.values():
                if group.TYPE in _STATES:
                    found["group-count", (("protocol", group.TYPE),)] += 1
                    found[f"{group.TYPE}-group-count", (("state", group.state),)] += 1
        return found

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Handle one message. Raises TypeError for a request that is not in `_SERVICES`."""
        runtime = self._runtime
        runtime.now_ms = now_ms
        if isinstance(message, Incoming):
            serve = _SERVICES.get(type(message.request))
            if serve is None:
                self._respond(message, self._answer(message.request))
            else:
                runtime.start(serve(self._context, message.request, message.client), partial(self._respond, message))
            return runtime.take_effects()
        if isinstance(message, ImageChanged):
            self._image_changed(message.image)
            return runtime.take_effects()
        if isinstance(message, ShardElected | ShardResigned):
            return self._leadership_changed(message, now_ms)
        effects = runtime.handle(message, now_ms)
        if isinstance(message, Tick):
            for due in self._context.deadlines.take_expired(now_ms):
                isolated(runtime.effects, runtime.start, _WHEN_DUE[due.kind](self._context, due))
            effects += runtime.take_effects()
        return effects

    def _answer(self, request: Request) -> Response:
        """The response to a request that is answered at once."""
        if not isinstance(request, ListGroupsRequest):
            raise TypeError(f"{type(request).__name__} is not a request of the group coordinator")
        return list_groups(self._context, request)

    def _respond(self, message: Incoming, response: Response) -> None:
        runtime = self._runtime
        if runtime.traced and type(message.request) in HEARTBEAT_EVENTS:
            runtime.effects.append(HEARTBEAT_EVENTS[type(message.request)](message.request, response))
        runtime.effects.append(Respond(message.id, response))

    # ---- metadata and leadership -------------------------------------------------------------------------------------

    def _image_changed(self, image: ClusterImage) -> None:
        context, before = self._context, self._context.image
        context.image = image
        self._runtime.write_timeout_ms = image.broker_config["offsets.commit.timeout.ms"]
        configured = before.broker_config != image.broker_config
        if configured or before.group_configs is not image.group_configs:
            self._for_each_group(lambda hooks: hooks.configured, before)
        affects_all = context.metadata_hash.racks_changed(image) or configured
        change = TopicsChanged(_changed_topics(before, image), affects_all)
        if not (change.affects_all or change.names):
            return
        any_deleted = not before.topics_by_id.keys() <= image.topics_by_id.keys()
        for partition, _ in self._runtime.active():
            if any_deleted:
                self._runtime.start(remove_deleted_topics(context, partition, REMOVERS))
        self._for_each_group(lambda hooks: hooks.topics_changed, change)

    def _for_each_group(self, hook_of: Callable[[GroupHooks], Callable[..., None]], about: object) -> None:
        """Call a hook for every group of the active shards."""
        for _, shard in self._runtime.active():
            for group in list(shard.groups.values()):
                isolated(self._runtime.effects, hook_of(_HOOKS[group.TYPE]), self._context, group, about)

    def _leadership_changed(self, message: ShardElected | ShardResigned, now_ms: int) -> list[Effect]:
        """Load or drop the shard. Requests that wait at groups of a resigned shard are answered."""
        shard = self._runtime.shard(message.partition)
        effects = self._runtime.handle(message, now_ms)
        if shard is not None and self._runtime.shard(message.partition) is not shard:
            for group in shard.groups.values():
                isolated(self._runtime.effects, _HOOKS[group.TYPE].resigned, self._context, group)
            effects += self._runtime.take_effects()
        return effects

    def _on_load(self, partition: int, shard: GroupShard) -> Iterable[Workflow[object]]:
        if any(may_expire(group) for group in shard.groups.values()):
            self._context.schedule_expiry()
        yield remove_deleted_topics(self._context, partition, REMOVERS)
        for group in list(shard.groups.values()):
            yield from _HOOKS[group.TYPE].loaded(self._context, group)


def _changed_topics(before: ClusterImage, after: ClusterImage) -> frozenset[str]:
    """Names of topics that were created, changed or deleted."""
    if before.topics is after.topics:
        return frozenset()
    names = before.topics.keys() | after.topics.keys()
    return frozenset(name for name in names if before.topics.get(name) is not after.topics.get(name))


def _for_any_client(serve: Callable[[Context, Any], Workflow[Any]]) -> Service:
    """A service that does not depend on the client."""

    def service(context: Context, request: Any, client: ClientContext) -> Workflow[Any]:
        del client
        return serve(context, request)

    return service


# ---- DeleteGroups ----------------------------------------------------------------------------------------------------


def delete_groups(context: Context, request: DeleteGroupsRequest) -> Workflow[DeleteGroupsResponse]:
    """DeleteGroups: each group separately, with its offsets; of a share group, its share-partitions first. A group that
    a member joins meanwhile is not deleted. Source: KIP-932, "Deleting share groups".
    """
    errors = yield [_delete_group(context, group_id) for group_id in request.groups_names]
    result = DeleteGroupsResponse.Result
    named = zip(request.groups_names, errors, strict=True)
    return DeleteGroupsResponse(results=tuple(result(group_id=group_id, error_code=error) for group_id, error in named))


def _delete_group(context: Context, group_id: str) -> Workflow[Errors]:
    """Delete what the group has elsewhere, then its records, unless a member has joined meanwhile."""
    shard = yield context.turn(group_id, itself)
    group = shard.groups.get(group_id)
    error = _refuse_delete(group)
    if not error and group is not None:
        error = yield from _HOOKS[group.TYPE].before_delete(context, group)
    if error:
        return error
    shard = yield context.turn(group_id, itself)
    group = shard.groups.get(group_id)
    error = _refuse_delete(group)
    if error or group is None:
        return error
    failed: Errors = yield Append([*all_offset_tombstones(shard.own(Offsets), group_id), *group.tombstones()])
    if not failed:
        context.trace(GroupDeleted(group_id))
    return failed


def _refuse_delete(group: Group | None) -> Errors:
    return Errors.GROUP_ID_NOT_FOUND if group is None else group.refuse_delete()


# ---- the tables of the rooms -----------------------------------------------------------------------------------------


def _replay_offset(shard: GroupShard, record: StoredRecord) -> None:
    """An offset of an absent group creates an empty classic group."""
    group_id = shard.own(Offsets).replay(*record)
    if group_id is not None and group_id not in shard.groups:
        shard.groups[group_id] = ClassicGroup(group_id)


_REPLAYS = Replays(
    groups={
        GROUP_METADATA: replay_classic,
        **dict.fromkeys(ConsumerRecordType, replay_consumer),
        **dict.fromkeys(ShareRecordType, replay_share),
    },
    offset_types=frozenset(OFFSET_COMMIT_TYPES),
    offset=_replay_offset,
    marker=lambda shard, producer_id, committed: shard.own(Offsets).replay_marker(producer_id, committed),
)


def new_shard() -> GroupShard:
    """An empty shard."""
    return GroupShard(_REPLAYS)


REMOVERS: Sequence[Remover] = (offsets_of_deleted_topics, share_partitions_of_deleted_topics)

_SERVICES: Mapping[type[Request], Service] = {
    DeleteGroupsRequest: _for_any_client(delete_groups),
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
    DescribeGroupsRequest: describe_classic_groups,
    OffsetCommitRequest: commit_offsets,
    TxnOffsetCommitRequest: commit_transactional_offsets,
    OffsetFetchRequest: fetch_offsets,
    OffsetDeleteRequest: _for_any_client(delete_committed_offsets),
    ConsumerGroupHeartbeatRequest: consumer_heartbeat,
    ConsumerGroupDescribeRequest: _for_any_client(describe_consumer_groups),
    ShareGroupHeartbeatRequest: share_heartbeat,
    ShareGroupDescribeRequest: _for_any_client(describe_groups),
    DescribeShareGroupOffsetsRequest: _for_any_client(describe_offsets),
    AlterShareGroupOffsetsRequest: _for_any_client(alter_offsets),
    DeleteShareGroupOffsetsRequest: _for_any_client(delete_offsets),
}

_HOOKS: Mapping[GroupType, GroupHooks] = {
    GroupType.CLASSIC: CLASSIC,
    GroupType.CONSUMER: CONSUMER,
    GroupType.SHARE: SHARE,
}

_WHEN_DUE: Mapping[DeadlineKind, Callable[[Context, DeadlineKey], Workflow[None]]] = {
    DeadlineKind.CLASSIC_SESSION: session_timed_out,
    DeadlineKind.CLASSIC_JOIN: join_timed_out,
    DeadlineKind.CLASSIC_SYNC: sync_timed_out,
    DeadlineKind.CONSUMER_SESSION: expire_consumer,
    DeadlineKind.CONSUMER_REBALANCE: expire_consumer,
    DeadlineKind.SHARE_SESSION: expire,
    DeadlineKind.SHARE_REVIEW: review,
    DeadlineKind.OFFSET_EXPIRY: expire_offsets,
}
