"""Assignments of partitions, in consumer groups and share groups."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage

Assignment = Mapping[TopicId, tuple[int, ...]]
"""Partitions (ascending) by topic. A topic may have (): the sticky assignor keeps topics without partitions."""

EMPTY_ASSIGNMENT: Assignment = {}


def by_name(assignment: Assignment, image: ClusterImage) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """An assignment by name: (topic name, partitions) each, without deleted topics."""
    topics = ((image.topics_by_id.get(topic_id), partitions) for topic_id, partitions in assignment.items())
    return tuple((topic.name, partitions) for topic, partitions in topics if topic)
