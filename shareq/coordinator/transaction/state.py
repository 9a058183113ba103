"""The transactional ids of one partition of `__transaction_state`, as a fold of its log.

Source: Kafka's TransactionStateManager and TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shareq.coordinator.shard import Operation
from shareq.coordinator.transaction.records import Transaction, decode_transaction
from shareq.coordinator.transaction.states import TransactionState


class TransactionShard:
    """`open` are the ids with a transaction that nobody has decided yet: those that can take too long.

    `last_epochs` are the epochs before the present ones, by which a repeated InitProducerId is recognised. They are not
    in the log, as in Kafka: only the coordinator that raised an epoch knows what it answered.
    """

    def __init__(self, when_loaded: Callable[[TransactionShard], Iterable[Operation[TransactionShard, Any]]]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.open: set[str] = set()
        self.last_epochs: dict[str, int] = {}
        self._when_loaded = when_loaded

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Take in one record. A key of unknown type is skipped."""
        del offset, now_ms
        record = decode_transaction(key, value)
        if record is None:
            return
        transactional_id, transaction = record
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self.open.add(transactional_id)
        else:
            self.open.discard(transactional_id)

    def loaded(self, now_ms: int) -> Iterable[Operation[TransactionShard, Any]]:
        del now_ms
        return self._when_loaded(self)

    def remember_epoch(self, transactional_id: str, last_epoch: int) -> None:
        """The epoch before the one that is in force now."""
        self.last_epochs[transactional_id] = last_epoch
