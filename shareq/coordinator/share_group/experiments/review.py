"""The review of an assignment: reads the lags of a group, and raises the group epoch if the targets should change.

The next heartbeat of a member then computes new targets, as after every bump. A group is reviewed every
`shareq.assignor.lag.interval.ms` while its assignor weighs partitions, and after a change of its assignor or a load.
"""

from __future__ import annotations

from collections.abc import Mapping

from shareq.coordinator.group.assignment import Assignment
from shareq.coordinator.group.context import Context
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.turn import Append, Retry
from shareq.coordinator.share_group.describe_offsets import UNKNOWN, describe_group
from shareq.coordinator.share_group.experiments.assignors import assignor_name, assignor_of
from shareq.coordinator.share_group.experiments.partition_weights import PartitionWeights
from shareq.coordinator.share_group.records import Metadata, encode
from shareq.coordinator.share_group.state import ShareGroup
from shareq.coordinator.share_group.target import assignor_input
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped
from shareq.model.ids import TopicIdPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest
from shareq.model.workflow import Workflow

Requested = DescribeShareGroupOffsetsRequest.Group


def follow(context: Context, group_id: str) -> None:
    """After a heartbeat: begin to review the group if its assignor weighs partitions, at once for the first time."""
    if _interval_ms(group_id, context.image) is not None and (due := _due(group_id)) not in context.deadlines:
        context.deadlines.restart(due, context.now_ms)


def loaded(context: Context, group: ShareGroup) -> None:
    """After a load: the weights are not recorded, and the assignor may have changed meanwhile."""
    context.own(PartitionWeights).forget(group.group_id)
    if context.image.group_config(group.group_id).experiments is not None:
        context.deadlines.restart(_due(group.group_id), context.now_ms)


def configured(context: Context, group: ShareGroup, before: ClusterImage) -> None:
    """After a change of configurations: review the group if its assignor or the interval is another one."""
    group_id, image = group.group_id, context.image
    enabled = image.group_config(group_id).experiments is not None
    if enabled and _settings(group_id, image) != _settings(group_id, before):
        context.deadlines.restart(_due(group_id), context.now_ms)


def review(context: Context, due: DeadlineKey) -> Workflow[None]:
    """Read the lags if they matter, bump if the targets should change, and come due again if the lags matter."""
    group_id = due.group_id

    def end(error: Errors) -> None:
        del error
        context.deadlines.forget(due)
        context.own(PartitionWeights).forget(group_id)

    if _interval_ms(group_id, context.image) is not None:
        yield from _read_lags(context, group_id)
    shard = yield context.background_turn(group_id, end)
    yield from _bump(context, shard, group_id)
    group = shard.find(ShareGroup, group_id)
    interval_ms = _interval_ms(group_id, context.image)
    if group is None or not group.members or interval_ms is None:
        end(Errors.NONE)
    else:
        context.deadlines.restart(due, context.now_ms + interval_ms)


def _read_lags(context: Context, group_id: str) -> Workflow[None]:
    """Read the lags as DescribeShareGroupOffsets does: the persister has the starts, the leaders have the ends."""
    described = yield from describe_group(context, Requested(group_id=group_id, topics=None))
    if described.error_code:
        return
    lags = {
        TopicIdPartition(topic.topic_id, partition.partition_index): partition.lag
        for topic in described.topics
        for partition in topic.partitions
    }
    context.own(PartitionWeights).learn(group_id, {key: None if lag == UNKNOWN else lag for key, lag in lags.items()})


def _bump(context: Context, shard: GroupShard, group_id: str) -> Workflow[None]:
    """Raise the group epoch if there is a reason. A failed append is repeated, if there still is one."""
    while True:
        group = shard.find(ShareGroup, group_id)
        reason = _reason(context, group) if group else ""
        if group is None or not reason:
            return
        epoch = group.group_epoch + 1
        if not (yield Append([encode(group_id, Metadata(epoch, group.metadata_hash))])):
            context.trace(GroupEpochBumped(group_id, epoch, reason))
            return
        shard = yield Retry()


def _reason(context: Context, group: ShareGroup) -> str:
    """The reason for new targets; empty if there is none, or if a heartbeat will compute new targets anyway."""
    image = context.image
    if not group.members or group.assignment_epoch < group.group_epoch or group.assignment_pending(image):
        return ""
    assignor = assignor_of(group.group_id, image)
    given = assignor_input(group, group.subscriptions, image, context.own(PartitionWeights).of(group.group_id))
    if assignor.is_even and assignor.is_even(given):
        return ""
    if _partitions(assignor.assign(given)) == _partitions(group.targets):
        return ""
    return "pieces uneven" if assignor.weighs else "assignor changed"


def _partitions(targets: Mapping[str, Assignment]) -> Mapping[str, Assignment]:
    """Targets without topics that have no partition: "simple" keeps such topics."""
    return {member: {topic: parts for topic, parts in target.items() if parts} for member, target in targets.items()}


def _due(group_id: str) -> DeadlineKey:
    return DeadlineKey(DeadlineKind.SHARE_REVIEW, group_id)


def _interval_ms(group_id: str, image: ClusterImage) -> int | None:
    """The time between two reviews; None if the group's assignor does not weigh partitions."""
    experiments = image.group_config(group_id).experiments
    weighs = experiments is not None and assignor_of(group_id, image).weighs
    return experiments.assignor_lag_interval_ms if experiments and weighs else None


def _settings(group_id: str, image: ClusterImage) -> tuple[str, int | None]:
    return assignor_name(group_id, image), _interval_ms(group_id, image)
