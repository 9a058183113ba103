"""The transaction coordinator: transactional ids, their producers and their decisions on `__transaction_state`."""

from shareq.coordinator.other.transaction.coordinator import TransactionCoordinator

__all__ = ["TransactionCoordinator"]
