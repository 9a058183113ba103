"""The response to Produce.

The checks run in Kafka's order, and the first failed one gives the error. `shareq.log.validation` has the checks of the
batch alone, `shareq.log.producer_states` those against the producer's earlier batches; this module has all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from shareq.broker.data_plane import DataPlane, below_min_isr
from shareq.log.batches import CODEC_MASK
from shareq.log.compression import CODECS
from shareq.log.memory import MemoryLog
from shareq.log.results import AppendResult
from shareq.log.validation import BatchRefusal, frame, looks_transactional
from shareq.model.actor import NEWEST_VERSION, ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import INTERNAL_TOPICS, ZERO_TOPIC_ID, TopicPartition
from shareq.model.image import PartitionImage, TopicImage
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.fetch import UNKNOWN_LEADER
from shareq.model.messages.share_fetch import LeaderIdAndEpoch
from shareq.model.records import RecordBatch

ALL_REPLICAS = -1
LEGAL_ACKS = frozenset((ALL_REPLICAS, 0, 1))
ZSTD = 7
"""The first version that may have this compression."""

JOINS_BY_WRITING = 12
"""From this version on, producing to a partition adds it to the transaction (KIP-890)."""

_NO_LOG_START = frozenset((Errors.CORRUPT_MESSAGE, Errors.MESSAGE_TOO_LARGE, Errors.KAFKA_STORAGE_ERROR))
"""The errors whose response has no log start offset in Kafka."""

Verdicts = Mapping[TopicPartition, Errors]
"""The transaction coordinator's error by partition, for transactional batches."""

NO_VERDICTS: Verdicts = MappingProxyType({})


class AppendedRange(NamedTuple):
    """The appended range of a partition: [first, end)."""

    at: TopicPartition
    first: int
    end: int


def produce(
    data: DataPlane, request: ProduceRequest, client: ClientContext, now_ms: int, verdicts: Verdicts = NO_VERDICTS
) -> tuple[ProduceResponse, list[AppendedRange]]:
    """The response, and the appended ranges. Each partition has its own error, except if a batch is transactional and
    the request has no transactional id: that fails the whole request."""
    producing = _ProduceHandler(data, request, client, now_ms, verdicts)
    if request.transactional_id is None and any_transactional(request):
        answer = producing.refuse_all(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        answer = producing.all()
    return answer, producing.grown


def transactional_batches(data: DataPlane, request: ProduceRequest) -> Iterator[tuple[TopicPartition, RecordBatch]]:
    """The batches that the transaction coordinator must verify (`verdicts`) before the append."""
    for topic in request.topics if request.transactional_id is not None else ():
        _, image = _find(data, topic)
        for part in topic.partitions if image else ():
            assert image is not None
            batch = frame(part.records)
            led = not data.led_log(image.name, part.index)[0]
            if led and isinstance(batch, RecordBatch) and batch.is_transactional:
                yield TopicPartition(image.name, part.index), batch


class _ProduceHandler:
    """The handling of one request."""

    __slots__ = (
        "_data",
        "_hints",
        "_now_ms",
        "_request",
        "_transaction_version",
        "_validate",
        "_verdicts",
        "_version",
        "grown",
    )

    def __init__(
        self, data: DataPlane, request: ProduceRequest, client: ClientContext, now_ms: int, verdicts: Verdicts
    ) -> None:
        self._data = data
        self._request = request
        self._now_ms = now_ms
        self._verdicts = verdicts
        # A batch cannot be damaged within the process, so its CRC and its records need no check.
        self._version = client.api_version
        self._validate = client.api_version != NEWEST_VERSION
        self._transaction_version = 2 if client.api_version >= JOINS_BY_WRITING else 0
        self._hints: list[LeaderIdAndEpoch] = []
        self.grown: list[AppendedRange] = []

    def all(self) -> ProduceResponse:
        topics = []
        for topic in self._request.topics:
            error, image = _find(self._data, topic)
            if image is None:
                topics.append(_refused(topic, error))
            else:
                partitions = tuple([self._partition(image, part) for part in topic.partitions])
                topics.append(_answered(topic, partitions))
        endpoints = self._data.endpoints(self._hints) if self._hints else ()
        return ProduceResponse(responses=tuple(topics), node_endpoints=endpoints)

    def refuse_all(self, error: Errors) -> ProduceResponse:
        return ProduceResponse(responses=tuple(_refused(topic, error) for topic in self._request.topics))

    def _partition(self, topic: TopicImage, part: ProduceRequest.Partition) -> ProduceResponse.Partition:
        index = part.index
        if not 0 <= index < len(topic.partitions):
            return ProduceResponse.Partition(index=index, error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION)
        at, state = TopicPartition(topic.name, index), topic.partitions[index]
        log = self._data.storage.log_of(topic, index)
        if self._version < ZSTD and _is_zstd(part.records):
            return ProduceResponse.Partition(index=index, error_code=Errors.UNSUPPORTED_COMPRESSION_TYPE)
        error = self._refusal(at) or self._leader_refusal(at.topic, state, log)
        if error or log is None:
            return self._not_written(at, error, part.records)
        first = log.log_end_offset
        done = log.append(
            part.records,
            now_ms=self._now_ms,
            leader_epoch=state.leader_epoch,
            validate=self._validate,
            transaction_version=self._transaction_version,
        )
        if done.error:
            no_start = done.error in _NO_LOG_START or isinstance(frame(part.records), BatchRefusal)
            return _refused_by_log(index, done, -1 if no_start else log.log_start_offset)
        if log.log_end_offset > first:  # otherwise a duplicate
            self.grown.append(AppendedRange(at, first, log.log_end_offset))
        return ProduceResponse.Partition(
            index=index,
            base_offset=done.base_offset,
            log_append_time_ms=done.log_append_time_ms,
            log_start_offset=done.log_start_offset,
        )

    def _refusal(self, at: TopicPartition) -> Errors:
        """The error of a write that does not depend on the leader, in Kafka's order."""
        error = self._verdicts.get(at, Errors.NONE)
        if not error and self._request.acks not in LEGAL_ACKS:
            error = Errors.INVALID_REQUIRED_ACKS
        return error or (Errors.INVALID_TOPIC_EXCEPTION if at.topic in INTERNAL_TOPICS else Errors.NONE)

    def _leader_refusal(self, topic: str, state: PartitionImage, log: MemoryLog | None) -> Errors:
        """The error of a write at this leader. Without a log the topic was deleted, in an image not yet delivered."""
        if log is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader != self._data.broker_id:
            return Errors.NOT_LEADER_OR_FOLLOWER
        if self._request.acks == ALL_REPLICAS and below_min_isr(state, log):
            return Errors.NOT_ENOUGH_REPLICAS
        return self._data.storage.next_fault(topic)

    def _not_written(self, at: TopicPartition, error: Errors, records: bytes) -> ProduceResponse.Partition:
        """The response for a batch that was not appended. If the batch is unreadable, that is the error."""
        batch = frame(records)
        if isinstance(batch, BatchRefusal):
            return ProduceResponse.Partition(index=at.partition, error_code=batch.error, error_message=batch.message)
        hint = UNKNOWN_LEADER
        if error is Errors.NOT_LEADER_OR_FOLLOWER:
            hint = self._data.leader_hint(*at, error)
            self._hints.append(hint)
        return ProduceResponse.Partition(index=at.partition, error_code=error, current_leader=hint)


def _is_zstd(records: bytes) -> bool:
    batch = frame(records)
    return isinstance(batch, RecordBatch) and batch.attributes & CODEC_MASK == CODECS["zstd"]


def _find(data: DataPlane, topic: ProduceRequest.Topic) -> tuple[Errors, TopicImage | None]:
    if topic.topic_id == ZERO_TOPIC_ID and topic.name:
        return Errors.UNKNOWN_TOPIC_OR_PARTITION, data.image.topics.get(topic.name)
    return Errors.UNKNOWN_TOPIC_ID, data.image.topics_by_id.get(topic.topic_id)


def any_transactional(request: ProduceRequest) -> bool:
    """True if a batch of the request belongs to a transaction."""
    for topic in request.topics:
        for part in topic.partitions:
            if looks_transactional(part.records):
                return True
    return False


def _answered(topic: ProduceRequest.Topic, partitions: tuple[ProduceResponse.Partition, ...]) -> ProduceResponse.Topic:
    return ProduceResponse.Topic(topic_id=topic.topic_id, name=topic.name, partitions=partitions)


def _refused(topic: ProduceRequest.Topic, error: Errors) -> ProduceResponse.Topic:
    partitions = [ProduceResponse.Partition(index=part.index, error_code=error) for part in topic.partitions]
    return _answered(topic, tuple(partitions))


def _refused_by_log(index: int, done: AppendResult, log_start_offset: int) -> ProduceResponse.Partition:
    return ProduceResponse.Partition(
        index=index,
        error_code=done.error,
        log_start_offset=log_start_offset,
        record_errors=tuple(
            ProduceResponse.RecordError(batch_index=at, batch_index_error_message=text)
            for at, text in done.record_errors
        ),
        error_message=done.message,
    )
