"""What a broker answers about records themselves: Produce, ListOffsets, DeleteRecords."""

from __future__ import annotations

from shareq.broker.storage import Storage
from shareq.broker.transactions import Transactions
from shareq.log.batches import CorruptBatch, parse_batch
from shareq.log.memory import MemoryLog
from shareq.model.errors import Errors
from shareq.model.ids import INTERNAL_TOPICS, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from shareq.model.states import IsolationLevel


class DataPlane:
    """One broker's view of the logs: it serves those partitions that it leads."""

    def __init__(self, broker_id: int, storage: Storage, transactions: Transactions, image: ClusterImage) -> None:
        self._broker_id = broker_id
        self._storage = storage
        self._transactions = transactions
        self.image = image

    def led_log(self, topic: str, partition: int) -> tuple[Errors, MemoryLog | None, int]:
        """The log and leader epoch of a partition, or the error of one that this broker does not lead."""
        found = self.image.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, None, -1
        if found.partitions[partition].leader != self._broker_id:
            return Errors.NOT_LEADER_OR_FOLLOWER, None, -1
        return Errors.NONE, self._storage.log(topic, partition), found.partitions[partition].leader_epoch

    def append(
        self, topic: str, partition: int, records: bytes, now_ms: int, *, from_coordinator: bool = False
    ) -> ProduceResponse.Partition:
        """Append one record batch to a partition that this broker leads."""
        error, log, leader_epoch = self.led_log(topic, partition)
        error = error or self._storage.next_fault(topic)
        if error or log is None:
            return ProduceResponse.Partition(index=partition, error_code=error)
        # In process nothing can damage a batch on its way, so its CRC and its records need not be walked through.
        done = log.append(
            records,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            validate=False,
            transaction_version=2,
            from_coordinator=from_coordinator,
        )
        return ProduceResponse.Partition(
            index=partition,
            error_code=done.error,
            base_offset=done.base_offset,
            log_append_time_ms=done.log_append_time_ms,
            log_start_offset=done.log_start_offset,
            error_message=done.message,
        )

    def produce(self, request: ProduceRequest, now_ms: int) -> tuple[ProduceResponse, list[tuple[str, int, int, int]]]:
        """The response, and what was appended: (topic, partition, first, end) each."""
        grown: list[tuple[str, int, int, int]] = []
        topics = []
        for topic in request.topics:
            image = self.image.topics_by_id.get(topic.topic_id)
            results = []
            for part in topic.partitions:
                if image is None:
                    results.append(ProduceResponse.Partition(index=part.index, error_code=Errors.UNKNOWN_TOPIC_ID))
                    continue
                results.append(self._produce_one(request, image.name, part, now_ms, grown))
            topics.append(ProduceResponse.Topic(topic_id=topic.topic_id, partitions=tuple(results)))
        return ProduceResponse(responses=tuple(topics)), grown

    def _produce_one(
        self,
        request: ProduceRequest,
        topic: str,
        part: ProduceRequest.Partition,
        now_ms: int,
        grown: list[tuple[str, int, int, int]],
    ) -> ProduceResponse.Partition:
        if request.acks not in (-1, 0, 1):
            return ProduceResponse.Partition(index=part.index, error_code=Errors.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL_TOPICS:
            return ProduceResponse.Partition(index=part.index, error_code=Errors.INVALID_TOPIC_EXCEPTION)
        error, log, _ = self.led_log(topic, part.index)
        error = error or self._admit_transaction(request, TopicPartition(topic, part.index), part.records)
        if error:
            return ProduceResponse.Partition(index=part.index, error_code=error)
        end = log.log_end_offset if log else 0
        result = self.append(topic, part.index, part.records, now_ms)
        if log and log.log_end_offset > end:
            grown.append((topic, part.index, end, log.log_end_offset))
        return result

    def _admit_transaction(self, request: ProduceRequest, at: TopicPartition, records: bytes) -> Errors:
        """Let the partition join the producer's transaction; what cannot be read is left to the log to refuse."""
        if request.transactional_id is None:
            return Errors.NONE
        try:
            batch = parse_batch(records)
        except CorruptBatch:
            return Errors.NONE
        if not batch.is_transactional:
            return Errors.NONE
        return self._transactions.admit(request, batch.producer_id, batch.producer_epoch, at)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        isolation = IsolationLevel(request.isolation_level)
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsResponse.Topic(
                    name=topic.name,
                    partitions=tuple(self._list_one(topic.name, p, isolation) for p in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def _list_one(
        self, topic: str, part: ListOffsetsRequest.Partition, isolation: IsolationLevel
    ) -> ListOffsetsResponse.Partition:
        error, log, leader_epoch = self.led_log(topic, part.partition_index)
        if not error and part.current_leader_epoch >= 0 and part.current_leader_epoch != leader_epoch:
            older = part.current_leader_epoch < leader_epoch
            error = Errors.FENCED_LEADER_EPOCH if older else Errors.UNKNOWN_LEADER_EPOCH
        if error or log is None:
            return ListOffsetsResponse.Partition(partition_index=part.partition_index, error_code=error)
        found = log.offset_for_timestamp(part.timestamp, isolation)
        return ListOffsetsResponse.Partition(
            partition_index=part.partition_index,
            error_code=found.error,
            timestamp=found.timestamp,
            offset=found.offset,
            leader_epoch=found.leader_epoch,
        )

    def delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=tuple(
                DeleteRecordsResponse.Topic(
                    name=topic.name, partitions=tuple(self._delete_one(topic.name, p) for p in topic.partitions)
                )
                for topic in request.topics
            )
        )

    def _delete_one(self, topic: str, part: DeleteRecordsRequest.Partition) -> DeleteRecordsResponse.Partition:
        error, _, _ = self.led_log(topic, part.partition_index)
        low = -1
        if not error:
            error, low = self._storage.delete_records(TopicPartition(topic, part.partition_index), part.offset)
        return DeleteRecordsResponse.Partition(
            partition_index=part.partition_index, low_watermark=low, error_code=error
        )
