"""JoinGroup: a client becomes a member, or a member requests the next generation.

Responses wait for the end of the join phase, at most the longest rebalance timeout of all members.
Source: Kafka's GroupMetadataManager, classicGroupJoinToClassicGroup.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from shareq.coordinator.classic_group.state import ClassicGroup, ClassicGroupMember, ClassicGroupState
from shareq.coordinator.classic_group.transition import Transition, join_response
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.group import Group, GroupType
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Promise, Workflow

KNOWN_MEMBER_VERSION = 4
"""From this version on a client that is no static member joins in two steps: the first one gets its member id."""

SKIP_ASSIGNMENT_VERSION = 9

_EMPTY, _PREPARING, _COMPLETING, _STABLE, _ = ClassicGroupState


def join_group(context: Context, request: JoinGroupRequest, client: ClientContext) -> Workflow[JoinGroupResponse]:
    """JoinGroup, answered when the generation begins, or at once if the request is refused or changes nothing."""
    join = _Join(context, request, client)
    error = _refuse_request(context, request)
    return join.refused(error) if error else (yield from join.response())


def _refuse_request(context: Context, request: JoinGroupRequest) -> Errors:
    config = context.image.broker_config
    if not context.partition_count():
        return Errors.COORDINATOR_NOT_AVAILABLE
    if not request.group_id:
        return Errors.INVALID_GROUP_ID
    shortest, longest = config["group.min.session.timeout.ms"], config["group.max.session.timeout.ms"]
    return Errors.NONE if shortest <= request.session_timeout_ms <= longest else Errors.INVALID_SESSION_TIMEOUT


class _Join:
    """One JoinGroup request. `joined` resolves to its response if that waits for the end of the join phase."""

    def __init__(self, context: Context, request: JoinGroupRequest, client: ClientContext) -> None:
        self.context, self.request, self.client = context, request, client
        self.joined: Promise[JoinGroupResponse] = Promise()

    def refused(self, error: Errors) -> JoinGroupResponse:
        return JoinGroupResponse(error_code=error, member_id=self.request.member_id)

    def response(self) -> Workflow[JoinGroupResponse]:
        """Run the request. A refused request leaves no group behind; Kafka keeps an empty one."""
        request = self.request
        shard = yield self.context.turn(request.group_id, self.refused)
        group = shard.find(ClassicGroup, request.group_id)
        creating = group is None
        before: list[CoordinatorRecord] = []
        if group is None:
            former = shard.groups.get(request.group_id)
            if self._is_id_taken(former):
                return self.refused(Errors.INCONSISTENT_GROUP_PROTOCOL)
            before = list(former.tombstones()) if former else []
            group = ClassicGroup(request.group_id, self.context.day_ms)
        transition = Transition(self.context, shard, group)
        if not self._has_room(group):
            return (yield from self._refuse_full(transition))
        error = self._refuse(group, creating)
        if error:
            return self.refused(error)
        response = self._join_with_id(transition) if request.member_id else self._join_without_id(transition)
        if creating:
            transition.records = [*before, group.record()]
        error = yield from transition.append()
        if error:
            return self.refused(error)
        return response or (yield self.joined)

    def _is_id_taken(self, former: Group | None) -> bool:
        """True if the id belongs to a group of another type that a classic group cannot replace, or is reserved for
        another type. An empty consumer group is replaced."""
        if former and (former.TYPE is not GroupType.CONSUMER or former.refuse_delete()):
            return True
        return reserved_for_others(self.request.group_id, GroupType.CLASSIC, self.context.image)

    def _refuse(self, group: ClassicGroup, creating: bool) -> Errors:
        request, member_id = self.request, self.request.member_id
        if creating and member_id:
            return Errors.UNKNOWN_MEMBER_ID
        error = group.refuse_protocols(request.protocol_type, request.protocols)
        is_pending = member_id in group.pending and request.group_instance_id is None
        if error or not member_id or is_pending:
            return error
        return group.refuse_member(member_id, request.group_instance_id)

    def _has_room(self, group: ClassicGroup) -> bool:
        """True if the group has room for the sender. During the join phase only members that have joined count."""
        most = self.context.image.broker_config["group.max.size"]
        member = group.members.get(self.request.member_id)
        if group.state is _EMPTY:
            return True
        if group.state is _PREPARING:
            waiting = sum(1 for other in group.members.values() if other.awaiting_join)
            return bool(member and member.awaiting_join) or waiting < most
        return bool(member) or len(group.members) < most

    def _refuse_full(self, transition: Transition) -> Workflow[JoinGroupResponse]:
        """GROUP_MAX_SIZE_REACHED. If the sender was a member of a group that is now too large, it is removed."""
        if self.request.member_id in transition.group.members:
            transition.remove(self.request.member_id, "no room")
            transition.rebalance_remaining()
            error = yield from transition.append()
            if error:
                return self.refused(error)
        return JoinGroupResponse(error_code=Errors.GROUP_MAX_SIZE_REACHED)

    # ---- a new member ------------------------------------------------------------------------------------------------

    def _join_without_id(self, transition: Transition) -> JoinGroupResponse | None:
        """Add or replace a static member at once, and add that of an old client. Any other client gets
        MEMBER_ID_REQUIRED with an id for its next request, so that a client that disconnects in between leaves no
        member behind."""
        request = self.request
        name = request.group_instance_id or self.client.client_id
        member_id = f"{name}-{uuid.UUID(int=self.context.rng.getrandbits(128), version=4)}"
        if request.group_instance_id is None:
            if self.client.api_version < KNOWN_MEMBER_VERSION:
                return self._add(transition, member_id)
            transition.start_pending_deadline(member_id, request.session_timeout_ms)
            return JoinGroupResponse(error_code=Errors.MEMBER_ID_REQUIRED, member_id=member_id)
        former = transition.group.static_member(request.group_instance_id)
        return self._replace(transition, former, member_id) if former else self._add(transition, member_id)

    def _add(self, transition: Transition, member_id: str) -> JoinGroupResponse | None:
        transition.add(self._member(member_id)._replace(is_new=True), self.request.protocol_type)
        transition.rebalance()
        return None

    def _member(self, member_id: str) -> ClassicGroupMember:
        request, client = self.request, self.client
        return ClassicGroupMember(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            awaiting_join=self.joined,
        )

    def _replace(self, transition: Transition, former: ClassicGroupMember, member_id: str) -> JoinGroupResponse | None:
        """Replace a static member that rejoins. In a stable group it gets its old assignment without a rebalance."""
        group, leader_id = transition.group, transition.group.leader_id
        member = self._member(member_id)._replace(
            client_id=former.client_id, client_host=former.client_host, assignment=former.assignment
        )
        transition.replace(former, member)
        if group.state is not _STABLE or group.select_protocol() != group.protocol_name:
            transition.rebalance()
            return None
        group.members[member_id] = member._replace(awaiting_join=None)
        transition.records = [group.record()]
        if self.client.api_version >= SKIP_ASSIGNMENT_VERSION:
            return join_response(group, member_id, skip_assignment=group.leader_id == member_id)
        # A client without support for skip_assignment must not become the leader.
        return replace(join_response(group, member_id), leader=leader_id or "", members=())

    # ---- a member ----------------------------------------------------------------------------------------------------

    def _join_with_id(self, transition: Transition) -> JoinGroupResponse | None:
        """A new member, a changed list of protocols, or a stable group's leader begins a rebalance. Any other member
        gets the present generation again, as it may have missed the response."""
        request, group = self.request, transition.group
        member = group.members.get(request.member_id)
        if member is None:
            return self._add(transition, request.member_id)
        changed = member.protocols != request.protocols
        leading = group.state is _STABLE and group.leader_id == member.member_id
        if group.state is not _PREPARING and not changed and not leading:
            return join_response(group, member.member_id)
        transition.update(
            member._replace(
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                session_timeout_ms=request.session_timeout_ms,
                protocols=request.protocols,
                awaiting_join=self.joined,
            )
        )
        transition.rebalance()
        return None
