"""The iteration order of Java's hash tables, on which the results of Kafka's assignors depend."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TypeVar

from shareq.model.ids import TopicId, topic_id_to_bytes

K = TypeVar("K")

_MIN_BUCKETS = 16
LOAD_FACTOR = 0.75


@lru_cache(maxsize=1 << 12)
def topic_hash(topic_id: TopicId) -> int:
    """Java's hash code of a topic id, unsigned."""
    raw = topic_id_to_bytes(topic_id)
    folded = int.from_bytes(raw[:8], "big") ^ int.from_bytes(raw[8:], "big")
    return folded >> 32 ^ folded & 0xFFFFFFFF


def hash_order(
    items: Collection[K],
    hash_of: Callable[[K], int],
    *,
    buckets: int = _MIN_BUCKETS,
    count: int = 0,
    newest_first: bool = False,
) -> list[K]:
    """The items in the iteration order of a Java hash table: by bucket, and within a bucket in order of insertion.

    `buckets` is the table's first size (a power of 2), `count` the most items it ever held if more than now; a table
    doubles beyond 3/4 and never shrinks. `newest_first`: insertions that prepend (Java's computeIfAbsent).
    """
    most = max(count, len(items))
    while most > LOAD_FACTOR * buckets:
        buckets *= 2
    mask = buckets - 1

    def bucket(item: K) -> int:
        x = hash_of(item) & 0xFFFFFFFF
        return (x ^ x >> 16) & mask

    return sorted(reversed(list(items)) if newest_first else items, key=bucket)
