"""The transaction coordinator: transactional ids with their producers and transactions, stored in
`__transaction_state`."""

from shareq.coordinator.other.transaction.coordinator import TransactionCoordinator

__all__ = ["TransactionCoordinator"]
