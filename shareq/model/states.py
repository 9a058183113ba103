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


PREPARED: Final = "prepared"
SETTLED: Final = "settled"
ABANDONED: Final = "abandoned"
"""Causes of a `RecordsChanged` beside the record events: a state write is under way, succeeded, failed."""


_A, _Q, _K, _R = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
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
}
"""The next state by state and event; an absent pair is illegal. `next_state` adds the delivery count limit."""

RETURNING = frozenset({_E.RELEASE, _E.LOCK_TIMEOUT, _E.SESSION_RELEASE})
"""The events that make a record AVAILABLE again, unless it has reached the delivery count limit."""

ACKNOWLEDGE_EVENT = {
    AcknowledgeType.GAP: _E.GAP,
    AcknowledgeType.ACCEPT: _E.ACCEPT,
    AcknowledgeType.RELEASE: _E.RELEASE,
    AcknowledgeType.REJECT: _E.REJECT,
    AcknowledgeType.RENEW: _E.RENEW,
}


def next_state(
    state: RecordState, event: RecordEvent, *, delivery_count: int, delivery_count_limit: int
) -> RecordState | None:
    """The state after `event`, or None if the event is illegal (the request is answered with INVALID_RECORD_STATE).

    A record at the delivery count limit is archived instead of made AVAILABLE (KIP-932, "Delivery count limit").
    """
    target = TRANSITIONS.get((state, event))
    if event in RETURNING and target is _A and delivery_count >= delivery_count_limit:
        return _R
    return target


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


class AcquireMode(IntEnum):
    """KIP-1206: an acquisition may exceed the limit up to the end of the record batch, or not
    (`share.acquire.mode`)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class IsolationLevel(IntEnum):
    """The visibility of records of transactions (`share.isolation.level`)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
