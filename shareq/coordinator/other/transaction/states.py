"""The stations of a transactional id, and the one table of what leads from which to which.

Source: Kafka's TransactionState; KIP-98, KIP-890 for aborts without partitions.
"""

from __future__ import annotations

from enum import StrEnum


class TransactionState(StrEnum):
    """Named as tools show them. Only Ongoing has partitions that may still grow; Prepare* waits for markers.

    Kafka's PrepareEpochFence is left out: with us an operation is settled before the next one begins, so nobody can see
    a producer between its fencing and its abort.
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
        """The number that stands for the state in `__transaction_state`."""
        return _STATUS[self]

    @property
    def is_preparing(self) -> bool:
        """Whether the decision is made and markers are on their way."""
        return self in _PREPARING


class TransactionEvent(StrEnum):
    """What can happen to a transactional id. A producer that is fenced, or too slow, is an ABORT."""

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
"""Where nothing is open: a producer may begin, and an id that nobody uses may be forgotten."""

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    **{(state, _E.INIT): _S.EMPTY for state in AT_REST},
    **{(state, _E.ADD): _S.ONGOING for state in (*AT_REST, _S.ONGOING)},
    (_S.ONGOING, _E.COMMIT): _S.PREPARE_COMMIT,
    **{(state, _E.ABORT): _S.PREPARE_ABORT for state in (*AT_REST, _S.ONGOING)},
    (_S.PREPARE_COMMIT, _E.MARKED): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _E.MARKED): _S.COMPLETE_ABORT,
    **{(state, _E.EXPIRED): _S.DEAD for state in AT_REST},
}
"""A missing row is not possible. Aborts of nothing, at rest, are those of transaction.version 2."""
