"""Identifiers: topic ids, share-partition keys, and the hash that maps keys to partitions of a coordinator's topic."""

from __future__ import annotations

import base64
import random
from typing import NamedTuple, NewType

TopicId = NewType("TopicId", str)
"""A topic id in Kafka's own text form: URL-safe Base64 of 16 bytes without padding, 22 characters."""

ZERO_TOPIC_ID = TopicId("A" * 22)
GROUP_METADATA_TOPIC = "__consumer_offsets"
SHARE_STATE_TOPIC = "__share_group_state"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC})


def topic_id_from_bytes(raw: bytes) -> TopicId:
    """The text form of 16 bytes."""
    if len(raw) != 16:
        raise ValueError(f"a topic id has 16 bytes, not {len(raw)}")
    return TopicId(base64.urlsafe_b64encode(raw).decode().rstrip("="))


def topic_id_to_bytes(topic_id: str) -> bytes:
    """The 16 bytes of a text form; padding is tolerated, as in Kafka."""
    raw = base64.b64decode(topic_id.rstrip("=") + "==", altchars=b"-_", validate=True)
    if len(raw) != 16:
        raise ValueError(f"{topic_id!r} is not a topic id: {len(raw)} bytes instead of 16")
    return raw


def random_id(rng: random.Random) -> str:
    """A fresh id in the 22-character text form that topics, members and clusters share (never starting with '-')."""
    while True:
        text = topic_id_from_bytes(rng.getrandbits(128).to_bytes(16, "big"))
        if not text.startswith("-") and text != ZERO_TOPIC_ID:
            return text


class TopicPartition(NamedTuple):
    """A partition by topic name, inside the server; the client's own `TopicPartition` is confluent-kafka shaped."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition by topic id."""

    topic_id: TopicId
    partition: int


class SharePartitionKey(NamedTuple):
    """The identifier of a share-partition: a group, and a partition by topic id."""

    group_id: str
    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, wrapped to a signed int32."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(encoded), 2):
        value = (31 * value + (encoded[i] << 8 | encoded[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition of a coordinator's topic that holds `key`: `abs(javaHash) mod n`; abs of the lowest int32 is 0."""
    hashed = java_hash(key)
    return (0 if hashed == -(1 << 31) else abs(hashed)) % partition_count
