"""The persister that keeps share-partition state in the topic-partition's own log, as control records.

The keeper of a share-partition is the broker that leads the partition. Source: KIP-932, the first design.
"""

from __future__ import annotations

from shareq.model.actor import Effect
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey
from shareq.persister.combined_response import RequestEntry
from shareq.persister.state_topic import StateTopicPersister, extend


class ControlRecordPersister(StateTopicPersister):
    """The actor. The metadata has the keeper; no lookup is sent."""

    def _node(self, key: SharePartitionKey) -> int | None:
        found = self._image.partition(key.topic_id, key.partition)
        broker = self._image.brokers.get(found.leader) if found else None
        return broker.broker_id if broker and broker.alive else None

    def _look_up(self, part: RequestEntry, effects: list[Effect]) -> None:
        """Retry until the partition has a leader. An unknown partition fails at once."""
        if self._image.partition(part.key.topic_id, part.key.partition) is None:
            extend(effects, part.fail(Errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        part.failed_lookups += 1
        extend(effects, self._failed(part, Errors.COORDINATOR_NOT_AVAILABLE, part.failed_lookups, self._now_ms))
