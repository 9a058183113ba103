"""Initializing share-partitions in two phases: recorded as initializing, initialized at the persister, then recorded as
initialized, or removed again so that a later heartbeat retries. Source: KIP-932, "Initializing share-group state".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shareq.coordinator.group.context import Context
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime.turn import Append, Retry
from shareq.coordinator.share_group.attempts import InitializationAttempts
from shareq.coordinator.share_group.partitions import PartitionSets, SharePartitions, difference
from shareq.coordinator.share_group.records import encode
from shareq.coordinator.share_group.state import NEVER_MS, ShareGroup
from shareq.model.configs import BrokerConfig
from shareq.model.events import SharePartitionsInitialized
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.share_state import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Reply, SendToPersister, Workflow

BY_RESET_STRATEGY = -1
"""Start offset of a share-partition whose leader applies `share.auto.offset.reset`."""

StartOffsets = Mapping[TopicId, Mapping[int, int]]


def retry_interval_ms(config: BrokerConfig) -> int:
    """The age at which an initialization counts as lost."""
    retry_ms: int = config["group.share.initialize.retry.interval.ms"]
    commit_ms: int = config["offsets.commit.timeout.ms"]
    return max(retry_ms, commit_ms)


def missing_partitions(group: ShareGroup, names: Iterable[str], image: ClusterImage, now_ms: int) -> PartitionSets:
    """The partitions of the subscribed topics that are neither initialized nor recently begun."""
    known = group.share_partitions or SharePartitions()
    topics = [topic for topic in map(image.topics.get, sorted(names)) if topic]
    wanted = {topic.topic_id: frozenset(range(len(topic.partitions))) for topic in topics}
    missing = difference(wanted, known.initialized)
    begun_lately = now_ms - group.recorded_at_ms < retry_interval_ms(image.broker_config)
    return difference(missing, known.initializing) if begun_lately else missing


def look_again_at_ms(group: ShareGroup, image: ClusterImage) -> int:
    """The time at which begun initializations count as lost, so that partitions are missing again."""
    if group.share_partitions and group.share_partitions.initializing:
        return group.recorded_at_ms + retry_interval_ms(image.broker_config)
    return NEVER_MS


def start_offsets(missing: PartitionSets, known: SharePartitions) -> StartOffsets:
    """The start offsets of new share-partitions: 0 in a topic that the group already has, so that no record of an added
    partition is skipped; else the reset strategy. As in Kafka 4.4, a topic that is still initializing counts, too."""
    return {
        topic: dict.fromkeys(
            sorted(parts), 0 if topic in known.initialized or topic in known.initializing else BY_RESET_STRATEGY
        )
        for topic, parts in missing.items()
    }


def initialize_request(group_id: str, state_epoch: int, starts: StartOffsets) -> InitializeShareGroupStateRequest:
    """The request to the persister."""
    request = InitializeShareGroupStateRequest
    return request(
        group_id=group_id,
        topics=tuple(
            request.Topic(
                topic_id=topic,
                partitions=tuple(
                    request.Partition(partition=index, state_epoch=state_epoch, start_offset=start)
                    for index, start in partitions.items()
                ),
            )
            for topic, partitions in starts.items()
        ),
    )


def initialize(context: Context, group_id: str, state_epoch: int, starts: StartOffsets) -> Workflow[None]:
    """Send the request to the persister, then record the result, unless another attempt has begun meanwhile: partitions
    are initialized when the newest one succeeds."""
    partitions = {topic: frozenset(indexes) for topic, indexes in starts.items()}
    context.own(InitializationAttempts).begin(group_id, partitions, state_epoch)
    reply = yield SendToPersister(initialize_request(group_id, state_epoch, starts))
    newest = context.own(InitializationAttempts).end(group_id, partitions, state_epoch)
    if newest:
        yield from (finish if all_initialized(reply) else abandon)(context, group_id, newest)


def all_initialized(reply: Reply) -> bool:
    """True if each partition of the request is initialized."""
    if not isinstance(reply.response, InitializeShareGroupStateResponse):
        return False
    return not any(partition.error_code for topic in reply.response.results for partition in topic.partitions)


def finish(context: Context, group_id: str, done: PartitionSets) -> Workflow[None]:
    """Record the partitions as initialized. If the append fails, abandon them as Kafka does: the next heartbeat
    retries."""
    shard = yield context.background_turn(group_id)
    begun = _still_begun(shard, group_id, done, context.image)
    error = yield Append(_change(context, shard, group_id, lambda known: known.finish(begun)))
    if error:
        shard = yield Retry()
        yield from _abandon(context, shard, group_id, done)
        return
    names = context.image.topics_by_id
    context.trace_all(
        SharePartitionsInitialized(group_id, names[topic].name, tuple(sorted(parts)))
        for topic, parts in begun.items()
        if topic in names
    )


def abandon(context: Context, group_id: str, failed: PartitionSets) -> Workflow[None]:
    """Remove partitions that could not be initialized from the initializing ones: the next heartbeat retries."""
    shard = yield context.background_turn(group_id)
    yield from _abandon(context, shard, group_id, failed)


def _abandon(context: Context, shard: GroupShard, group_id: str, failed: PartitionSets) -> Workflow[None]:
    while (yield Append(_change(context, shard, group_id, lambda known: known.abandon(failed)))):
        shard = yield Retry()


def _still_begun(shard: GroupShard, group_id: str, done: PartitionSets, image: ClusterImage) -> PartitionSets:
    """The partitions of `done` whose topic and group were not deleted in the meantime.

    Kafka would apply a late answer to a new topic or group of the same name.
    """
    group = shard.find(ShareGroup, group_id)
    begun = group.share_partitions.initializing if group and group.share_partitions else {}
    wanted = ((topic, parts & begun.get(topic, frozenset())) for topic, parts in done.items())
    return {topic: parts for topic, parts in wanted if parts and topic in image.topics_by_id}


def _change(
    context: Context, shard: GroupShard, group_id: str, change: Callable[[SharePartitions], SharePartitions]
) -> list[CoordinatorRecord]:
    """The record of a change to a group's share-partitions; none if nothing changes."""
    group = shard.find(ShareGroup, group_id)
    if group is None or group.share_partitions is None:
        return []
    changed = change(group.share_partitions)
    return [] if changed == group.share_partitions else [encode(group_id, changed.to_value(context.image))]
