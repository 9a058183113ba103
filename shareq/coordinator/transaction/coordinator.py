"""The transaction coordinator of one broker: it knows the transactional ids in those partitions of
`__transaction_state` that the broker leads, and gives producer ids to everybody else.

Source: Kafka's TransactionCoordinator; KIP-98, KIP-360, KIP-664, KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.shard import BackgroundOperation, Operation, Outcome, itself
from shareq.coordinator.transaction.adding import Addition, add_partitions
from shareq.coordinator.transaction.decisions import LAST_EPOCH, Means, announce_again, complete, end_transaction
from shareq.coordinator.transaction.describe import describe, list_transactions, refused
from shareq.coordinator.transaction.housekeeping import Housekeeping
from shareq.coordinator.transaction.initialize import check_request, init_producer_id
from shareq.coordinator.transaction.joining import from_client, from_leader
from shareq.coordinator.transaction.markers import RETRY_BACKOFF_MS, Ending, Markers
from shareq.coordinator.transaction.producer_ids import ProducerIds
from shareq.coordinator.transaction.records import Transaction
from shareq.coordinator.transaction.state import TransactionShard
from shareq.model.actor import (
    Answer,
    Effect,
    ImageChanged,
    Incoming,
    Message,
    Respond,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition, partition_for
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

R = TypeVar("R")
Compute = Callable[[TransactionShard, int], Outcome[R]]
Then = Callable[[R, int], Iterable[Effect]]

FENCED_VERSION: dict[type[Request], int] = {
    InitProducerIdRequest: 4,
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
}
"""Since these versions PRODUCER_FENCED is known; before them it is called INVALID_PRODUCER_EPOCH (KIP-588)."""


def fencing(error: Errors, request: type[Request], version: int) -> Errors:
    """The error as a client of this version knows it."""
    known = error is not Errors.PRODUCER_FENCED or version >= FENCED_VERSION[request]
    return error if known else Errors.INVALID_PRODUCER_EPOCH


class TransactionCoordinator:
    """The actor."""

    def __init__(self, broker_id: int, *, traced: bool) -> None:
        self._image = ClusterImage()
        self._told: list[Effect] = []
        tell = self._told.append if traced else _keep_quiet
        self._runtime = ShardRuntime(
            TRANSACTION_STATE_TOPIC,
            lambda _: TransactionShard(self._on_load, tell),
            traced=traced,
            retry_ms=RETRY_BACKOFF_MS,
        )
        self._epochs: dict[int, int] = {}
        self._ids = ProducerIds(broker_id, self._runtime.next_id)
        self._held: list[tuple[Incoming, Response]] = []
        self._markers = Markers(self._runtime.next_id, self._finish)
        self._means = Means(self._ids, self._announce)
        self._housekeeping = Housekeeping(self._runtime, self._means)
        self._services: dict[type[Request], Callable[[Incoming, Any, int], list[Effect]]] = {
            InitProducerIdRequest: self._init_producer_id,
            AddPartitionsToTxnRequest: self._add_partitions,
            AddOffsetsToTxnRequest: self._add_offsets,
            EndTxnRequest: self._end,
            DescribeTransactionsRequest: self._describe,
            ListTransactionsRequest: self._list,
        }

    @property
    def wake_at_ms(self) -> int | None:
        times = (self._runtime.wake_at_ms, self._markers.wake_at_ms, self._housekeeping.wake_at_ms)
        return min((t for t in times if t is not None), default=None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        effects = self._handle(message, now_ms)
        effects += self._ids.refill()
        if self._told:
            effects = self._told + effects
            self._told.clear()
        return effects

    def _handle(self, message: Message, now_ms: int) -> list[Effect]:
        if isinstance(message, Incoming):
            return self._services[type(message.request)](message, message.request, now_ms)
        if isinstance(message, Answer):
            return self._answered(message, now_ms)
        if isinstance(message, ImageChanged):
            return self._image_changed(message.image, now_ms)
        if isinstance(message, ShardElected):
            self._epochs[message.partition] = message.leader_epoch
            self._markers.resigned(message.partition)
        elif isinstance(message, ShardResigned):
            self._markers.resigned(message.partition)
        effects = self._runtime.handle(message, now_ms)
        if isinstance(message, Tick):
            effects += self._housekeeping.tick(now_ms)
            effects += self._markers.tick(now_ms)
        return effects

    # ---- shards ------------------------------------------------------------------------------------------------------

    def _partition_for(self, transactional_id: str) -> int | None:
        """Where the id is kept; None as long as the topic does not exist."""
        topic = self._image.topics.get(TRANSACTION_STATE_TOPIC)
        return partition_for(transactional_id, len(topic.partitions)) if topic else None

    def _schedule(
        self, transactional_id: str, compute: Compute[R], failure: Callable[[Errors], R], then: Then[R], now_ms: int
    ) -> list[Effect]:
        """Run an operation on the shard of the id. `failure` makes the result where it could not be."""
        partition = self._partition_for(transactional_id)
        if partition is None:
            return list(then(failure(Errors.COORDINATOR_NOT_AVAILABLE), now_ms))
        return self._runtime.schedule(partition, Operation(compute, failure, then), now_ms)

    def _on_load(self, shard: TransactionShard) -> Iterable[Operation[TransactionShard, Errors]]:
        """Decisions whose markers may not have been written: they are sent again."""
        for known in shard.transactions.values():
            if known.state.is_preparing:
                yield BackgroundOperation(partial(announce_again, known, self._means))

    def _image_changed(self, image: ClusterImage, now_ms: int) -> list[Effect]:
        self._image = image
        self._housekeeping.configure(image.broker_config, now_ms)
        return self._markers.image_changed(image, now_ms)

    # ---- endings -----------------------------------------------------------------------------------------------------

    def _announce(self, decided: Transaction, now_ms: int) -> list[Effect]:
        """A decision is stored: send its markers."""
        partition = self._partition_for(decided.transactional_id)
        assert partition is not None, "what is stored has a place"
        return self._markers.begin(Ending(partition, self._epochs[partition], decided), now_ms)

    def _finish(self, ending: Ending, now_ms: int) -> list[Effect]:
        """All markers are written: complete the transaction. This ends with the shard, and not with a failed append."""

        def then(error: Errors, now_ms: int) -> Iterable[Effect]:
            del error, now_ms
            self._markers.done(ending)
            return ()

        operation = BackgroundOperation(partial(complete, ending.transaction), then)
        return self._runtime.schedule(ending.shard, operation, now_ms)

    def _answered(self, answer: Answer, now_ms: int) -> list[Effect]:
        """Producer ids have come, or a leader has written markers."""
        if not self._ids.answered(answer):
            return self._markers.answered(answer, now_ms)
        held, self._held = self._held, []
        if self._ids.at_hand:
            return [effect for message, _ in held for effect in self._handle(message, now_ms)]
        return [Respond(message.id, failed) for message, failed in held]

    def _hold(self, message: Incoming, failure: Callable[[Errors], Response]) -> list[Effect]:
        """Look at the request again when there are producer ids, or tell the client to come back."""
        self._ids.want()
        self._held.append((message, failure(Errors.COORDINATOR_LOAD_IN_PROGRESS)))
        return []

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _init_producer_id(self, message: Incoming, request: InitProducerIdRequest, now_ms: int) -> list[Effect]:
        def failure(error: Errors) -> InitProducerIdResponse:
            return InitProducerIdResponse(error_code=error)

        error = check_request(request, self._image.broker_config["transaction.max.timeout.ms"])
        if error:
            return [Respond(message.id, failure(error))]
        if not self._ids.at_hand:
            return self._hold(message, failure)
        if request.transactional_id is None:
            producer_id = self._ids.take()
            assert producer_id is not None, "one is at hand"
            return [Respond(message.id, InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))]
        compute = partial(init_producer_id, request, self._means)
        return self._schedule(request.transactional_id, compute, failure, _answer(message, failure), now_ms)

    def _end(self, message: Incoming, request: EndTxnRequest, now_ms: int) -> list[Effect]:
        def failure(error: Errors) -> EndTxnResponse:
            return EndTxnResponse(error_code=error)

        if not request.transactional_id:
            return [Respond(message.id, failure(Errors.INVALID_REQUEST))]
        if request.producer_epoch >= LAST_EPOCH and not self._ids.at_hand:
            return self._hold(message, failure)
        compute = partial(end_transaction, request, message.client.api_version, self._means)
        return self._schedule(request.transactional_id, compute, failure, _answer(message, failure), now_ms)

    def _add_partitions(self, message: Incoming, request: AddPartitionsToTxnRequest, now_ms: int) -> list[Effect]:
        if request.transactions:
            return from_leader(message, request, self._schedule, now_ms)
        worded = partial(fencing, request=AddPartitionsToTxnRequest, version=message.client.api_version)
        return from_client(message, request, self._image, self._schedule, now_ms, fencing=worded)

    def _add_offsets(self, message: Incoming, request: AddOffsetsToTxnRequest, now_ms: int) -> list[Effect]:
        """The partition that keeps the group's offsets joins the transaction."""
        topic = self._image.topics.get(GROUP_METADATA_TOPIC)
        error = Errors.NONE if topic else Errors.COORDINATOR_NOT_AVAILABLE
        if not request.transactional_id:
            error = Errors.INVALID_REQUEST
        if error or topic is None:
            return [Respond(message.id, AddOffsetsToTxnResponse(error_code=error))]
        at = TopicPartition(GROUP_METADATA_TOPIC, partition_for(request.group_id, len(topic.partitions)))
        addition = Addition(request.transactional_id, request.producer_id, request.producer_epoch, frozenset((at,)))

        def then(error: Errors, now_ms: int) -> Iterable[Effect]:
            del now_ms
            known = fencing(error, AddOffsetsToTxnRequest, message.client.api_version)
            return (Respond(message.id, AddOffsetsToTxnResponse(error_code=known)),)

        return self._schedule(request.transactional_id, partial(add_partitions, addition), itself, then, now_ms)

    def _describe(self, message: Incoming, request: DescribeTransactionsRequest, now_ms: int) -> list[Effect]:
        del now_ms
        states = tuple(self._describe_one(transactional_id) for transactional_id in request.transactional_ids)
        return [Respond(message.id, DescribeTransactionsResponse(transaction_states=states))]

    def _describe_one(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        if not transactional_id:
            return refused(transactional_id, Errors.INVALID_REQUEST)
        partition = self._partition_for(transactional_id)
        if partition is None:
            return refused(transactional_id, Errors.COORDINATOR_NOT_AVAILABLE)
        shard = self._runtime.shard(partition)
        if shard is None:
            return refused(transactional_id, self._runtime.refusal(partition))
        return describe(transactional_id, shard.transactions.get(transactional_id))

    def _list(self, message: Incoming, request: ListTransactionsRequest, now_ms: int) -> list[Effect]:
        """All that this broker coordinates; not a part of it, while some shard is loading."""
        refusals = {self._runtime.refusal(partition) for partition in self._epochs}
        if Errors.COORDINATOR_LOAD_IN_PROGRESS in refusals:
            return [Respond(message.id, ListTransactionsResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS))]
        known = [known for _, shard in self._runtime.active() for known in shard.transactions.values()]
        return [Respond(message.id, list_transactions(request, known, now_ms))]


def _keep_quiet(event: Event) -> None:
    del event


def _answer(message: Incoming, failure: Callable[[Errors], Any]) -> Then[Any]:
    """The way to answer a request, in words that its version knows."""

    def then(response: Any, now_ms: int) -> Iterable[Effect]:
        del now_ms
        known = fencing(response.error_code, type(message.request), message.client.api_version)
        return (Respond(message.id, response if known is response.error_code else failure(known)),)

    return then
