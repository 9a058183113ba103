"""Moves records from fetch responses into the buffer; releases those of other topics, drops those with void locks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shareq.client.metadata import NO_LEADER, Metadata
from shareq.consumer.acknowledgements import Acknowledgements, AcknowledgeRun, OffsetRange
from shareq.consumer.fetch_buffer import AcquiredPiece, FetchBuffer, cut_at_batches, without_acknowledged
from shareq.consumer.session_handler import ShareSessionHandler
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.share_fetch import ShareFetchResponse
from shareq.model.states import AcknowledgeType


class BufferFiller:
    """`topics`: the subscription. `acknowledge` queues an acknowledgement for its node."""

    def __init__(
        self, metadata: Metadata, buffer: FetchBuffer, acknowledge: Callable[[Acknowledgements], None]
    ) -> None:
        self.topics: frozenset[str] = frozenset()
        self._metadata = metadata
        self._buffer = buffer
        self._acknowledge = acknowledge

    def subscribe(self, topics: frozenset[str]) -> None:
        """Set the subscription. Buffered records of other topics are released, and those of fetches in progress,
        too."""
        self.topics = topics
        for piece in self._buffer.drop(lambda piece: piece.topic not in topics):
            self._release(piece.key, piece.topic, piece.node, [(piece.first, piece.end)])

    def lost(self, key: TopicIdPartition, topic: str, node: int) -> bool:
        """True if locks from this node are void: another node leads the partition, or the topic was created again."""
        known = self._metadata.topics.get(topic)
        moved = self._metadata.leader(key) not in (NO_LEADER, node)
        return moved or (known is not None and known.topic_id != key.topic_id)

    def drop_lost(self) -> bool:
        """Drop buffered records of former leaders. True if the buffer is empty as a result."""
        dropped = self._buffer.drop(lambda piece: self.lost(piece.key, piece.topic, piece.node))
        return bool(dropped) and not self._buffer

    def take(
        self,
        session: ShareSessionHandler,
        results: Mapping[TopicIdPartition, ShareFetchResponse.Partition],
        lock_until_ms: int,
    ) -> tuple[int, int]:
        """Buffer the acquired records, whose locks end by `lock_until_ms`. Returns the numbers of records and bytes of
        the partitions that contribute."""
        records = size = 0
        for key, partition in results.items():
            if partition.acquired_records and self._take_partition(session, key, partition, lock_until_ms):
                records += sum(a.last_offset - a.first_offset + 1 for a in partition.acquired_records)
                size += sum(batch.size for batch in partition.records)
        return records, size

    def _take_partition(
        self,
        session: ShareSessionHandler,
        key: TopicIdPartition,
        partition: ShareFetchResponse.Partition,
        lock_until_ms: int,
    ) -> bool:
        """False if none of the acquired records is buffered."""
        topic = self._metadata.by_id.get(key.topic_id)
        if topic is None or self.lost(key, topic.name, session.node):
            return False
        acquired = partition.acquired_records
        if topic.name not in self.topics:
            self._release(key, topic.name, session.node, [(a.first_offset, a.last_offset + 1) for a in acquired])
            return False
        pieces: Iterable[AcquiredPiece] = cut_at_batches(
            key, topic.name, session.node, acquired, partition.records, lock_until_ms=lock_until_ms
        )
        if session.waiting:
            pieces = without_acknowledged(pieces, [each for each in session.waiting if each.key == key])
        return self._buffer.extend(pieces)

    def _release(self, key: TopicIdPartition, topic: str, node: int, ranges: Iterable[OffsetRange]) -> None:
        """Release records that no poll has returned."""
        runs = [AcknowledgeRun(first, end, AcknowledgeType.RELEASE) for first, end in ranges]
        self._acknowledge(Acknowledgements(key, topic, node, runs, {}, silent=True))
