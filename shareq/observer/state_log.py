"""Durable state of groups' share-partitions, folded from the log of `__share_group_state`.

It uses the share coordinator's shard for the fold, so that both merge state batches in the same way.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import lru_cache

from shareq.coordinator.share_state.records import StateRecord, decode_state_record
from shareq.coordinator.share_state.state import KeyState, StateShard
from shareq.log.records import ControlType, decode_control, decode_key_values
from shareq.model.ids import ZERO_TOPIC_ID, SharePartitionKey, TopicId, partition_for
from shareq.model.image import ClusterImage
from shareq.model.records import RecordBatch


@lru_cache(1 << 16)
def _partition_of(key: SharePartitionKey, count: int) -> int:
    """Kept, as each poll asks for all keys."""
    return partition_for(str(key), count)


def _end_transaction(shard: StateShard, batch: RecordBatch) -> None:
    """Replay a marker: it ends what a transaction has staged (an experiment)."""
    kind = decode_control(batch) if batch.record_count else None
    if kind is not None:
        shard.replay_marker(batch.producer_id, kind is ControlType.COMMIT, 0)


class StateLog:
    """The records read from the state topic. `positions`: partition -> offset of the next fetch."""

    def __init__(self, groups: Container[str]) -> None:
        self.groups = groups
        self.shards: dict[int, StateShard] = {}
        self._read: set[int] = set()
        self.topic_id: TopicId = ZERO_TOPIC_ID
        self.partition_count = 0
        self.positions: dict[int, int] = {}

    def set_topic(self, topic_id: TopicId, partition_count: int) -> None:
        """Set id and partition count of the state topic. A topic with another id is read from its beginning."""
        if topic_id != self.topic_id:
            self.topic_id = topic_id
            for partition in list(self.positions):
                self.discard(partition)
        self.partition_count = partition_count

    def discard(self, partition: int) -> None:
        """Discard a partition, so that it is read again from its log start."""
        self.positions.pop(partition, None)
        self.shards.pop(partition, None)
        self._read.discard(partition)

    def partition_of(self, key: SharePartitionKey) -> int:
        """The partition that can hold the key."""
        return _partition_of(key, self.partition_count)

    def add(self, partition: int, batches: Iterable[RecordBatch], high_watermark: int) -> list[StateRecord]:
        """Add fetched batches; return the records of the groups. Raises UnreadableRecordError for a record that is not
        one of the state topic, and CorruptBatch; then the position stays before that batch.
        """
        shard = self.shards.setdefault(partition, StateShard(ClusterImage))
        found: list[StateRecord] = []
        for batch in batches:
            begin = self.positions.get(partition, 0)
            if batch.is_control and batch.base_offset >= begin:
                _end_transaction(shard, batch)
            for offset, key, value in () if batch.is_control else decode_key_values(batch):
                record = decode_state_record(key, value) if offset >= begin else None
                if record is None or record.key.group_id not in self.groups:
                    continue
                if batch.is_transactional:
                    shard.replay_transactional(offset, key, value, batch.producer_id, 0)
                else:
                    shard.replay(offset, key, value, 0)
                self.folded(partition, record, batch.max_timestamp)
                found.append(record)
            self.positions[partition] = max(begin, batch.last_offset + 1)
        if self.positions.get(partition, 0) >= high_watermark:
            self._read.add(partition)
        return found

    def folded(self, partition: int, record: StateRecord, written_ms: int) -> None:
        """Called after each record of a group was folded into the state of its key."""

    def is_read(self, partition: int) -> bool:
        """True if the partition was read to its end once: before that, a key without state may still have one."""
        return partition in self._read

    def state(self, key: SharePartitionKey) -> KeyState | None:
        """The durable state of the share-partition, None if it has none."""
        shard = self.shards.get(self.partition_of(key))
        return None if shard is None else shard.states.get(key)
