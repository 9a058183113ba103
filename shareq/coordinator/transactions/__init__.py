"""The transaction coordinator: transactional ids with their producers and transactions, stored in
`__transaction_state`."""

from shareq.coordinator.transactions.coordinator import TransactionCoordinator

__all__ = ["TransactionCoordinator"]
