"""JoinGroup: somebody becomes a member, or a member asks for the next generation.

Answers wait for the end of the join phase, which may take as long as the slowest member is given.
Source: Kafka's GroupMetadataManager, classicGroupJoinToClassicGroup.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from shareq.coordinator.group.classic.draft import Draft, join_response
from shareq.coordinator.group.classic.state import ClassicGroup, ClassicGroupState, Member
from shareq.coordinator.group.context import Context, Then, when_there
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.shard import Outcome
from shareq.model.actor import ClientContext, Effect
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from shareq.model.records import CoordinatorRecord

NULLABLE_PROTOCOL_VERSION = 7
SKIP_ASSIGNMENT_VERSION = 9

_EMPTY, _PREPARING, _COMPLETING, _STABLE, _ = ClassicGroupState


def join_group(
    context: Context, request: JoinGroupRequest, client: ClientContext, then: Then[JoinGroupResponse], now_ms: int
) -> list[Effect]:
    """JoinGroup, answered when the generation begins; or at once, where it is refused or changes nothing."""
    then = _in_version(then, client.api_version)
    error = _refuse_request(context, request)
    if error:
        return list(then(JoinGroupResponse(error_code=error, member_id=request.member_id), now_ms))
    join = _Join(context, request, client, then)
    return context.schedule(request.group_id, join.compute, join.refused, when_there(then), now_ms)


def _in_version(then: Then[JoinGroupResponse], version: int) -> Then[JoinGroupResponse]:
    """Old versions know no protocol name of null."""
    if version >= NULLABLE_PROTOCOL_VERSION:
        return then

    def answer(response: JoinGroupResponse, now_ms: int) -> Iterable[Effect]:
        return then(replace(response, protocol_name=response.protocol_name or ""), now_ms)

    return answer


def _refuse_request(context: Context, request: JoinGroupRequest) -> Errors:
    config = context.image.broker_config
    if not context.partition_count():
        return Errors.COORDINATOR_NOT_AVAILABLE
    if not request.group_id:
        return Errors.INVALID_GROUP_ID
    shortest, longest = config["group.min.session.timeout.ms"], config["group.max.session.timeout.ms"]
    return Errors.NONE if shortest <= request.session_timeout_ms <= longest else Errors.INVALID_SESSION_TIMEOUT


class _Join:
    """One request on its way."""

    def __init__(
        self, context: Context, request: JoinGroupRequest, client: ClientContext, then: Then[JoinGroupResponse]
    ) -> None:
        self.context, self.request, self.client, self.then = context, request, client, then

    def refused(self, error: Errors) -> JoinGroupResponse:
        return JoinGroupResponse(error_code=error, member_id=self.request.member_id)

    def compute(self, shard: GroupShard, now_ms: int) -> Outcome[JoinGroupResponse | None]:
        """None: the answer waits with the member.

        A refused request leaves no group behind, unlike in Kafka, which keeps an empty one.
        """
        request = self.request
        group = shard.find(ClassicGroup, request.group_id)
        making = group is None
        before: list[CoordinatorRecord] = []
        if group is None:
            former = shard.groups.get(request.group_id)
            if former and (former.TYPE is not GroupType.CONSUMER or former.refuse_delete()):
                return Outcome(self.refused(Errors.INCONSISTENT_GROUP_PROTOCOL))
            if reserved_for_others(request.group_id, GroupType.CLASSIC, self.context.image):
                return Outcome(self.refused(Errors.INCONSISTENT_GROUP_PROTOCOL))
            before = list(former.tombstones()) if former else []
            group = ClassicGroup(request.group_id, now_ms)
        draft = Draft(self.context, shard, group, now_ms)
        if not self._has_room(group):
            return self._turned_away(draft)
        error = self._refuse(group, making)
        if error:
            return Outcome(self.refused(error))
        response = self._known(draft) if request.member_id else self._unknown(draft)
        if making:
            draft.records = [*before, group.record()]
        return draft.outcome(response)

    def _refuse(self, group: ClassicGroup, making: bool) -> Errors:
        request, member_id = self.request, self.request.member_id
        if making and member_id:
            return Errors.UNKNOWN_MEMBER_ID
        error = group.refuse_protocols(request.protocol_type, request.protocols)
        coming_back = member_id in group.pending and request.group_instance_id is None
        if error or not member_id or coming_back:
            return error
        return group.refuse_member(member_id, request.group_instance_id)

    def _has_room(self, group: ClassicGroup) -> bool:
        """Members that are in stay in; while members join, the first ones to come are in."""
        most = self.context.image.broker_config["group.max.size"]
        member = group.members.get(self.request.member_id)
        if group.state is _EMPTY:
            return True
        if group.state is _PREPARING:
            waiting = sum(1 for other in group.members.values() if other.awaiting_join)
            return bool(member and member.awaiting_join) or waiting < most
        return bool(member) or len(group.members) < most

    def _turned_away(self, draft: Draft) -> Outcome[JoinGroupResponse | None]:
        """A member of a group that has become too large comes too late: it is one no more."""
        response = JoinGroupResponse(error_code=Errors.GROUP_MAX_SIZE_REACHED)
        if self.request.member_id not in draft.group.members:
            return Outcome(response)
        draft.remove(self.request.member_id, "no room")
        draft.member_gone()
        return draft.outcome(response)

    # ---- somebody new ------------------------------------------------------------------------------------------------

    def _unknown(self, draft: Draft) -> JoinGroupResponse | None:
        """A static member takes its place at once; anybody else is given an id to come back with, so that a client
        that goes away meanwhile leaves no member behind."""
        request = self.request
        name = request.group_instance_id or self.client.client_id
        member_id = f"{name}-{uuid.UUID(int=self.context.rng.getrandbits(128), version=4)}"
        if request.group_instance_id is None:
            draft.watch_pending(member_id, request.session_timeout_ms)
            return JoinGroupResponse(error_code=Errors.MEMBER_ID_REQUIRED, member_id=member_id)
        former = draft.group.static_member(request.group_instance_id)
        return self._replace(draft, former, member_id) if former else self._add(draft, member_id)

    def _add(self, draft: Draft, member_id: str) -> JoinGroupResponse | None:
        draft.add(self._member(member_id)._replace(is_new=True), self.request.protocol_type)
        draft.rebalance()
        return None

    def _member(self, member_id: str) -> Member:
        request, client = self.request, self.client
        return Member(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            awaiting_join=self.then,
        )

    def _replace(self, draft: Draft, former: Member, member_id: str) -> JoinGroupResponse | None:
        """A static member is back. In a stable group it gets its old assignment, and nobody else notices."""
        group, leader_id = draft.group, draft.group.leader_id
        member = self._member(member_id)._replace(
            client_id=former.client_id, client_host=former.client_host, assignment=former.assignment
        )
        draft.replace(former, member)
        if group.state is not _STABLE or group.select_protocol() != group.protocol_name:
            draft.rebalance()
            return None
        group.members[member_id] = member._replace(awaiting_join=None)
        draft.records = [group.record()]
        if self.client.api_version >= SKIP_ASSIGNMENT_VERSION:
            return join_response(group, member_id, skip_assignment=group.leader_id == member_id)
        # Who cannot be told to skip the assignment must not take itself for the leader.
        return replace(join_response(group, member_id), leader=leader_id or "", members=())

    # ---- a member ----------------------------------------------------------------------------------------------------

    def _known(self, draft: Draft) -> JoinGroupResponse | None:
        """A member that only missed its answer gets it again; news, and a leader in any case, begin a rebalance."""
        request, group = self.request, draft.group
        member = group.members.get(request.member_id)
        if member is None:
            return self._add(draft, request.member_id)
        changed = member.protocols != request.protocols
        leading = group.state is _STABLE and group.leader_id == member.member_id
        if group.state is not _PREPARING and not changed and not leading:
            return join_response(group, member.member_id)
        draft.update(
            member._replace(
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                session_timeout_ms=request.session_timeout_ms,
                protocols=request.protocols,
                awaiting_join=self.then,
            )
        )
        draft.rebalance()
        return None
