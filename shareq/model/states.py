"""Record states and the table of legal transitions. A transition that is not in the table is an error.

Source: KIP-932, "In-flight records"; states and codes as Kafka stores them. ARCHIVING is the dead-letter queue's
intermediate state (KIP-1191).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class RecordState(IntEnum):
    """State of an in-flight record; the value is the code in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def terminal(self) -> bool:
        """True if no event can change the record, so that the SPSO may move past it."""
        return self in TERMINAL


TERMINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})


class AcknowledgeType(IntEnum):
    """How a consumer acknowledges a record; the value is the code on the wire."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


VERDICTS: Final = tuple(kind for kind in AcknowledgeType if kind is not AcknowledgeType.GAP)
"""The types that an application may pass, in ascending order: only the client itself sends GAP."""


class RecordEvent(StrEnum):
    """The events of an in-flight record."""

    ACQUIRE = "acquire"
    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"
    GAP = "gap"
    RENEW = "renew"
    LOCK_TIMEOUT = "lock_timeout"
    SESSION_RELEASE = "session_release"
    LOG_START = "log_start"
    MISSING = "missing"
    ABORTED = "aborted"
    DEAD_LETTERED = "dead_lettered"
    EXPIRED = "expired"
    """The time to live of the record is over (an experiment): in `EXPERIMENTAL_TRANSITIONS`."""
    TXN_ABORT = "txn_abort"
    """The transaction that its acknowledgement is staged in was aborted (an experiment), as EXPIRED."""


PREPARED: Final = "prepared"
SETTLED: Final = "settled"
ABANDONED: Final = "abandoned"
"""Causes of a `RecordsChanged` beside the record events: a state write is under way, succeeded, failed."""
RESTED: Final = "rested"
"""Another cause: the rest of a released record is over (an experiment)."""
STAGED: Final = "staged"
TXN_COMMIT: Final = "txn_commit"
"""Further causes: an acknowledgement waits for the end of a transaction; the transaction was committed (an
experiment)."""


_A, _Q, _K, _R = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
_I = RecordState.ARCHIVING
_E = RecordEvent

TRANSITIONS: dict[tuple[RecordState, RecordEvent], RecordState] = {
    (_A, _E.ACQUIRE): _Q,
    (_A, _E.LOG_START): _R,
    (_A, _E.MISSING): _R,
    (_Q, _E.ACCEPT): _K,
    (_Q, _E.RELEASE): _A,
    (_Q, _E.REJECT): _R,
    (_Q, _E.GAP): _R,
    (_Q, _E.RENEW): _Q,
    (_Q, _E.LOCK_TIMEOUT): _A,
    (_Q, _E.SESSION_RELEASE): _A,
    (_Q, _E.ABORTED): _R,
    (_I, _E.DEAD_LETTERED): _R,
}
"""The next state by state and event; an absent pair is illegal. `next_state` adds the delivery count limit and the
dead-letter queue."""

EXPERIMENTAL_TRANSITIONS: dict[tuple[RecordState, RecordEvent], RecordState] = {
    (_A, _E.EXPIRED): _R,
    (_Q, _E.TXN_ABORT): _A,
}
"""The transitions that only experiments have, as in TRANSITIONS. Expired records may go to the dead-letter queue
first."""

RETURNING = frozenset({_E.RELEASE, _E.LOCK_TIMEOUT, _E.SESSION_RELEASE, _E.TXN_ABORT})
"""The events that make a record AVAILABLE again, unless it has reached the delivery count limit."""

ACKNOWLEDGE_EVENT = {
    AcknowledgeType.GAP: _E.GAP,
    AcknowledgeType.ACCEPT: _E.ACCEPT,
    AcknowledgeType.RELEASE: _E.RELEASE,
    AcknowledgeType.REJECT: _E.REJECT,
    AcknowledgeType.RENEW: _E.RENEW,
}


_TXN_ABORT = RecordEvent.TXN_ABORT


def next_state(
    state: RecordState,
    event: RecordEvent,
    *,
    delivery_count: int,
    delivery_count_limit: int,
    dead_letter_queue: bool = False,
) -> RecordState | None:
    """The state after `event`, or None if the event is illegal (the request is answered with INVALID_RECORD_STATE).

    A record at the delivery count limit is archived instead of made AVAILABLE (KIP-932, "Delivery count limit"). With
    a dead-letter queue, such a record and a rejected one are ARCHIVING until they are in the queue (KIP-1191).
    """
    target = TRANSITIONS.get((state, event))
    if event is _TXN_ABORT:
        target = EXPERIMENTAL_TRANSITIONS.get((state, event))
    used_up = event in RETURNING and target is _A and delivery_count >= delivery_count_limit
    if dead_letter_queue and (used_up or (event is _E.REJECT and target is _R)):
        return _I
    return _R if used_up else target


class GroupState(StrEnum):
    """State of a share group as described to admins. No group ever enters DEAD or UNKNOWN."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"
    UNKNOWN = "Unknown"


class PartitionLoadState(StrEnum):
    """State of a share-partition on its leader. Records are acquired only in ACTIVE."""

    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class LoadEvent(StrEnum):
    """The events that change it: the durable state is being read, has been loaded, is invalid; it was dropped."""

    READ = "read"
    LOADED = "loaded"
    INVALID = "invalid"
    FENCED = "fenced"


_EMPTY, _INITIALIZING, _ACTIVE, _FAILED, _FENCED = PartitionLoadState

LOAD_TRANSITIONS: dict[tuple[PartitionLoadState, LoadEvent], PartitionLoadState] = {
    (_EMPTY, LoadEvent.READ): _INITIALIZING,
    (_EMPTY, LoadEvent.LOADED): _ACTIVE,
    (_EMPTY, LoadEvent.INVALID): _FAILED,
    (_INITIALIZING, LoadEvent.LOADED): _ACTIVE,
    (_INITIALIZING, LoadEvent.INVALID): _FAILED,
    (_INITIALIZING, LoadEvent.FENCED): _FENCED,
    (_ACTIVE, LoadEvent.FENCED): _FENCED,
    (_FAILED, LoadEvent.FENCED): _FENCED,
}
"""The next status by status and event; pairs without an entry cannot occur. A share-partition that is only browsed
goes from EMPTY to ACTIVE at once."""


class AcquireMode(IntEnum):
    """KIP-1206: an acquisition may exceed the limit up to the end of the record batch, or not
    (`share.acquire.mode`)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class IsolationLevel(IntEnum):
    """The visibility of records of transactions (`share.isolation.level`)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
