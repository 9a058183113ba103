"""The transactional ids of one partition of `__transaction_state`, replayed from its log.

Source: Kafka's TransactionStateManager and TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Callable

from shareq.coordinator.transactions.records import Transaction, decode_transaction
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.events import TransactionChanged


class TransactionShard:
    """One shard. `open`: the ids in Ongoing, whose transactions can time out. `on_change` is called with the event of
    each change after loading (`is_loaded`).

    `last_epochs`: the epochs before the present ones, by which a repeated InitProducerId is recognised. As in Kafka
    they are not recorded, so another coordinator does not recognise the repetition.
    """

    def __init__(self, on_change: Callable[[TransactionChanged], object]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.open: set[str] = set()
        self.last_epochs: dict[str, int] = {}
        self._on_change = on_change
        self.is_loaded = False

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one record. A key of unknown type is skipped."""
        del offset, now_ms
        record = decode_transaction(key, value)
        if record is None:
            return
        transactional_id, transaction = record
        if self.is_loaded:
            self._report_change(self.transactions.get(transactional_id), transaction)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self.open.add(transactional_id)
        else:
            self.open.discard(transactional_id)

    def _report_change(self, known: Transaction | None, transaction: Transaction | None) -> None:
        """Report the change unless only times changed."""
        former = None if known is None else _change_event(known)
        if transaction is not None:
            now = _change_event(transaction)
            if now != former:
                self._on_change(now)
        elif former is not None:
            self._on_change(former._replace(phase=TransactionState.DEAD.value, partition_count=0))

    def remember_epoch(self, transactional_id: str, last_epoch: int) -> None:
        """Store the epoch before the present one, -1 for none."""
        self.last_epochs[transactional_id] = last_epoch


def _change_event(known: Transaction) -> TransactionChanged:
    """The event of the present state, without times."""
    return TransactionChanged(
        known.transactional_id, known.producer_id, known.producer_epoch, known.state.value, len(known.partitions)
    )
