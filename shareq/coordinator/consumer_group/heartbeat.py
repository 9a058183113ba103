"""ConsumerGroupHeartbeat of joining and present members: subscription, group epoch, target assignment, reconciliation.

The steps are Kafka's, in its order. They do not change the group; the changes are records to append.
Source: KIP-848, "Consumer group heartbeat"; Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shareq.coordinator.consumer_group import refusal as refuse
from shareq.coordinator.consumer_group.leave import MEMBER_RECORDS, restart_deadlines
from shareq.coordinator.consumer_group.member import ConsumerGroupMember, Held
from shareq.coordinator.consumer_group.reconcile import Target, reconcile
from shareq.coordinator.consumer_group.records import (
    CurrentMemberAssignment,
    MemberMetadata,
    Metadata,
    RecordType,
    TargetAssignmentMember,
    Value,
    encode,
    tombstone,
)
from shareq.coordinator.consumer_group.refreshing import needs_refresh, refresh_expressions
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.consumer_group.target import TargetAssignment, topic_ids_of
from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, Assignment, by_name
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.group import GroupType
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.group.shard import GroupShard
from shareq.model.actor import ClientContext
from shareq.model.configs import INT_MAX
from shareq.model.events import Event, GroupEpochBumped, MemberJoined, MemberReconciled, TargetAssignmentComputed
from shareq.model.ids import random_id
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from shareq.model.messages.share_group import MemberAssignment
from shareq.model.records import CoordinatorRecord

Response = ConsumerGroupHeartbeatResponse


def heartbeat(
    context: Context, shard: GroupShard, request: ConsumerGroupHeartbeatRequest, client: ClientContext
) -> Heartbeat | Refusal:
    """The result of a heartbeat that is not a leave, or its refusal."""
    refusal = refuse.refuse_group(shard, request.group_id, joining=request.member_epoch == 0) or refuse.refuse_reserved(
        shard, request.group_id, context.image
    )
    if refusal:
        return refusal
    group = shard.find(ConsumerGroup, request.group_id) or ConsumerGroup(request.group_id)
    return (
        refuse.refuse_full(group, request.member_id, context.image)
        or refuse.refuse_member(group, request)
        or refuse.refuse_regex(group, request.subscribed_topic_regex)
        or Heartbeat(context, shard, request, client)
    )


class Heartbeat:
    """The result of one heartbeat: `records` to append, `response` to send after that; call `committed` in between.

    `before` and `member`: the sender before and after the heartbeat. `replaced`: the static member that the sender
    replaces. `group_epoch`: the epoch after the heartbeat. `target`: the target assignment if this heartbeat computed
    one. `reason`: why the group epoch is bumped; empty if it is not.
    """

    __slots__ = (
        "before",
        "client",
        "context",
        "group",
        "group_epoch",
        "image",
        "member",
        "now_ms",
        "reason",
        "records",
        "refreshed",
        "replaced",
        "request",
        "response",
        "resubscribed",
        "shard",
        "target",
    )

    def __init__(
        self,
        context: Context,
        shard: GroupShard,
        request: ConsumerGroupHeartbeatRequest,
        client: ClientContext,
    ) -> None:
        self.context, self.shard, self.request, self.now_ms = context, shard, request, context.now_ms
        self.image = context.image
        self.group = shard.find(ConsumerGroup, request.group_id) or ConsumerGroup(request.group_id)
        self.group_epoch = self.group.group_epoch
        self.records: list[CoordinatorRecord] = []
        self.replaced: ConsumerGroupMember | None = None
        self.before = self._sender()
        self.client = client
        self.member = _updated(self.before, request, client)
        self.reason = ""
        self.resubscribed = self.refreshed = False
        self.target: TargetAssignment | None = None
        assigned_before = self.before.assigned
        self._take_over()
        self._update_member()
        self._bump_epoch()
        self._assign()
        self._reconcile()
        full = _is_full(request) or request.member_epoch == 0
        changed = _partitions_of(self.member.assigned) != _partitions_of(assigned_before)
        self.response = self._response(with_assignment=full or changed)

    def _sender(self) -> ConsumerGroupMember:
        """The sender before the heartbeat. A new member has neither subscription nor assignment; one that replaces a
        static member has those of the former, with epoch 0."""
        group, request = self.group, self.request
        if request.member_epoch == 0 and request.instance_id is not None:
            self.replaced = group.static_member(request.instance_id)
            if self.replaced:
                return self.replaced._replace(member_id=request.member_id, member_epoch=0, previous_member_epoch=0)
        member_id = request.member_id or random_id(self.context.rng)
        return group.members.get(member_id) or ConsumerGroupMember(member_id)

    @property
    def is_new(self) -> bool:
        return self.before.member_id not in self.group.members

    # ---- the steps ---------------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Delete an empty classic group of this id; move the records of the replaced static member to the sender's
        id."""
        group_id, replaced = self.group.group_id, self.replaced
        if refuse.is_convertible(self.shard, group_id):
            self.records += self.shard.groups[group_id].tombstones()
        if replaced is None:
            return
        self.records += [tombstone(kind, group_id, replaced.member_id) for kind in MEMBER_RECORDS]
        self._record(MemberMetadata.of(self.before), self.before.member_id)
        target = self.group.targets.get(replaced.member_id, EMPTY_ASSIGNMENT)
        self._record(TargetAssignmentMember(target), self.before.member_id)
        self._record(CurrentMemberAssignment.of(self.before), self.before.member_id)

    def _update_member(self) -> None:
        """Record the changed member. Changed topic names bump the epoch now, a new expression when it is resolved."""
        group, before, member = self.group, self.before, self.member
        if member != before:
            self._record(MemberMetadata.of(member), member.member_id)
        if member.subscribed_topic_names != before.subscribed_topic_names:
            self.reason, self.resubscribed = "subscription changed", True
        old, new = before.subscribed_topic_regex, member.subscribed_topic_regex
        if old != new:
            self.resubscribed = True
            if old and group.regex_counts[old] == 1:
                self.records.append(tombstone(RecordType.REGULAR_EXPRESSION, group.group_id, old))
            if (new in group.expressions and new in group.regex_counts) if new else old:
                self.reason = "subscription changed"
        if self.reason and self.is_new:
            self.reason = "member joined"

    def _bump_epoch(self) -> None:
        """Raise the group epoch by one if subscriptions or the topics' metadata hash changed."""
        group = self.group
        if not self.reason and self.now_ms < group.refresh_at_ms:
            return
        self.refreshed = True
        former = group.members.get(self.replaced.member_id if self.replaced else self.before.member_id)
        names = group.subscribed_names(former, self.member)
        metadata_hash = self.context.metadata_hash.of(names, self.image)
        if not self.reason and metadata_hash != group.metadata_hash:
            self.reason = "topics changed"
        if self.reason:
            self.group_epoch += 1
            self._record(Metadata(self.group_epoch, metadata_hash))
        if group.has_partition_metadata:
            self.records.append(tombstone(RecordType.PARTITION_METADATA, group.group_id))

    def _assign(self) -> None:
        """Compute the target assignment if it is older than the group epoch and the assignment interval has passed."""
        group = self.group
        if group.assignment_epoch >= self.group_epoch:
            return
        last_ms = group.assignment_timestamp_ms
        interval_ms = self.image.group_config(group.group_id).consumer_assignment_interval_ms
        if last_ms and self.context.day_ms < last_ms + interval_ms:
            return
        self.target = TargetAssignment.compute(group, self.member, self.replaced, self.image)
        self.records += self.target.records(group, self.group_epoch, self.context.day_ms)

    def _reconcile(self) -> None:
        """Take the sender one step towards the target."""
        group, member = self.group, self.member
        epoch = self.group_epoch if self.target else group.assignment_epoch
        if member.is_reconciled_to(epoch) and not self.resubscribed:
            return
        if self.target:
            assignment = self.target.targets[member.member_id]
        else:
            former = self.replaced.member_id if self.replaced else member.member_id
            assignment = group.targets.get(former, EMPTY_ASSIGNMENT)
        target = Target(epoch, assignment, topic_ids_of(group, member, self.image))
        owned = refuse.owned_partitions(self.request)
        self.member = reconcile(member, target, owned, group.is_owned, resubscribed=self.resubscribed)
        if self.member != member:
            self._record(CurrentMemberAssignment.of(self.member), member.member_id)

    # ---- the results -------------------------------------------------------------------------------------------------

    def _record(self, value: Value, name: str = "") -> None:
        self.records.append(encode(self.group.group_id, value, name))

    def _response(self, *, with_assignment: bool) -> Response:
        assignment = None
        if with_assignment:
            held = _partitions_of(self.member.assigned).items()
            listed = (
                MemberAssignment.TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in held
            )
            assignment = MemberAssignment(topic_partitions=tuple(listed))
        return Response(
            member_id=self.member.member_id,
            member_epoch=self.member.member_epoch,
            heartbeat_interval_ms=self.image.group_config(self.group.group_id).consumer_heartbeat_interval_ms,
            assignment=assignment,
        )

    def committed(self) -> None:
        """To be called after the append: restart the deadlines, trace, and resolve expressions if that is due."""
        context, group_id = self.context, self.group.group_id
        group = self.shard.find(ConsumerGroup, group_id)
        if group and self.refreshed and context.image is self.image:
            group.refresh_at_ms = self.now_ms + INT_MAX
        restart_deadlines(context, group_id, self.before, self.member)
        context.schedule_expiry()
        if context.traced:
            context.trace(*self._events())
        if group and needs_refresh(group, context.image, context.day_ms):
            context.runtime.start(refresh_expressions(context, group_id, self.client))

    def _events(self) -> Iterator[Event]:
        group_id, before, member = self.group.group_id, self.before, self.member
        if self.is_new:
            names = tuple(sorted(self.group.names_of(member)))
            yield MemberJoined(group_id, member.member_id, member.client_id, names, GroupType.CONSUMER)
        if self.reason:
            yield GroupEpochBumped(group_id, self.group_epoch, self.reason)
        if self.target:
            targets = self.target.targets.items()
            listed = tuple((member_id, by_name(target, self.image)) for member_id, target in targets)
            yield TargetAssignmentComputed(group_id, self.group_epoch, listed)
        if self.is_new or member.member_epoch != before.member_epoch or member.assigned != before.assigned:
            assigned = by_name(_partitions_of(member.assigned), self.image)
            yield MemberReconciled(group_id, member.member_id, member.member_epoch, assigned)


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, client: ClientContext
) -> ConsumerGroupMember:
    """The member with the fields of the request. None and -1 mean unchanged."""
    fields: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "subscribed_topic_regex": request.subscribed_topic_regex,
        "server_assignor": request.server_assignor,
    }
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return member._replace(
        client_id=client.client_id,
        client_host=client.client_host,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        **{name: value for name, value in fields.items() if value is not None},
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """True for a full request, which a client sends after joining and after errors: it always gets the assignment."""
    subscribed = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return subscribed and request.rebalance_timeout_ms != -1 and request.topic_partitions is not None


def _partitions_of(held: Held) -> Assignment:
    """The partitions of a member without their assignment epochs."""
    return {topic_id: tuple(partitions) for topic_id, partitions in held.items()}
