"""Identifiers: topic ids, share-partition keys, and the hash that maps keys to partitions of a coordinator's topic."""

from __future__ import annotations

import base64
import random
import re
import struct
from operator import mul
from typing import NamedTuple, NewType

TopicId = NewType("TopicId", str)
"""A topic id in Kafka's own text form: URL-safe Base64 of 16 bytes without padding, 22 characters."""

ZERO_TOPIC_ID = TopicId("A" * 22)
GROUP_METADATA_TOPIC = "__consumer_offsets"
SHARE_STATE_TOPIC = "__share_group_state"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC})


_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """True if a topic may have this name."""
    return _TOPIC_NAME.fullmatch(text) is not None and text not in (".", "..")


def illegal_topic_name(text: str) -> str:
    """Why no topic may have this name, with the names that are possible; empty if one may."""
    if is_topic_name(text):
        return ""
    return f"topic {text!r}: must be 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', and not '.' or '..'"


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


Place = tuple[str, int]
"""A topic name and a partition, as journals, clients and views have them."""


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


_CHUNK = 1024
_POWERS = [1]
"""Powers of 31 modulo 2^32, the highest first."""
for _ in range(_CHUNK):
    _POWERS.insert(0, _POWERS[0] * 31 & 0xFFFFFFFF)


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, wrapped to a signed int32."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(encoded) // 2}H", encoded)
    value = 0
    for start in range(0, len(units), _CHUNK):
        chunk = units[start : start + _CHUNK]
        value = value * _POWERS[-1 - len(chunk)] + sum(map(mul, chunk, _POWERS[-len(chunk) :])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition of a coordinator's topic that holds `key`: `abs(javaHash) mod n`; abs of the lowest int32 is 0."""
    hashed = java_hash(key)
    return (0 if hashed == -(1 << 31) else abs(hashed)) % partition_count
