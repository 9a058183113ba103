"""Identifiers: topic ids, share-partition keys, and the hash that maps keys to partitions of a coordinator's topic."""

from __future__ import annotations

import base64
import random
import re
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


_FOLDED_UNITS = 1 << 15
"""So many code units are hashed at once."""

_EVEN_UNITS = int.from_bytes(bytes((0, 0, 0xFF, 0xFF)) * (_FOLDED_UNITS // 2), "big")
_EVEN_PAIRS = int.from_bytes(bytes((0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF)) * (_FOLDED_UNITS // 4), "big")
_FOLDS = [
    (bits, (1 << bits) - 1, pow(31, bits // 16, 1 << 32))
    for bits in (64 << exponent for exponent in reversed(range((_FOLDED_UNITS // 4).bit_length() - 1)))
]
"""For halves of 64 times a power of two bits: their bits, the mask of the lower one, what the upper one is multiplied
with."""


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, wrapped to a signed int32."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = _folded(encoded[: 2 * _FOLDED_UNITS])
    for start in range(2 * _FOLDED_UNITS, len(encoded), 2 * _FOLDED_UNITS):
        part = encoded[start : start + 2 * _FOLDED_UNITS]
        value = value * pow(31, len(part) // 2, 1 << 32) + _folded(part) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _folded(encoded: bytes) -> int:
    """The hash modulo 2^32, by arithmetic on all units at once, because a client chooses the length of most ids.

    The units are lanes of one integer. Neighbours are added up twice, as `31 * upper + lower`, in lanes of twice the
    width; from then on the upper half of the lanes is added to the lower one, and all are reduced modulo 2^32.
    """
    lanes = int.from_bytes(encoded, "big")
    lanes = (lanes >> 16 & _EVEN_UNITS) * 31 + (lanes & _EVEN_UNITS)
    lanes = (lanes >> 32 & _EVEN_PAIRS) * 961 + (lanes & _EVEN_PAIRS)
    for bits, mask, factor in _FOLDS[-((len(encoded) - 1 >> 3).bit_length() or len(_FOLDS)) :]:
        lanes = (lanes >> bits) * factor + (lanes & mask) & _EVEN_PAIRS
    return lanes & 0xFFFFFFFF


def partition_for(key: str, partition_count: int) -> int:
    """The partition of a coordinator's topic that holds `key`: `abs(javaHash) mod n`; abs of the lowest int32 is 0."""
    hashed = java_hash(key)
    return (0 if hashed == -(1 << 31) else abs(hashed)) % partition_count
