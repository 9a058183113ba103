"""The transactional ids of one partition of `__transaction_state`, as a fold of its log.

Source: Kafka's TransactionStateManager and TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Callable

from shareq.coordinator.other.transaction.records import Transaction, decode_transaction
from shareq.coordinator.other.transaction.states import TransactionState
from shareq.model.events import TransactionChanged


class TransactionShard:
    """`open` are the ids with an undecided transaction: those that can take too long. `tell` is called with each change
    once the shard `is_loaded`.

    `last_epochs` are the epochs before the present ones, by which a repeated InitProducerId is recognised. They are not
    in the log, as in Kafka: only the coordinator that raised an epoch knows what it answered.
    """

    def __init__(self, tell: Callable[[TransactionChanged], object]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.open: set[str] = set()
        self.last_epochs: dict[str, int] = {}
        self._tell = tell
        self.is_loaded = False

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Take in one record. A key of unknown type is skipped."""
        del offset, now_ms
        record = decode_transaction(key, value)
        if record is None:
            return
        transactional_id, transaction = record
        if self.is_loaded:
            self._tell_change(self.transactions.get(transactional_id), transaction)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self.open.add(transactional_id)
        else:
            self.open.discard(transactional_id)

    def _tell_change(self, known: Transaction | None, transaction: Transaction | None) -> None:
        """What is new but for the times; what is read while loading has been told when it happened."""
        former = None if known is None else _seen(known)
        if transaction is not None:
            now = _seen(transaction)
            if now != former:
                self._tell(now)
        elif former is not None:
            self._tell(former._replace(phase=TransactionState.DEAD.value, partition_count=0))

    def remember_epoch(self, transactional_id: str, last_epoch: int) -> None:
        """The epoch before the one that is in force now."""
        self.last_epochs[transactional_id] = last_epoch


def _seen(known: Transaction) -> TransactionChanged:
    return TransactionChanged(
        known.transactional_id, known.producer_id, known.producer_epoch, known.state.value, len(known.partitions)
    )
