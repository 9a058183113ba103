"""The responses of DescribeTransactions and ListTransactions (KIP-664, KIP-1152)."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.coordinator.expressions import ExpressionError, compile_expression
from shareq.coordinator.transactions.records import Transaction, by_topic
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.errors import Errors
from shareq.model.messages.transactions import (
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)


def describe(transactional_id: str, known: Transaction | None) -> DescribeTransactionsResponse.TransactionState:
    """One transactional id, with the partitions of its transaction."""
    if known is None:
        return refused(transactional_id, Errors.TRANSACTIONAL_ID_NOT_FOUND)
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=tuple(
            DescribeTransactionsResponse.Topic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(known.partitions)
        ),
    )


def refused(transactional_id: str, error: Errors) -> DescribeTransactionsResponse.TransactionState:
    return DescribeTransactionsResponse.TransactionState(transactional_id=transactional_id, error_code=error)


def list_transactions(
    request: ListTransactionsRequest, transactions: Iterable[Transaction], now_ms: int
) -> ListTransactionsResponse:
    """The transactions that pass all filters. Unknown states in the filter match nothing and are returned as
    unknown."""
    pattern = request.transactional_id_pattern
    try:
        matches = compile_expression(pattern) if pattern else None
    except ExpressionError:
        return ListTransactionsResponse(error_code=Errors.INVALID_REGULAR_EXPRESSION)
    states = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)

    def passes(known: Transaction) -> bool:
        return (
            (not states or known.state in states)
            and (not producer_ids or known.producer_id in producer_ids)
            and (request.duration_filter < 0 or now_ms - known.start_ms > request.duration_filter)
            and (matches is None or matches(known.transactional_id))
        )

    return ListTransactionsResponse(
        unknown_state_filters=tuple(s for s in request.state_filters if s not in frozenset(TransactionState)),
        transaction_states=tuple(
            ListTransactionsResponse.TransactionState(
                transactional_id=known.transactional_id, producer_id=known.producer_id, transaction_state=known.state
            )
            for known in transactions
            if passes(known)
        ),
    )
