"""The transaction coordinator of one broker: the transactional ids in those partitions of `__transaction_state` that
the broker leads, and producer ids for idempotent producers without transactional id.

Source: Kafka's TransactionCoordinator; KIP-98, KIP-360, KIP-664, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.decisions import end_transaction
from shareq.coordinator.transactions.describe import describe, list_transactions, refused
from shareq.coordinator.transactions.housekeeping import Housekeeping
from shareq.coordinator.transactions.initialize import init_producer_id
from shareq.coordinator.transactions.joining import add_offsets, from_client, from_leader
from shareq.coordinator.transactions.markers import RETRY_BACKOFF_MS, Endings
from shareq.coordinator.transactions.state import TransactionShard
from shareq.model.actor import (
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
from shareq.model.ids import TRANSACTION_STATE_TOPIC
from shareq.model.messages.base import Request
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.workflow import Workflow

FENCED_VERSION: dict[type[Request], int] = {
    InitProducerIdRequest: 4,
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
}
"""The first versions whose clients know PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH (KIP-588)."""


def fencing(error: Errors, request: type[Request], version: int) -> Errors:
    """The error, with PRODUCER_FENCED replaced by INVALID_PRODUCER_EPOCH for old versions."""
    known = error is not Errors.PRODUCER_FENCED or version >= FENCED_VERSION[request]
    return error if known else Errors.INVALID_PRODUCER_EPOCH


class TransactionCoordinator:
    """The actor. Each request is a workflow (see `_work`), except the two that only read."""

    def __init__(self, broker_id: int, *, traced: bool, time_of_day: TimeOfDay = same_time) -> None:
        self._changes: list[Effect] = []
        on_change = self._changes.append if traced else _drop
        self._runtime: ShardRuntime[TransactionShard] = ShardRuntime(
            TRANSACTION_STATE_TOPIC,
            lambda _: TransactionShard(on_change),
            self._on_load,
            traced=traced,
            retry_ms=RETRY_BACKOFF_MS,
            time_of_day=time_of_day,
        )
        self._context = TransactionContext(broker_id, self._runtime)
        self._endings = Endings(self._context)
        self._housekeeping = Housekeeping(self._context, self._endings)

    @property
    def wake_at_ms(self) -> int | None:
        times = (self._runtime.wake_at_ms, self._housekeeping.wake_at_ms)
        return min((t for t in times if t is not None), default=None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        runtime, context = self._runtime, self._context
        runtime.now_ms = now_ms
        effects: list[Effect] = []
        if isinstance(message, Incoming):
            self._serve(message)
        elif isinstance(message, ImageChanged):
            context.image = message.image
            self._housekeeping.configure(message.image.broker_config, now_ms)
            runtime.end_pauses()  # markers may have new leaders: retry at once
        else:
            if isinstance(message, ShardElected):
                context.epochs[message.partition] = message.leader_epoch
            if isinstance(message, ShardElected | ShardResigned):
                self._endings.resigned(message.partition)
            effects = runtime.handle(message, now_ms)
            if isinstance(message, Tick):
                self._housekeeping.tick(now_ms)
        if context.ids.is_low:
            runtime.start(context.ids.fetch())
        effects += runtime.take_effects()
        if self._changes:
            effects = self._changes + effects
            self._changes.clear()
        return effects

    def _on_load(self, partition: int, shard: TransactionShard) -> Iterable[Workflow[object]]:
        """Send the markers of decided transactions again, as the former coordinator may not have written all."""
        shard.is_loaded = True
        return [
            self._endings.end(partition, known) for known in shard.transactions.values() if known.state.is_preparing
        ]

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _serve(self, message: Incoming) -> None:
        request: Any = message.request
        if isinstance(request, DescribeTransactionsRequest):
            states = tuple(self._describe(transactional_id) for transactional_id in request.transactional_ids)
            self._respond(message, DescribeTransactionsResponse(transaction_states=states))
        elif isinstance(request, ListTransactionsRequest):
            self._respond(message, self._list(request))
        else:
            self._runtime.start(self._work(request, message.client.api_version), partial(self._respond, message))

    def _work(self, request: Any, version: int) -> Workflow[Any]:
        context, endings = self._context, self._endings
        if isinstance(request, InitProducerIdRequest):
            return init_producer_id(context, endings, request)
        if isinstance(request, EndTxnRequest):
            return end_transaction(context, endings, request, version)
        if isinstance(request, AddOffsetsToTxnRequest):
            return add_offsets(context, request)
        if isinstance(request, AddPartitionsToTxnRequest):
            if request.transactions:
                return from_leader(context, request)
            return from_client(context, request, partial(fencing, request=AddPartitionsToTxnRequest, version=version))
        raise TypeError(f"{type(request).__name__} is not a request of the transaction coordinator")

    def _respond(self, message: Incoming, response: Any) -> None:
        """Answer the request, with an error code that the client's version knows."""
        kind = type(message.request)
        if kind in FENCED_VERSION:
            known = fencing(response.error_code, kind, message.client.api_version)
            if known is not response.error_code:
                response = type(response)(error_code=known)
        self._runtime.effects.append(Respond(message.id, response))

    def _describe(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        if not transactional_id:
            return refused(transactional_id, Errors.INVALID_REQUEST)
        partition = self._context.partition_of(transactional_id)
        shard = self._runtime.shard(partition)
        if shard is None:
            return refused(transactional_id, self._runtime.refusal(partition))
        return describe(transactional_id, shard.transactions.get(transactional_id))

    def _list(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """All transactions of this broker; COORDINATOR_LOAD_IN_PROGRESS while one of its shards is loading."""
        refusals = {self._runtime.refusal(partition) for partition in self._context.epochs}
        if Errors.COORDINATOR_LOAD_IN_PROGRESS in refusals:
            return ListTransactionsResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS)
        known = [known for _, shard in self._runtime.active() for known in shard.transactions.values()]
        return list_transactions(request, known, self._context.day_ms)


def _drop(event: Event) -> None:
    del event
