"""ShareGroupHeartbeat: a member joins, renews its session, changes its subscription, receives its assignment.

The steps are Kafka's, in its order. A heartbeat does not change the group: it returns records, which are replayed.
Source: KIP-932, "Share group heartbeat"; Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from shareq.coordinator.group.assignment import EMPTY_ASSIGNMENT, by_name
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group.refusal import Refusal
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.share_group.experiments.partition_weights import PartitionWeights
from shareq.coordinator.share_group.initialize import (
    StartOffsets,
    initialize,
    look_again_at_ms,
    missing_partitions,
    start_offsets,
)
from shareq.coordinator.share_group.partitions import SharePartitions
from shareq.coordinator.share_group.records import CurrentMemberAssignment, MemberMetadata, Metadata, Value, encode
from shareq.coordinator.share_group.refusal import refuse_member
from shareq.coordinator.share_group.state import ShareGroup, ShareGroupMember, existing, to_topic_partitions
from shareq.coordinator.share_group.target import TargetAssignment
from shareq.model.actor import ClientContext
from shareq.model.configs import INT_MAX
from shareq.model.events import Event, GroupEpochBumped, MemberJoined, MemberReconciled, TargetAssignmentComputed
from shareq.model.messages.share_group import MemberAssignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.records import CoordinatorRecord

STABLE = 0
"""The only state of a member of a share group."""


def heartbeat(
    context: Context, shard: GroupShard, request: ShareGroupHeartbeatRequest, client: ClientContext
) -> Heartbeat | Refusal:
    """Serve a heartbeat that is not a leave."""
    return refuse_member(shard, request, context.image) or Heartbeat(context, shard, request, client)


class Heartbeat:
    """The result of one heartbeat: `response`, the `records` to append before it, and `committed`, to call after the
    append.

    `before` and `member` are the sender before and after it, `group_epoch` is the epoch after it, `target` the target
    assignment if it has computed one.
    """

    __slots__ = (
        "before",
        "context",
        "group",
        "group_epoch",
        "image",
        "member",
        "now_ms",
        "reason",
        "records",
        "refreshed",
        "request",
        "response",
        "shard",
        "starts",
        "subscribed",
        "target",
    )

    def __init__(
        self,
        context: Context,
        shard: GroupShard,
        request: ShareGroupHeartbeatRequest,
        client: ClientContext,
    ) -> None:
        self.context, self.shard, self.request, self.now_ms = context, shard, request, context.runtime.now_ms
        self.image = context.image
        self.group = shard.find(ShareGroup, request.group_id) or ShareGroup(request.group_id)
        self.group_epoch = self.group.group_epoch
        self.before = self.group.members.get(request.member_id)
        self.member = _updated(self.before or ShareGroupMember(request.member_id), request, client)
        self.subscribed: Collection[str] = self.group.subscriptions.keys()
        self.reason = ""
        self.refreshed = False
        self.target: TargetAssignment | None = None
        self.records: list[CoordinatorRecord] = []
        self.starts: StartOffsets = {}
        assigned_before = self.before.assigned if self.before else EMPTY_ASSIGNMENT
        resubscribed = self._update_member()
        self._bump_epoch()
        self._assign()
        self._reconcile()
        self._initialize(resubscribed)
        # Kafka also sends the assignment at epoch 0. A request at epoch 0 has topic names, so this condition covers it.
        has_topics = request.subscribed_topic_names is not None
        self.response = self._response(with_assignment=has_topics or self.member.assigned != assigned_before)

    # ---- the steps ---------------------------------------------------------------------------------------------------

    def _update_member(self) -> bool:
        """Record the member's rack, client and subscription. True if the subscription changed: only that bumps the
        epoch."""
        before, member = self.before, self.member
        if member is before:
            return False
        topics = tuple(sorted(member.subscribed_topic_names))
        self._record(MemberMetadata(member.rack_id, member.client_id, member.client_host, topics), member.member_id)
        if before and before.subscribed_topic_names == member.subscribed_topic_names:
            return False
        self.reason = "subscription changed" if before else "member joined"
        names = before.subscribed_topic_names if before else frozenset[str]()
        self.subscribed = self.group.subscribed_after(names, member.subscribed_topic_names)
        return True

    def _bump_epoch(self) -> None:
        """Raise the group epoch by one if members, topics or initialized partitions have changed."""
        group = self.group
        if not self.reason and group.assignment_epoch >= group.group_epoch and group.assignment_pending(self.image):
            self.reason = "share-partitions initialized"
        if not self.reason and self.now_ms < group.refresh_at_ms:
            return
        self.refreshed = True
        metadata_hash = self.context.metadata_hash.of(self.subscribed, self.image)
        if not self.reason and metadata_hash != group.metadata_hash:
            self.reason = "topics changed"
        if self.reason:
            self.group_epoch += 1
            self._record(Metadata(self.group_epoch, metadata_hash))

    def _assign(self) -> None:
        """Compute the target assignment, unless the assignment interval since the last one has not passed."""
        group = self.group
        if group.assignment_epoch >= self.group_epoch:
            return
        last_ms = group.assignment_timestamp_ms
        interval_ms = self.image.group_config(group.group_id).assignment_interval_ms
        if last_ms and self.context.day_ms < last_ms + interval_ms:
            return
        weights = self.context.own(PartitionWeights).of(group.group_id)
        self.target = TargetAssignment.compute(group, self.member, self.subscribed, self.image, weights)
        self.records += self.target.records(group, self.group_epoch, self.context.day_ms)

    def _reconcile(self) -> None:
        """Move the sender to its target; other members stay as they are."""
        member = self.member
        target_epoch = self.group_epoch if self.target else self.group.assignment_epoch
        moved = target_epoch != member.member_epoch
        if not (moved or self.reason):
            return
        targets = self.target.targets if self.target else self.group.targets
        target = targets.get(member.member_id, EMPTY_ASSIGNMENT)
        assigned = existing(target, member.subscribed_topic_names, self.image)
        if moved:
            member = member._replace(member_epoch=target_epoch, previous_member_epoch=member.member_epoch)
        elif assigned == member.assigned:
            return
        self.member = member = member._replace(assigned=assigned)
        partitions = to_topic_partitions(assigned)
        epochs = member.member_epoch, member.previous_member_epoch
        self._record(CurrentMemberAssignment(*epochs, STABLE, partitions), member.member_id)

    def _initialize(self, resubscribed: bool) -> None:
        """Begin to initialize the subscribed share-partitions that have no state yet."""
        group = self.group
        if not resubscribed and self.now_ms < group.uninitialized_at_ms:
            return
        missing = missing_partitions(group, self.subscribed, self.image, self.now_ms)
        if missing:
            known = group.share_partitions or SharePartitions()
            self._record(known.begin(missing).to_value(self.image))
            self.starts = start_offsets(missing, known)
        elif not resubscribed:
            group.uninitialized_at_ms = look_again_at_ms(group, self.image)

    # ---- the results -------------------------------------------------------------------------------------------------

    def _record(self, value: Value, member_id: str = "") -> None:
        self.records.append(encode(self.group.group_id, value, member_id))

    def _response(self, *, with_assignment: bool) -> ShareGroupHeartbeatResponse:
        answer = ShareGroupHeartbeatResponse
        assignment = None
        if with_assignment:
            listed = (
                MemberAssignment.TopicPartitions(topic_id=t, partitions=p) for t, p in self.member.assigned.items()
            )
            assignment = MemberAssignment(topic_partitions=tuple(listed))
        return answer(
            member_id=self.member.member_id,
            member_epoch=self.member.member_epoch,
            heartbeat_interval_ms=self.image.group_config(self.group.group_id).heartbeat_interval_ms,
            assignment=assignment,
        )

    def committed(self) -> None:
        """After the commit: restart the session and initialize new share-partitions."""
        context, group_id = self.context, self.group.group_id
        group = self.shard.find(ShareGroup, group_id)
        if group and self.refreshed and context.image is self.image:
            group.refresh_at_ms = self.now_ms + INT_MAX
        timeout_ms = context.image.group_config(group_id).session_timeout_ms
        due = DeadlineKey(DeadlineKind.SHARE_SESSION, group_id, self.member.member_id)
        context.deadlines.restart(due, context.runtime.now_ms + timeout_ms)
        if context.traced:
            context.trace(*self._events())
        if self.starts:
            context.runtime.start(initialize(context, group_id, self.group_epoch, self.starts))

    def _events(self) -> Iterator[Event]:
        group_id, member = self.group.group_id, self.member
        if self.before is None:
            names = tuple(sorted(member.subscribed_topic_names))
            yield MemberJoined(group_id, member.member_id, member.client_id, names)
        if self.reason:
            yield GroupEpochBumped(group_id, self.group_epoch, self.reason)
        if self.target:
            targets = self.target.targets.items()
            listed = tuple((member_id, by_name(target, self.image)) for member_id, target in targets)
            yield TargetAssignmentComputed(group_id, self.group_epoch, listed)
        if self.before is None or member.member_epoch != self.before.member_epoch:
            assigned = by_name(member.assigned, self.image)
            yield MemberReconciled(group_id, member.member_id, member.member_epoch, assigned)


def _updated(member: ShareGroupMember, request: ShareGroupHeartbeatRequest, client: ClientContext) -> ShareGroupMember:
    """The member with the values of the request; the same object if none differs. None: unchanged."""
    names = member.subscribed_topic_names
    if request.subscribed_topic_names is not None:
        names = frozenset(request.subscribed_topic_names)
    rack_id = member.rack_id if request.rack_id is None else request.rack_id
    fields = rack_id, client.client_id, client.client_host, names
    return member if fields == member[1:5] else ShareGroupMember(member.member_id, *fields, *member[5:])
