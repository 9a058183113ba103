"""The initialization state of a group's share-partitions: initializing, initialized, deleting.

An immutable value with the transitions of the two-phase protocols; each transition is one record with the whole state.
Source: KIP-932, ShareGroupStatePartitionMetadata; Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from shareq.coordinator.share_group import records
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage

PartitionSets = Mapping[TopicId, frozenset[int]]
"""Partitions by topic; no topic with none."""

UNKNOWN_TOPIC_NAME = "<UNKNOWN>"
_NONE: frozenset[int] = frozenset()
_NO_SETS: PartitionSets = MappingProxyType({})


def union(some: PartitionSets, others: PartitionSets) -> PartitionSets:
    """The partitions in either."""
    return {**some, **{topic: some.get(topic, _NONE) | parts for topic, parts in others.items()}}


def difference(some: PartitionSets, others: PartitionSets) -> PartitionSets:
    """The partitions in `some` and not in `others`."""
    left = ((topic, parts - others.get(topic, _NONE)) for topic, parts in some.items())
    return {topic: parts for topic, parts in left if parts}


class SharePartitions(NamedTuple):
    """A partition whose offset is being altered is both initializing and initialized."""

    initializing: PartitionSets = _NO_SETS
    initialized: PartitionSets = _NO_SETS
    deleting: frozenset[TopicId] = frozenset()

    def known(self) -> PartitionSets:
        """All partitions that may have state at the share coordinator, except those of deleting topics."""
        return union(self.initialized, self.initializing)

    def topics(self) -> set[TopicId]:
        """All topics in any of the three states."""
        return {*self.initializing, *self.initialized, *self.deleting}

    # ---- transitions -------------------------------------------------------------------------------------------------

    def begin(self, more: PartitionSets) -> SharePartitions:
        """`more` become initializing; their topics are no longer deleting."""
        return self._replace(initializing=union(self.initializing, more), deleting=self.deleting - more.keys())

    def finish(self, done: PartitionSets) -> SharePartitions:
        """`done` become initialized."""
        return self._replace(
            initializing=difference(self.initializing, done), initialized=union(self.initialized, done)
        )

    def abandon(self, failed: PartitionSets) -> SharePartitions:
        """`failed` are no longer initializing; a later heartbeat retries them."""
        return self._replace(initializing=difference(self.initializing, failed))

    def begin_delete(self, topics: Iterable[TopicId]) -> SharePartitions:
        """`topics` become deleting."""
        going = frozenset(topics)
        kept = {topic: parts for topic, parts in self.initialized.items() if topic not in going}
        return self._replace(initialized=kept, deleting=self.deleting | going)

    def finish_delete(self, topics: Iterable[TopicId]) -> SharePartitions:
        """`topics` are removed."""
        return self._replace(deleting=self.deleting - frozenset(topics))

    def delete_all(self, image: ClusterImage) -> SharePartitions:
        """All topics that still exist become deleting, for the deletion of the group."""
        return SharePartitions(deleting=frozenset(topic for topic in self.topics() if topic in image.topics_by_id))

    def only_existing(self, image: ClusterImage) -> SharePartitions:
        """The value without deleted topics; the same object if there are none."""
        existing = image.topics_by_id
        if all(topic in existing for topic in self.topics()):
            return self
        return SharePartitions(
            {topic: parts for topic, parts in self.initializing.items() if topic in existing},
            {topic: parts for topic, parts in self.initialized.items() if topic in existing},
            frozenset(topic for topic in self.deleting if topic in existing),
        )

    # ---- records -----------------------------------------------------------------------------------------------------

    def to_value(self, image: ClusterImage) -> records.StatePartitionMetadata:
        """The value of the record, with the current topic names; `<UNKNOWN>` for a deleted topic."""

        def name(topic_id: TopicId) -> str:
            topic = image.topics_by_id.get(topic_id)
            return topic.name if topic else UNKNOWN_TOPIC_NAME

        def named(sets: PartitionSets) -> tuple[records.NamedTopicPartitions, ...]:
            return tuple(records.NamedTopicPartitions(t, name(t), tuple(sorted(parts))) for t, parts in sets.items())

        deleting = tuple(records.NamedTopic(t, name(t)) for t in sorted(self.deleting))
        return records.StatePartitionMetadata(named(self.initializing), named(self.initialized), deleting)

    @classmethod
    def from_value(cls, value: records.StatePartitionMetadata) -> SharePartitions:
        return cls(
            {topic.topic_id: frozenset(topic.partitions) for topic in value.initializing_topics},
            {topic.topic_id: frozenset(topic.partitions) for topic in value.initialized_topics},
            frozenset(topic.topic_id for topic in value.deleting_topics),
        )
