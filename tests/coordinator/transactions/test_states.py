"""The states of a transactional id and their transitions."""

from __future__ import annotations

from itertools import product

import pytest

from shareq.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState

S, E = TransactionState, TransactionEvent

LEGAL = {
    S.EMPTY: {E.INIT: S.EMPTY, E.ADD: S.ONGOING, E.ABORT: S.PREPARE_ABORT, E.EXPIRED: S.DEAD},
    S.ONGOING: {E.ADD: S.ONGOING, E.COMMIT: S.PREPARE_COMMIT, E.ABORT: S.PREPARE_ABORT},
    S.PREPARE_COMMIT: {E.MARKED: S.COMPLETE_COMMIT},
    S.PREPARE_ABORT: {E.MARKED: S.COMPLETE_ABORT},
    S.COMPLETE_COMMIT: {E.INIT: S.EMPTY, E.ADD: S.ONGOING, E.ABORT: S.PREPARE_ABORT, E.EXPIRED: S.DEAD},
    S.COMPLETE_ABORT: {E.INIT: S.EMPTY, E.ADD: S.ONGOING, E.ABORT: S.PREPARE_ABORT, E.EXPIRED: S.DEAD},
    S.DEAD: {},
}


@pytest.mark.parametrize(("state", "event"), [pytest.param(s, e, id=f"{s} {e}") for s, e in product(S, E)])
def test_next_state_of_each_state_and_event(state: TransactionState, event: TransactionEvent) -> None:
    assert TRANSITIONS.get((state, event)) == LEGAL[state].get(event)


@pytest.mark.parametrize(("state", "status"), [pytest.param(state, status, id=state) for status, state in enumerate(S)])
def test_state_numbers_are_those_of_kafka(state: TransactionState, status: int) -> None:
    numbers = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead"]
    assert (state.status, numbers[status]) == (status, state)
