"""The committed offsets of the groups of one shard, and the pending offsets of open transactions.

Only the replay of records and markers changes them. Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakValueDictionary

from shareq.coordinator.offsets.records import OffsetCommit, OffsetKey, decode
from shareq.model.records import NO_PRODUCER_ID


class Stored(NamedTuple):
    """A committed offset, and the log offset of its record."""

    commit: OffsetCommit
    record_offset: int


class Inquiry:
    """A pending request about a producer's transaction. `ended`: the transaction has ended here since, so the answer is
    outdated."""

    __slots__ = ("__weakref__", "ended")

    def __init__(self) -> None:
        self.ended = False


class Offsets:
    """Committed offsets by group, topic and partition; pending ones by producer id.

    `transactions`: epochs by producer id, of the transactions that have written here since the shard was loaded.
    """

    __slots__ = ("_committed", "_inquiries", "_pending", "_producers", "transactions")

    def __init__(self) -> None:
        self.transactions: dict[int, int] = {}
        self._inquiries: WeakValueDictionary[int, Inquiry] = WeakValueDictionary()
        self._committed: dict[str, dict[str, dict[int, Stored]]] = {}
        self._pending: dict[int, dict[OffsetKey, Stored]] = {}
        self._producers: dict[OffsetKey, set[int]] = {}
        """The ids of producers with a pending offset for the key in their open transaction."""

    # ---- questions ---------------------------------------------------------------------------------------------------

    def get(self, key: OffsetKey) -> OffsetCommit | None:
        """The committed offset; None if there is none."""
        stored = self._committed.get(key.group_id, {}).get(key.topic, {}).get(key.partition)
        return stored.commit if stored else None

    def topics(self, group_id: str) -> Iterator[tuple[str, dict[int, Stored]]]:
        """The committed offsets of the group: topic name, offsets by partition."""
        return iter(self._committed.get(group_id, {}).items())

    def commits(self) -> Iterator[tuple[OffsetKey, OffsetCommit, bool]]:
        """All offsets: key, commit, and True if it is pending in an open transaction."""
        for group_id, topics in self._committed.items():
            for topic, partitions in topics.items():
                for index, stored in partitions.items():
                    yield OffsetKey(group_id, topic, index), stored.commit, False
        for pending in self._pending.values():
            for key, stored in pending.items():
                yield key, stored.commit, True

    def is_pending(self, key: OffsetKey) -> bool:
        """True if an open transaction has a pending offset for the key."""
        return key in self._producers

    def pending_keys(self, group_id: str) -> Iterator[OffsetKey]:
        """The keys of the group's pending offsets in open transactions."""
        return (key for key in self._producers if key.group_id == group_id)

    # ---- replay ------------------------------------------------------------------------------------------------------

    def replay(self, offset: int, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> str | None:
        """Replay one record; the group whose offset was committed, or None for a tombstone."""
        offset_key, commit = decode(key, value)
        if commit is None:
            self._remove(offset_key)
            return None
        stored = Stored(commit, offset)
        if producer_id == NO_PRODUCER_ID:
            self._put(offset_key, stored)
        else:
            self._pending.setdefault(producer_id, {})[offset_key] = stored
            self._producers.setdefault(offset_key, set()).add(producer_id)
        return offset_key.group_id

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        """End the producer's transaction: commit or drop its pending offsets. A committed offset whose record is
        later in the log stays."""
        for key, stored in self._pending.pop(producer_id, {}).items():
            producers = self._producers[key]
            producers.discard(producer_id)
            if not producers:
                del self._producers[key]
            if committed:
                self._put(key, stored)
        self.transactions.pop(producer_id, None)
        inquiry = self._inquiries.pop(producer_id, None)
        if inquiry:
            inquiry.ended = True

    def inquire(self, producer_id: int) -> Inquiry:
        """Start an inquiry. It is held weakly: it lasts as long as the caller keeps it."""
        return self._inquiries.setdefault(producer_id, Inquiry())

    def _put(self, key: OffsetKey, stored: Stored) -> None:
        partitions = self._committed.setdefault(key.group_id, {}).setdefault(key.topic, {})
        former = partitions.get(key.partition)
        if former is None or stored.record_offset > former.record_offset:
            partitions[key.partition] = stored

    def _remove(self, key: OffsetKey) -> None:
        for producer_id in self._producers.pop(key, ()):
            self._pending[producer_id].pop(key, None)
        topics = self._committed.get(key.group_id, {})
        partitions = topics.get(key.topic, {})
        if partitions.pop(key.partition, None) is None:
            return
        if not partitions:
            del topics[key.topic]
        if not topics:
            del self._committed[key.group_id]
