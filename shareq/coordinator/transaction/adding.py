"""Partitions join a transaction: at the client's request, with its first batch there, or by committed offsets.

Source: KIP-98; KIP-890 for the questions of partition leaders.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.coordinator.shard import Outcome
from shareq.coordinator.transaction.records import Transaction, encode_transaction
from shareq.coordinator.transaction.state import TransactionShard
from shareq.coordinator.transaction.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition


class Addition(NamedTuple):
    """Who wants which partitions in its transaction; `client_version` as in `Transaction`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int = 0


def check_producer(known: Transaction | None, producer_id: int, producer_epoch: int) -> Errors:
    """Whether this producer may do anything with the transaction now."""
    if known is None or known.producer_id != producer_id:
        return Errors.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer_epoch:
        return Errors.PRODUCER_FENCED
    return Errors.CONCURRENT_TRANSACTIONS if known.state.is_preparing else Errors.NONE


def add_partitions(addition: Addition, shard: TransactionShard, now_ms: int) -> Outcome[Errors]:
    """Add all the partitions, which begins the transaction where none is open. Those that are in it cost nothing."""
    known = shard.transactions.get(addition.transactional_id)
    error = check_producer(known, addition.producer_id, addition.producer_epoch)
    if error:
        return Outcome(error)
    assert known is not None
    is_open = known.state is TransactionState.ONGOING
    if is_open and addition.partitions <= known.partitions:
        return Outcome(Errors.NONE)
    grown = known._replace(
        state=TRANSITIONS[known.state, TransactionEvent.ADD],
        partitions=known.partitions | addition.partitions,
        last_update_ms=now_ms,
        start_ms=known.start_ms if is_open else now_ms,
        client_version=addition.client_version,
    )
    return Outcome(Errors.NONE, [encode_transaction(grown)])


def verify_partitions(
    addition: Addition, shard: TransactionShard, now_ms: int
) -> Outcome[dict[TopicPartition, Errors]]:
    """Which of the partitions belong to the open transaction; nothing is added."""
    del now_ms
    known = shard.transactions.get(addition.transactional_id)
    error = check_producer(known, addition.producer_id, addition.producer_epoch)
    inside = known.partitions if known else frozenset()
    return Outcome(
        {at: error or (Errors.NONE if at in inside else Errors.TRANSACTION_ABORTABLE) for at in addition.partitions}
    )
