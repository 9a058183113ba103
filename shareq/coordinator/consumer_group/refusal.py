"""The checks of consumer group heartbeats, in Kafka's order. Each returns a Refusal (error, message) or None."""

from __future__ import annotations

from shareq.coordinator.consumer_group.assignors import ASSIGNORS
from shareq.coordinator.consumer_group.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerGroupMember, MemberState
from shareq.coordinator.consumer_group.reconcile import Owned
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.expressions import ExpressionError, compile_expression
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.group.reserved import reserved_for_others
from shareq.coordinator.group.shard import GroupShard
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest

MEMBER_MAKES_ITS_ID_VERSION = 1

LONGEST_EXPRESSION_BYTES = 32_767
"""The length of a string in the key of a record is an int16."""


# ---- without the group -----------------------------------------------------------------------------------------------


def refuse_request(request: ConsumerGroupHeartbeatRequest, api_version: int) -> Refusal | None:
    """The checks that need no group."""
    problem = _problem(request, api_version)
    if problem:
        return Refusal(Errors.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
        return Refusal(Errors.UNSUPPORTED_ASSIGNOR, f"{message}{', '.join(ASSIGNORS)}.")
    return None


def _problem(request: ConsumerGroupHeartbeatRequest, api_version: int) -> str | None:
    epoch = request.member_epoch
    named = api_version >= MEMBER_MAKES_ITS_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH
    member_id = request.member_id if named else None
    ids = {"MemberId": member_id, "GroupId": request.group_id, "InstanceId": request.instance_id}
    for name, value in (*ids.items(), ("RackId", request.rack_id)):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    if epoch == 0:
        return _joining_problem(request)
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < STATIC_LEAVE_EPOCH else None


def _joining_problem(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions != ():
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


# ---- with the group --------------------------------------------------------------------------------------------------


def refuse_group(shard: GroupShard, group_id: str, *, joining: bool) -> Refusal | None:
    """GROUP_ID_NOT_FOUND if the group is absent or of another type. A join may create the group, or replace an empty
    classic group."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup) or (joining and (group is None or is_convertible(shard, group_id))):
        return None
    why = "not found" if group is None else "is not a consumer group"
    return Refusal(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")


def is_convertible(shard: GroupShard, group_id: str) -> bool:
    """True if the group is an empty classic group. Classic groups with members are not converted, as with Kafka's
    migration policy "disabled"."""
    group = shard.groups.get(group_id)
    return group is not None and group.TYPE is GroupType.CLASSIC and not group.refuse_delete()


def refuse_reserved(shard: GroupShard, group_id: str, image: ClusterImage) -> Refusal | None:
    """INCONSISTENT_GROUP_PROTOCOL if the group would be created under an id that is reserved for share groups."""
    there = isinstance(shard.groups.get(group_id), ConsumerGroup)
    if there or not reserved_for_others(group_id, GroupType.CONSUMER, image):
        return None
    return Refusal(Errors.INCONSISTENT_GROUP_PROTOCOL, f"Group {group_id} is reserved for share groups.")


def refuse_full(group: ConsumerGroup, member_id: str, image: ClusterImage) -> Refusal | None:
    most = image.broker_config["group.consumer.max.size"]
    if len(group.members) < most or member_id in group.members:
        return None
    message = f"The consumer group has reached its maximum capacity of {most} members."
    return Refusal(Errors.GROUP_MAX_SIZE_REACHED, message)


def refuse_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Check the member id, the instance id and the member epoch of a heartbeat."""
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        refusal = _refuse_static(group.static_member(request.instance_id), request)
        if refusal or request.member_epoch == 0:
            return refusal
    elif member is None:
        return None if request.member_epoch == 0 else unknown_member(group, request.member_id)
    assert member is not None, "unknown members were refused before"
    return refuse_epoch(member, request)


def refuse_leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Check the member id and the instance id of a leave; the epoch is not checked."""
    if request.instance_id is not None:
        return _refuse_static(group.static_member(request.instance_id), request)
    return None if request.member_id in group.members else unknown_member(group, request.member_id)


def _refuse_static(holder: ConsumerGroupMember | None, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """`holder`: the present owner of the instance id. A new member gets the id after the owner has left with epoch
    -2."""
    member_id, instance_id = request.member_id, request.instance_id
    if request.member_epoch == 0:
        if holder is None or holder.member_epoch == STATIC_LEAVE_EPOCH:
            return None
        message = f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance"
        return Refusal(Errors.UNRELEASED_INSTANCE_ID, f"{message} id is owned by {holder.member_id} member.")
    if holder is None:
        return Refusal(Errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        return Refusal(Errors.FENCED_INSTANCE_ID, message)
    return None


def refuse_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """FENCED_MEMBER_EPOCH unless the epoch is the member's. The previous one is accepted if the reported partitions are
    a subset of the assigned ones: the response with the new epoch was lost."""
    epoch, owned = request.member_epoch, owned_partitions(request)
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        message = "The consumer group member is in a unknown state. The member must abandon all its partitions and"
        return Refusal(Errors.FENCED_MEMBER_EPOCH, f"{message} rejoin.")
    if epoch in (0, member.member_epoch):
        return None
    older = epoch < member.member_epoch
    if older and epoch == member.previous_member_epoch and owned is not None and _has(member, owned):
        return None
    relation = "smaller" if older else "greater"
    return Refusal(
        Errors.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _has(member: ConsumerGroupMember, owned: Owned) -> bool:
    return all(member.assigned.get(topic_id, {}).keys() >= set(partitions) for topic_id, partitions in owned.items())


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    """The partitions that the member reports to own; None if it does not report them."""
    reported = request.topic_partitions
    return None if reported is None else {topic.topic_id: topic.partitions for topic in reported}


def unknown_member(group: ConsumerGroup, member_id: str) -> Refusal:
    return Refusal(Errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def refuse_regex(group: ConsumerGroup, regex: str | None) -> Refusal | None:
    """INVALID_REGULAR_EXPRESSION if an expression that no member has subscribed to yet cannot be compiled, or is too
    long for the key of its record."""
    if not regex or regex in group.regex_counts:
        return None
    if len(regex.encode()) > LONGEST_EXPRESSION_BYTES:
        message = f"SubscribedTopicRegex is longer than {LONGEST_EXPRESSION_BYTES} bytes."
        return Refusal(Errors.INVALID_REGULAR_EXPRESSION, message)
    try:
        compile_expression(regex)
    except ExpressionError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        return Refusal(Errors.INVALID_REGULAR_EXPRESSION, message)
    return None
