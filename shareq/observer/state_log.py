"""The durable state of one group's share-partitions, as the log of `__share_group_state` tells it.

The log is folded by the share coordinator's own shard, so that both merge alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.share.records import StateRecord, decode_state_record
from shareq.coordinator.share.state import KeyState, StateShard
from shareq.log.records import decode_key_values
from shareq.model.ids import ZERO_TOPIC_ID, SharePartitionKey, TopicId, partition_for
from shareq.model.image import ClusterImage
from shareq.model.records import RecordBatch


class StateLog:
    """What has been read of the state topic. `positions` are where to read on, by partition."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._shards: dict[int, StateShard] = {}
        self._read: set[int] = set()
        self.topic_id: TopicId = ZERO_TOPIC_ID
        self.partition_count = 0
        self.positions: dict[int, int] = {}

    def begin(self, topic_id: TopicId, partition_count: int) -> None:
        """The state topic as it is now; with another id it is another topic, and nothing is known of it."""
        if topic_id != self.topic_id:
            self.topic_id = topic_id
            for partition in list(self.positions):
                self.forget(partition)
        self.partition_count = partition_count

    def forget(self, partition: int) -> None:
        """Read a partition anew, from its beginning."""
        self.positions.pop(partition, None)
        self._shards.pop(partition, None)
        self._read.discard(partition)

    def partition_of(self, key: SharePartitionKey) -> int:
        """Which partition can hold the key."""
        return partition_for(str(key), self.partition_count)

    def take_in(self, partition: int, batches: Iterable[RecordBatch], high_watermark: int) -> list[StateRecord]:
        """What a fetch brought: the records of the group. Raises UnreadableRecordError for one that is no record of
        the state topic, and CorruptBatch; then the position stays before that batch.
        """
        shard = self._shards.setdefault(partition, StateShard(ClusterImage))
        found: list[StateRecord] = []
        for batch in batches:
            begin = self.positions.get(partition, 0)
            for offset, key, value in () if batch.is_control else decode_key_values(batch):
                record = decode_state_record(key, value) if offset >= begin else None
                if record is not None and record.key.group_id == self._group:
                    shard.replay(offset, key, value, 0)
                    found.append(record)
            self.positions[partition] = max(begin, batch.last_offset + 1)
        if self.positions.get(partition, 0) >= high_watermark:
            self._read.add(partition)
        return found

    def is_read(self, partition: int) -> bool:
        """Whether the partition has been read to its end once: before that, what is not known may yet come."""
        return partition in self._read

    def state(self, key: SharePartitionKey) -> KeyState | None:
        """What is durable of the share-partition, None where nothing is."""
        shard = self._shards.get(self.partition_of(key))
        return None if shard is None else shard.states.get(key)
