"""The members of share groups: their heartbeats, and the hooks of the group type."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.context import Context, GroupHooks, TopicsChanged
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.share_group.delete import delete_share_partitions
from shareq.coordinator.share_group.experiments.review import configured, follow, loaded
from shareq.coordinator.share_group.heartbeat import heartbeat
from shareq.coordinator.share_group.leave import leave
from shareq.coordinator.share_group.refusal import refuse_request, refused
from shareq.coordinator.share_group.state import LEAVE_EPOCH, ShareGroup
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.workflow import Workflow

Response = ShareGroupHeartbeatResponse


def share_heartbeat(context: Context, request: ShareGroupHeartbeatRequest, client: ClientContext) -> Workflow[Response]:
    """ShareGroupHeartbeat: join, renew the session, or leave."""
    refusal = refuse_request(request, context.image)
    if refusal:
        return refused(refusal)
    shard = yield context.turn(request.group_id, _failure)
    if request.member_epoch == LEAVE_EPOCH:
        return (yield from leave(context, shard, request))
    beat = heartbeat(context, shard, request, client)
    if isinstance(beat, Refusal):
        return refused(beat)
    if beat.records:
        error = yield Append(beat.records)
        if error:
            return _failure(error)
    beat.committed()
    follow(context, request.group_id)
    return beat.response


def _failure(error: Errors) -> Response:
    return refused(Refusal(error))


def _loaded(context: Context, group: ShareGroup) -> Iterable[Workflow[object]]:
    """Start a new session for every member."""
    loaded(context, group)
    deadline_ms = context.now_ms + context.image.group_config(group.group_id).session_timeout_ms
    for member_id in group.members:
        context.deadlines.restart(DeadlineKey(DeadlineKind.SHARE_SESSION, group.group_id, member_id), deadline_ms)
    return ()


def _topics_changed(context: Context, group: ShareGroup, change: TopicsChanged) -> None:
    """The next heartbeat of a group whose topics changed checks the metadata again."""
    del context
    if change.affects_all or not change.names.isdisjoint(group.subscriptions):
        group.look_again()


SHARE = GroupHooks(
    loaded=_loaded, topics_changed=_topics_changed, configured=configured, before_delete=delete_share_partitions
)
