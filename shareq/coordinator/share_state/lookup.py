"""FindCoordinator of type SHARE: parses the key and finds the coordinator of a share-partition.

Source: KIP-932, "Share coordinator"; Kafka's SharePartitionKey.
"""

from __future__ import annotations

import re

from shareq.model.errors import Errors
from shareq.model.ids import (
    SHARE_STATE_TOPIC,
    SharePartitionKey,
    topic_id_from_bytes,
    topic_id_to_bytes,
)
from shareq.model.image import ClusterImage
from shareq.model.messages.cluster import FindCoordinatorResponse

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_INT = re.compile(r"[+-]?\d+")
_INT32 = range(-(1 << 31), 1 << 31)


def parse_key(text: str) -> SharePartitionKey | None:
    """Parse a key `group:topicId:partition`; None if it is malformed.

    The text is parsed from the right, because a group id may contain colons. As in Kafka, empty segments at the end are
    dropped first, the topic id may be padded, and the partition is any int32 that Java parses.
    """
    group_id, topic_id, partition = "", "", ""
    segments = text.rstrip(":").rsplit(":", 2)
    if len(segments) == 3:
        group_id, topic_id, partition = segments
    well_formed = group_id.strip() and _TOPIC_ID.fullmatch(topic_id) and _INT.fullmatch(partition)
    if not well_formed or int(partition) not in _INT32:
        return None
    return SharePartitionKey(group_id, topic_id_from_bytes(topic_id_to_bytes(topic_id)), int(partition))


def state_partition_count(image: ClusterImage) -> int:
    """The partition count of the state topic; the configured one until the topic exists."""
    topic = image.topics.get(SHARE_STATE_TOPIC)
    if topic is not None:
        return len(topic.partitions)
    count: int = image.broker_config["share.coordinator.state.topic.num.partitions"]
    return count


def find_share_coordinator(key: str, image: ClusterImage) -> FindCoordinatorResponse.Coordinator:
    """Answer one key of FindCoordinator: INVALID_REQUEST for a malformed key, COORDINATOR_NOT_AVAILABLE while the state
    topic is missing (the caller then creates it) or the partition has no live leader."""
    parsed = parse_key(key)
    if parsed is None:
        return FindCoordinatorResponse.Coordinator(key=key, error_code=Errors.INVALID_REQUEST)
    broker = image.coordinator(SHARE_STATE_TOPIC, str(parsed))
    if broker is None:
        return FindCoordinatorResponse.Coordinator(key=key, error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse.Coordinator(key=key, node_id=broker.broker_id, host=broker.host, port=broker.port)
