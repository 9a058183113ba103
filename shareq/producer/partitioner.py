"""The choice of a record's partition: librdkafka's partitioners by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from zlib import crc32

KeyHash = Callable[[bytes], int]

_MASK = 0xFFFFFFFF
_MURMUR_SEED = 0x9747B28C
_MURMUR_M = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """Java's hash of keys: 32-bit MurmurHash2 without the sign bit."""
    value = _MURMUR_SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _MURMUR_M & _MASK
        k = (k ^ k >> 24) * _MURMUR_M & _MASK
        value = value * _MURMUR_M & _MASK ^ k
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MURMUR_M & _MASK
    value = (value ^ value >> 13) * _MURMUR_M & _MASK
    return (value ^ value >> 15) & 0x7FFFFFFF


def fnv1a(data: bytes) -> int:
    """32-bit FNV-1a, made positive by negation, as in Sarama and librdkafka."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & _MASK
    return (1 << 32) - value if value >> 31 else value


PARTITIONERS: dict[str, tuple[KeyHash | None, bool, bool]] = {
    "random": (None, True, True),
    "consistent": (crc32, False, False),
    "consistent_random": (crc32, True, True),
    "murmur2": (murmur2, False, False),
    "murmur2_random": (murmur2, True, False),
    "fnv1a": (fnv1a, False, False),
    "fnv1a_random": (fnv1a, True, False),
}
"""Name -> (hash of the key, true if a record without key may go to any partition, true if an empty key counts as no
key)."""


class Partitioner:
    """Chooses partitions of one topic. Records that may go to any partition stay with one until its batch is closed, so
    that batches fill."""

    __slots__ = ("_anywhere", "_empty_is_none", "_hash", "_partition_count", "_rng", "_stuck_to")

    def __init__(self, name: str, partition_count: int, rng: random.Random) -> None:
        self._hash, self._anywhere, self._empty_is_none = PARTITIONERS[name]
        self._rng = rng
        self._stuck_to: int | None = None
        self._partition_count = partition_count

    def resize(self, partition_count: int) -> None:
        """Set the partition count of a topic that has grown or was created again."""
        self._partition_count = partition_count
        if self._stuck_to is not None and self._stuck_to >= partition_count:
            self._stuck_to = None

    def place(self, key: bytes | None) -> int:
        if self._hash is None or (not key and self._anywhere and (key is None or self._empty_is_none)):
            if self._stuck_to is None:
                self._stuck_to = self._rng.randrange(self._partition_count)
            return self._stuck_to
        return self._hash(key or b"") % self._partition_count

    def closed(self, partition: int) -> None:
        """A batch of this partition is finished: choose another partition for the next one."""
        if partition == self._stuck_to:
            self._stuck_to = None
