"""The state that all modules of the transaction coordinator share: the image, the shards, the stock of producer ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import NO_PARTITION, Turn
from shareq.coordinator.transactions.producer_ids import ProducerIds
from shareq.coordinator.transactions.state import TransactionShard
from shareq.model.errors import Errors
from shareq.model.ids import TRANSACTION_STATE_TOPIC, partition_for
from shareq.model.image import ClusterImage


class TransactionContext:
    """Shared by all modules of one coordinator. `epochs`: the leader epoch of each partition that this broker leads."""

    def __init__(self, broker_id: int, runtime: ShardRuntime[TransactionShard]) -> None:
        self.runtime = runtime
        self.image = ClusterImage()
        self.ids = ProducerIds(broker_id)
        self.epochs: dict[int, int] = {}

    @property
    def day_ms(self) -> int:
        """The time of day: for times in records, and what is compared with them."""
        return self.runtime.day_ms

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that holds the id; NO_PARTITION until the topic exists."""
        topic = self.image.topics.get(TRANSACTION_STATE_TOPIC)
        return partition_for(transactional_id, len(topic.partitions)) if topic else NO_PARTITION

    def turn(self, transactional_id: str, failure: Callable[[Errors], Any], timeout_ms: int | None = None) -> Turn:
        """A turn at the shard of the id, for at most `timeout_ms`."""
        return Turn(self.partition_of(transactional_id), failure, timeout_ms)
