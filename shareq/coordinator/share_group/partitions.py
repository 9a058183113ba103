"""How far the share-partitions of a group are on their way: initializing, initialized, deleting.

A value with the moves that the two-phase protocols make; each move is written as one record that replaces everything.
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
    """A partition whose offset is being altered is initializing and initialized at once."""

    initializing: PartitionSets = _NO_SETS
    initialized: PartitionSets = _NO_SETS
    deleting: frozenset[TopicId] = frozenset()

    def known(self) -> PartitionSets:
        """Everything that may have state at the share coordinator, but for the deleting topics."""
        return union(self.initialized, self.initializing)

    def topics(self) -> set[TopicId]:
        """All topics that are mentioned."""
        return {*self.initializing, *self.initialized, *self.deleting}

    # ---- moves -------------------------------------------------------------------------------------------------------

    def begin(self, more: PartitionSets) -> SharePartitions:
        """`more` are to be initialized; their topics are wanted again."""
        return self._replace(initializing=union(self.initializing, more), deleting=self.deleting - more.keys())

    def finish(self, done: PartitionSets) -> SharePartitions:
        """`done` are initialized."""
        return self._replace(
            initializing=difference(self.initializing, done), initialized=union(self.initialized, done)
        )

    def abandon(self, failed: PartitionSets) -> SharePartitions:
        """`failed` could not be initialized, and shall be tried again."""
        return self._replace(initializing=difference(self.initializing, failed))

    def begin_delete(self, topics: Iterable[TopicId]) -> SharePartitions:
        """The initialized partitions of `topics` are to be deleted."""
        going = frozenset(topics)
        kept = {topic: parts for topic, parts in self.initialized.items() if topic not in going}
        return self._replace(initialized=kept, deleting=self.deleting | going)

    def finish_delete(self, topics: Iterable[TopicId]) -> SharePartitions:
        """`topics` are deleted."""
        return self._replace(deleting=self.deleting - frozenset(topics))

    def delete_all(self, image: ClusterImage) -> SharePartitions:
        """The whole group goes: everything is to be deleted, as far as its topic still exists."""
        return SharePartitions(deleting=frozenset(topic for topic in self.topics() if topic in image.topics_by_id))

    def only_existing(self, image: ClusterImage) -> SharePartitions:
        """What remains without the topics that exist no more. Itself where nothing goes."""
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
        """As it is stored, with the topics' names of now; a vanished topic's is `<UNKNOWN>`."""

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
