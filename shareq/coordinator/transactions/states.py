"""The states of a transactional id, and the table of their transitions.

Source: Kafka's TransactionState; KIP-98, KIP-890 for aborts without partitions.
"""

from __future__ import annotations

from enum import StrEnum


class TransactionState(StrEnum):
    """The states, named as tools show them. Partitions are added in Ongoing only; Prepare* waits for markers.

    Kafka's PrepareEpochFence does not exist here: an operation ends before the next one begins, so no request meets a
    producer between its fencing and its abort.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"

    @property
    def status(self) -> int:
        """The number of the state in records of `__transaction_state`."""
        return _STATUS[self]

    @property
    def is_preparing(self) -> bool:
        """True if the transaction is decided and its markers are being written."""
        return self in _PREPARING


class TransactionEvent(StrEnum):
    """The events of a transactional id. ABORT includes the abort of a fenced producer and of a timed-out
    transaction."""

    INIT = "init"
    ADD = "add"
    COMMIT = "commit"
    ABORT = "abort"
    MARKED = "marked"
    EXPIRED = "expired"


_S, _E = TransactionState, TransactionEvent
_STATUS = {state: status for status, state in enumerate(TransactionState)}
_PREPARING = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
AT_REST = (_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
"""The states without open transaction: a producer may begin one, and an unused id may expire."""

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    **{(state, _E.INIT): _S.EMPTY for state in AT_REST},
    **{(state, _E.ADD): _S.ONGOING for state in (*AT_REST, _S.ONGOING)},
    (_S.ONGOING, _E.COMMIT): _S.PREPARE_COMMIT,
    **{(state, _E.ABORT): _S.PREPARE_ABORT for state in (*AT_REST, _S.ONGOING)},
    (_S.PREPARE_COMMIT, _E.MARKED): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _E.MARKED): _S.COMPLETE_ABORT,
    **{(state, _E.EXPIRED): _S.DEAD for state in AT_REST},
}
"""The next state by state and event. Pairs without an entry cannot occur. ABORT at rest: with transaction.version 2 an
abort without transaction is recorded, to raise the epoch."""
