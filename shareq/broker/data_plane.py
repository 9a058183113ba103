"""A broker's access to logs: it reads and writes the logs that it leads, and names the leaders of the others."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.broker.storage import Storage
from shareq.log.memory import MemoryLog
from shareq.log.results import AppendResult, ReadResult
from shareq.model.errors import Errors
from shareq.model.ids import TRANSACTION_STATE_TOPIC, TopicIdPartition, TopicPartition
from shareq.model.image import ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.fetch import UNKNOWN_LEADER, FetchRequest
from shareq.model.messages.share_fetch import LeaderIdAndEpoch, NodeEndpoint
from shareq.model.states import IsolationLevel

ISOLATION_LEVELS = frozenset(IsolationLevel)
"""The isolation levels of Fetch; any other value is UNKNOWN_SERVER_ERROR in Kafka."""

FetchedPartition = TopicIdPartition | TopicPartition
"""A partition in a fetch: by topic id; by name before version 13."""


class DataPlane:
    """The partitions of one broker, which serves those that it leads."""

    def __init__(self, broker_id: int, storage: Storage, image: ClusterImage) -> None:
        self.broker_id = broker_id
        self.storage = storage
        self.image = image

    def led_log(
        self, topic: str, partition: int, current_leader_epoch: int = -1
    ) -> tuple[Errors, MemoryLog | None, int]:
        """The log and leader epoch of a partition; or the error, if this broker does not lead it.

        `current_leader_epoch` is the leader epoch in the client's metadata, -1 for no check. A replica checks it before
        NOT_LEADER_OR_FOLLOWER, as in Kafka.
        """
        found = self.image.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, None, -1
        state = found.partitions[partition]
        if current_leader_epoch not in (-1, state.leader_epoch) and self.broker_id in state.replicas:
            older = current_leader_epoch < state.leader_epoch
            return Errors.FENCED_LEADER_EPOCH if older else Errors.UNKNOWN_LEADER_EPOCH, None, -1
        if state.leader != self.broker_id:
            return Errors.NOT_LEADER_OR_FOLLOWER, None, -1
        log = self.storage.log_of(found, partition)
        return Errors.NONE if log is not None else Errors.UNKNOWN_TOPIC_OR_PARTITION, log, state.leader_epoch

    def append(self, topic: str, partition: int, records: bytes, now_ms: int) -> AppendResult | None:
        """Append a coordinator's records to a partition of its own topic.

        None if too few replicas are in sync to commit them: the caller retries when the metadata changes. In Kafka the
        high watermark does not advance until then. Appends of the transaction coordinator fail at once, because it uses
        acks=all.
        """
        error, log, leader_epoch = self.led_log(topic, partition)
        if log is not None and below_min_isr(self.image.topics[topic].partitions[partition], log):
            if topic != TRANSACTION_STATE_TOPIC:
                return None
            error = Errors.NOT_ENOUGH_REPLICAS
        error = error or self.storage.next_fault(topic)
        if error or log is None:
            return AppendResult(error)
        return log.append(
            records,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            validate=False,
            transaction_version=2,
            from_coordinator=True,
        )

    def read(
        self,
        at: FetchedPartition,
        wanted: FetchRequest.Partition,
        max_bytes: int,
        isolation: IsolationLevel,
        *,
        min_one_batch: bool,
    ) -> ReadResult:
        """The read of one partition for a fetch. A result with an error has no offsets."""
        error, log = self._wanted_log(at, wanted)
        if error or log is None:
            return failed_read(error)
        read = log.read(wanted.fetch_offset, max_bytes=max_bytes, isolation=isolation, min_one_batch=min_one_batch)
        return failed_read(read.error) if read.error else read

    def error_of(self, at: FetchedPartition, wanted: FetchRequest.Partition) -> Errors:
        """The error of a partition of a fetch, without a read."""
        return self._wanted_log(at, wanted)[0]

    def topic_of(self, at: FetchedPartition) -> TopicImage | None:
        """The topic of a partition; None if there is none of this id or name."""
        if isinstance(at, TopicIdPartition):
            return self.image.topics_by_id.get(at.topic_id)
        return self.image.topics.get(at.topic)

    def _wanted_log(self, at: FetchedPartition, wanted: FetchRequest.Partition) -> tuple[Errors, MemoryLog | None]:
        topic = self.topic_of(at)
        if topic is None:
            by_id = isinstance(at, TopicIdPartition)
            return Errors.UNKNOWN_TOPIC_ID if by_id else Errors.UNKNOWN_TOPIC_OR_PARTITION, None
        return self.led_log(topic.name, at.partition, wanted.current_leader_epoch)[:2]

    def leader_hint(self, topic: str, partition: int, error: Errors) -> LeaderIdAndEpoch:
        """The current leader, if `error` is about leadership (KIP-951)."""
        if error not in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH):
            return UNKNOWN_LEADER
        state = self.image.topics[topic].partitions[partition]
        return LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)

    def endpoints(self, hints: Iterable[LeaderIdAndEpoch]) -> tuple[NodeEndpoint, ...]:
        """The endpoints of those hinted leaders that are alive."""
        brokers = [self.image.brokers.get(broker_id) for broker_id in sorted({hint.leader_id for hint in hints})]
        return tuple(
            NodeEndpoint(node_id=b.broker_id, host=b.host, port=b.port, rack=b.rack) for b in brokers if b and b.alive
        )


def below_min_isr(partition: PartitionImage, log: MemoryLog) -> bool:
    """True if fewer replicas than `min.insync.replicas` are in sync; a partition with fewer replicas needs all."""
    return len(partition.isr) < min(log.config.min_insync_replicas, len(partition.replicas))


def failed_read(error: Errors) -> ReadResult:
    return ReadResult(error, (), -1, -1, -1)
