"""The hooks of classic groups: what the group coordinator runs when a shard is loaded or resigned."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.classic_group.state import ClassicGroup, ClassicGroupState
from shareq.coordinator.classic_group.transition import Transition
from shareq.coordinator.group.context import Context, GroupHooks
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.runtime.turn import Retry
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import JoinGroupResponse, SyncGroupResponse
from shareq.model.workflow import Workflow


def _loaded(context: Context, group: ClassicGroup) -> Iterable[Workflow[object]]:
    """Start a full session for each member. A group with more members than `group.max.size` rebalances: the first
    members to rejoin stay."""
    for member in group.members.values():
        due = DeadlineKey(DeadlineKind.CLASSIC_SESSION, group.group_id, member.member_id)
        context.deadlines.restart(due, context.now_ms + member.session_timeout_ms)
    if len(group.members) > context.image.broker_config["group.max.size"]:
        yield _rebalance(context, group)


def _rebalance(context: Context, group: ClassicGroup) -> Workflow[None]:
    shard = yield context.background_turn(group.group_id)
    while True:
        transition = Transition(context, shard, group)
        transition.rebalance()
        if not (yield from transition.append()):
            return
        shard = yield Retry()


def _resigned(context: Context, group: ClassicGroup) -> None:
    """Answer waiting requests with NOT_COORDINATOR, so that clients send them to the new coordinator."""
    del context
    for member in group.members.values():
        if member.awaiting_join:
            failure = JoinGroupResponse(error_code=Errors.NOT_COORDINATOR, member_id=member.member_id)
            member.awaiting_join.keep(failure)
        if member.awaiting_sync:
            member.awaiting_sync.keep(SyncGroupResponse(error_code=Errors.NOT_COORDINATOR))


def _committed(context: Context, group: ClassicGroup, member_id: str) -> None:
    """A commit restarts the session of its member."""
    member = group.members.get(member_id)
    if member and group.state in (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
        due = DeadlineKey(DeadlineKind.CLASSIC_SESSION, group.group_id, member_id)
        context.deadlines.restart(due, context.now_ms + member.session_timeout_ms)


CLASSIC = GroupHooks(loaded=_loaded, resigned=_resigned, committed=_committed)
