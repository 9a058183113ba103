"""What happens to classic groups when their shard comes and goes."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.group.classic.draft import Draft
from shareq.coordinator.group.classic.state import ClassicGroup
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import Due, What
from shareq.coordinator.group.kind import Kind
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import BackgroundOperation, Operation, Outcome
from shareq.model.actor import Effect
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import JoinGroupResponse, SyncGroupResponse


def _loaded(context: Context, group: ClassicGroup, now_ms: int) -> Iterable[Operation[GroupShard, Errors]]:
    """Every member gets a full new session. A group that has become too large makes its members compete for places."""
    for member in group.members.values():
        due = Due(What.CLASSIC_SESSION, group.group_id, member.member_id)
        context.deadlines.restart(due, now_ms + member.session_timeout_ms)
    if len(group.members) > context.image.broker_config["group.max.size"]:

        def rebalance(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
            draft = Draft(context, shard, group, now_ms)
            draft.rebalance()
            return draft.outcome(Errors.NONE)

        yield BackgroundOperation(rebalance)


def _resigned(context: Context, group: ClassicGroup, now_ms: int) -> list[Effect]:
    """Whoever waits is sent to the new coordinator."""
    del context
    effects: list[Effect] = []
    for member in group.members.values():
        if member.awaiting_join:
            failure = JoinGroupResponse(error_code=Errors.NOT_COORDINATOR, member_id=member.member_id)
            effects += member.awaiting_join(failure, now_ms)
        if member.awaiting_sync:
            effects += member.awaiting_sync(SyncGroupResponse(error_code=Errors.NOT_COORDINATOR), now_ms)
    return effects


CLASSIC = Kind(loaded=_loaded, resigned=_resigned)
