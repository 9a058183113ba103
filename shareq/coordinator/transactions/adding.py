"""Adds partitions to a transaction, and verifies that a transaction contains them.

Source: KIP-98; KIP-890 for the requests of partition leaders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.records import Transaction, encode_transaction
from shareq.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.workflow import Workflow

R = TypeVar("R")
Results = dict[TopicPartition, Errors]
"""The error of each partition."""


class Addition(NamedTuple):
    """The partitions to add or verify, and the producer; `client_version` as in `Transaction`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int = 0


def check_producer(known: Transaction | None, producer_id: int, producer_epoch: int) -> Errors:
    """The error of a producer that may not change the transaction now; NONE if it may."""
    if known is None or known.producer_id != producer_id:
        return Errors.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer_epoch:
        return Errors.PRODUCER_FENCED
    return Errors.CONCURRENT_TRANSACTIONS if known.state.is_preparing else Errors.NONE


def add_partitions(context: TransactionContext, addition: Addition, failure: Callable[[Errors], R]) -> Workflow[R]:
    """Add all partitions; this begins a transaction if none is open. Nothing is recorded if all are in it already.

    The result is `failure(error)`, also for NONE.
    """
    shard = yield context.turn(addition.transactional_id, failure)
    known = shard.transactions.get(addition.transactional_id)
    error = check_producer(known, addition.producer_id, addition.producer_epoch)
    if error or known is None:
        return failure(error)
    is_open = known.state is TransactionState.ONGOING
    if is_open and addition.partitions <= known.partitions:
        return failure(Errors.NONE)
    grown = known._replace(
        state=TRANSITIONS[known.state, TransactionEvent.ADD],
        partitions=known.partitions | addition.partitions,
        last_update_ms=context.day_ms,
        start_ms=known.start_ms if is_open else context.day_ms,
        client_version=addition.client_version,
    )
    return failure((yield Append([encode_transaction(grown)])))


def verify_partitions(
    context: TransactionContext, addition: Addition, failure: Callable[[Errors], Results]
) -> Workflow[Results]:
    """The error of each partition: NONE if the transaction contains it, else TRANSACTION_ABORTABLE. Adds nothing."""
    shard = yield context.turn(addition.transactional_id, failure)
    known = shard.transactions.get(addition.transactional_id)
    error = check_producer(known, addition.producer_id, addition.producer_epoch)
    inside = known.partitions if known else frozenset()
    return {at: error or (Errors.NONE if at in inside else Errors.TRANSACTION_ABORTABLE) for at in addition.partitions}
