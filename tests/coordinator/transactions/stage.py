"""The test environment of the transaction coordinator: one broker, its log, and leaders that write markers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shareq.coordinator.transactions import TransactionCoordinator
from shareq.coordinator.transactions.records import Transaction, decode_transaction
from shareq.model.actor import (
    NEWEST_VERSION,
    Answer,
    AppendRecords,
    Call,
    ClientContext,
    Effect,
    ImageChanged,
    Message,
    ReadRecords,
    RecordsRead,
)
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
    partition_for,
    topic_id_from_bytes,
)
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.base import Request
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.coordinator.stage import CoordinatorStage

ID = "payments"
"""The transactional id of most tests."""
PARTITIONS = 5
HOME = partition_for(ID, PARTITIONS)
BLOCK = 1000
ORDERS = TopicPartition("orders", 0)
OFFSETS = TopicPartition(GROUP_METADATA_TOPIC, partition_for("g", 3))


def topic_image(name: str, count: int, leader: int = 1) -> TopicImage:
    partition = PartitionImage(leader=leader, leader_epoch=0, replicas=(1, 2), isr=(1, 2))
    return TopicImage(
        name=name, topic_id=topic_id_from_bytes(name.encode().ljust(16)[:16]), partitions=(partition,) * count
    )


def image(**topics: int) -> ClusterImage:
    """Two brokers and the topics orders, bills and the two internal ones. `topics`: leaders by topic name."""
    every = [
        topic_image("orders", 3, topics.get("orders", 1)),
        topic_image("bills", 3, topics.get("bills", 2)),
        topic_image(GROUP_METADATA_TOPIC, 3),
        topic_image(TRANSACTION_STATE_TOPIC, PARTITIONS),
    ]
    return ClusterImage(
        version=1,
        brokers={b: BrokerImage(broker_id=b, host="b", port=9092) for b in (1, 2)},
        topics={t.name: t for t in every},
        topics_by_id={t.topic_id: t for t in every},
        broker_config=BrokerConfig(),
    )


NO_STATE_TOPIC = ClusterImage(brokers=image().brokers)


class Stage(CoordinatorStage):
    """Leaders write markers; while `holding_markers`, the requests for them wait for `release_markers`. While
    `holding`, appends wait for `release`.

    `marked`: partition, commit, producer id and epoch of each written marker. `calls`: all requests to other brokers.
    """

    coordinator: TransactionCoordinator

    def __init__(self, *, load: bool = True, traced: bool = False) -> None:
        self.traced = traced
        self.holding = False
        self.holding_markers = False
        self.marker_errors: dict[TopicPartition, Errors] = {}
        self.held_markers: list[Call] = []
        self.marked: list[tuple[TopicPartition, bool, int, int]] = []
        self.calls: list[Call] = []
        self.next_block = BLOCK
        self.ids_error = Errors.NONE
        super().__init__(image(), PARTITIONS, 1_700_000_000_000)
        self.handle(ImageChanged(self.image))
        if load:
            self.elect()

    def new_coordinator(self) -> TransactionCoordinator:
        self.held_markers.clear()
        return TransactionCoordinator(1, traced=self.traced)

    # ---- effects -----------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> Iterable[Message]:
        if isinstance(effect, AppendRecords) and self.holding:
            self.held.append(effect)
        elif isinstance(effect, ReadRecords):
            log = self.logs.get(effect.topic_partition.partition, [])
            records = [(offset, record.key, record.value) for offset, record in enumerate(log)]
            yield RecordsRead(effect.id, Errors.NONE, records, len(log), done=True)
        elif isinstance(effect, Call):
            self.calls.append(effect)
            yield from self._call(effect)
        else:
            yield from super().perform(effect)

    def _call(self, call: Call) -> Iterable[Answer]:
        if isinstance(call.request, AllocateProducerIdsRequest):
            if self.ids_error:
                yield Answer(call.id, None, self.ids_error)
                return
            response = AllocateProducerIdsResponse(producer_id_start=self.next_block, producer_id_len=BLOCK)
            self.next_block += BLOCK
            yield Answer(call.id, response)
        elif self.holding_markers:
            self.held_markers.append(call)
        else:
            yield self.markers_written(call)

    def write_markers(self, call: Call) -> None:
        """Write the markers of a request and answer it, as the leader does."""
        self.handle(self.markers_written(call))

    def markers_written(self, call: Call) -> Answer:
        request = call.request
        assert isinstance(request, WriteTxnMarkersRequest)
        (marker,) = request.markers
        topics = []
        for topic in marker.topics:
            results = []
            for index in topic.partition_indexes:
                at = TopicPartition(topic.name, index)
                error = self.marker_errors.get(at, Errors.NONE)
                if not error:
                    self.marked.append((at, marker.transaction_result, marker.producer_id, marker.producer_epoch))
                results.append(WriteTxnMarkersResponse.Partition(partition_index=index, error_code=error))
            topics.append(WriteTxnMarkersResponse.Topic(name=topic.name, partitions=tuple(results)))
        written = WriteTxnMarkersResponse.Marker(producer_id=marker.producer_id, topics=tuple(topics))
        return Answer(call.id, WriteTxnMarkersResponse(markers=(written,)))

    def release(self) -> None:
        """Perform the held appends in order, and all later ones at once."""
        self.holding = False
        held, self.held = self.held, []
        for effect in held:
            self.handle(self.append(effect, self.append_error))

    def release_markers(self) -> None:
        """Write the held markers in order, and all later ones at once."""
        self.holding_markers = False
        held, self.held_markers = self.held_markers, []
        for call in held:
            self.write_markers(call)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def ask(self, request: Request, version: int = NEWEST_VERSION) -> Any:
        return self.answers[self.send(request, ClientContext(api_version=version))]

    def init(
        self, producer_id: int = -1, producer_epoch: int = -1, *, id_: str | None = ID, timeout_ms: int = 60_000
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=id_,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        response = self.ask(request)
        assert isinstance(response, InitProducerIdResponse)
        return response

    def add(self, *partitions: TopicPartition, epoch: int = 0, id_: str = ID, producer_id: int = BLOCK) -> Errors:
        """Add partitions as a partition leader does for new clients; returns their common error."""
        topics = tuple(AddPartitionsToTxnRequest.Topic(name=t, partitions=(p,)) for t, p in partitions)
        transaction = AddPartitionsToTxnRequest.Transaction(
            transactional_id=id_, producer_id=producer_id, producer_epoch=epoch, topics=topics
        )
        response = self.ask(AddPartitionsToTxnRequest(transactions=(transaction,)))
        return only_error(response.results_by_transaction[0].topic_results)

    def add_old(
        self, *partitions: TopicPartition, epoch: int = 0, version: int = 3, producer_id: int = BLOCK
    ) -> dict[TopicPartition, Errors]:
        """Add partitions as old clients do (versions 0 to 3)."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=tuple(AddPartitionsToTxnRequest.Topic(name=t, partitions=(p,)) for t, p in partitions),
        )
        return errors(self.ask(request, version).results_by_topic_v3_and_below)

    def add_offsets(self, *, epoch: int = 0, version: int = 4, producer_id: int = BLOCK) -> Errors:
        request = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, group_id="g"
        )
        error = self.ask(request, version).error_code
        assert isinstance(error, Errors)
        return error

    def end(
        self, epoch: int = 0, *, commit: bool = True, version: int = 5, id_: str = ID, producer_id: int = BLOCK
    ) -> EndTxnResponse:
        request = EndTxnRequest(transactional_id=id_, producer_id=producer_id, producer_epoch=epoch, committed=commit)
        response = self.ask(request, version)
        assert isinstance(response, EndTxnResponse)
        return response

    # ---- records -----------------------------------------------------------------------------------------------------

    def history(self, id_: str = ID) -> list[Transaction | None]:
        """All records of the id in the log, None for a tombstone."""
        found = [decode_transaction(*record) for record in self.logs.get(partition_for(id_, PARTITIONS), [])]
        return [transaction for name, transaction in filter(None, found) if name == id_]

    def known(self) -> Transaction:
        """The last record of ID."""
        transaction = self.history()[-1]
        assert transaction is not None
        return transaction


def errors(topics: tuple[AddPartitionsToTxnResponse.Topic, ...]) -> dict[TopicPartition, Errors]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
        for topic in topics
        for partition in topic.results_by_partition
    }


def only_error(topics: tuple[AddPartitionsToTxnResponse.Topic, ...]) -> Errors:
    (error,) = set(errors(topics).values())
    return error


def without_leader(cluster: ClusterImage, at: TopicPartition) -> ClusterImage:
    """The image without a leader of the partition."""
    return led_by(cluster, at, NO_LEADER)


def led_by(cluster: ClusterImage, at: TopicPartition, leader: int) -> ClusterImage:
    topic = cluster.topics[at.topic]
    state = PartitionImage(leader=leader, leader_epoch=1, replicas=(1, 2), isr=(1, 2))
    partitions = tuple(state if index == at.partition else p for index, p in enumerate(topic.partitions))
    changed = TopicImage(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
    return _with_topics(cluster, {**cluster.topics, topic.name: changed})


def without_topic(cluster: ClusterImage, name: str) -> ClusterImage:
    return _with_topics(cluster, {n: t for n, t in cluster.topics.items() if n != name})


def _with_topics(cluster: ClusterImage, topics: dict[str, TopicImage]) -> ClusterImage:
    return ClusterImage(
        version=cluster.version + 1,
        brokers=cluster.brokers,
        topics=topics,
        topics_by_id={t.topic_id: t for t in topics.values()},
        broker_config=cluster.broker_config,
    )
