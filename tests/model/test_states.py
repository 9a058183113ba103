"""Every (state, event) pair of the record's life, the illegal ones too. The table is KIP-932's, restated by hand."""

from __future__ import annotations

import pytest

from shareq.model.states import RecordEvent, RecordState, next_state

LIMIT = 5
NOTHING = dict.fromkeys(RecordEvent)
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED"
ARCHIVING = "ARCHIVING"

EXPECTED: dict[RecordState, dict[RecordEvent, str | None]] = {
    RecordState.AVAILABLE: NOTHING
    | {RecordEvent.ACQUIRE: ACQUIRED, RecordEvent.LOG_START: ARCHIVED, RecordEvent.MISSING: ARCHIVED},
    RecordState.ACQUIRED: {
        RecordEvent.ACQUIRE: None,
        RecordEvent.ACCEPT: ACKNOWLEDGED,
        RecordEvent.RELEASE: AVAILABLE,
        RecordEvent.REJECT: ARCHIVED,
        RecordEvent.GAP: ARCHIVED,
        RecordEvent.RENEW: ACQUIRED,
        RecordEvent.LOCK_TIMEOUT: AVAILABLE,
        RecordEvent.SESSION_RELEASE: AVAILABLE,
        RecordEvent.LOG_START: None,
        RecordEvent.MISSING: None,
        RecordEvent.ABORTED: ARCHIVED,
        RecordEvent.DEAD_LETTERED: None,
        RecordEvent.EXPIRED: None,
        RecordEvent.TXN_ABORT: AVAILABLE,
    },
    RecordState.ACKNOWLEDGED: NOTHING,
    RecordState.ARCHIVING: NOTHING | {RecordEvent.DEAD_LETTERED: ARCHIVED},
    RecordState.ARCHIVED: NOTHING,
}
RETURNING = (RecordEvent.RELEASE, RecordEvent.LOCK_TIMEOUT, RecordEvent.SESSION_RELEASE, RecordEvent.TXN_ABORT)


@pytest.mark.parametrize(
    ("state", "event"),
    [pytest.param(s, e, id=f"{s.name.lower()} + {e}") for s in RecordState for e in RecordEvent],
)
@pytest.mark.parametrize("delivery_count", [1, LIMIT - 1, LIMIT, LIMIT + 1])
@pytest.mark.parametrize("queue", [False, True], ids=["no queue", "queue"])
def test_every_pair(state: RecordState, event: RecordEvent, delivery_count: int, queue: bool) -> None:
    expected = EXPECTED[state][event]
    if state is RecordState.ACQUIRED and event in RETURNING and delivery_count >= LIMIT:
        expected = ARCHIVING if queue else ARCHIVED
    if state is RecordState.ACQUIRED and event is RecordEvent.REJECT and queue:
        expected = ARCHIVING
    reached = next_state(
        state, event, delivery_count=delivery_count, delivery_count_limit=LIMIT, dead_letter_queue=queue
    )
    assert (reached.name if reached is not None else None) == expected


@pytest.mark.parametrize("state", list(RecordState))
def test_terminal_states_are_those_that_no_event_leaves(state: RecordState) -> None:
    assert state.terminal is not any(EXPECTED[state].values())
