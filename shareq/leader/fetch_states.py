"""The states of a fetch lock and of a fetch, and what each event makes of them.

A pair of state and event that is missing in a table cannot occur: KeyError. ARCHITECTURE.md draws both. Source:
KIP-932, "Fetching"; Kafka's DelayedShareFetch and SharePartition, whose fetch lock knows two states.
"""

from __future__ import annotations

from enum import StrEnum


class LockState(StrEnum):
    """What a fetch that would read a share-partition finds."""

    FREE = "free"
    """No fetch holds the lock, and there may be something to fetch."""
    IDLE = "idle"
    """No fetch holds the lock, and nothing can be fetched until something changes."""
    HELD = "held"
    """A fetch holds the lock, and nothing has changed since its read began."""
    OUTDATED = "outdated"
    """A fetch holds the lock, and something has changed since its read began."""
    SPENT = "spent"
    """A fetch holds the lock; after it, nothing can be fetched until something changes (an experiment)."""
    DROPPED = "dropped"
    """The share-partition is not in memory any more; a fetch may hold its lock still."""


class LockEvent(StrEnum):
    """The events of a fetch lock."""

    TAKEN = "taken"
    CHANGED = "changed"
    EXHAUSTED = "exhausted"
    RELEASED = "released"
    DROPPED = "dropped"


_FREE, _IDLE, _HELD, _OUTDATED, _SPENT, _DROPPED = LockState

LOCK_TRANSITIONS: dict[tuple[LockState, LockEvent], LockState] = {
    (_FREE, LockEvent.TAKEN): _HELD,
    (_FREE, LockEvent.CHANGED): _FREE,
    (_FREE, LockEvent.EXHAUSTED): _IDLE,
    (_FREE, LockEvent.DROPPED): _DROPPED,
    (_IDLE, LockEvent.CHANGED): _FREE,
    (_IDLE, LockEvent.DROPPED): _DROPPED,
    (_HELD, LockEvent.CHANGED): _OUTDATED,
    (_HELD, LockEvent.EXHAUSTED): _SPENT,
    (_HELD, LockEvent.RELEASED): _FREE,
    (_HELD, LockEvent.DROPPED): _DROPPED,
    (_OUTDATED, LockEvent.CHANGED): _OUTDATED,
    (_OUTDATED, LockEvent.EXHAUSTED): _SPENT,
    (_OUTDATED, LockEvent.RELEASED): _FREE,
    (_OUTDATED, LockEvent.DROPPED): _DROPPED,
    (_SPENT, LockEvent.CHANGED): _OUTDATED,
    (_SPENT, LockEvent.RELEASED): _IDLE,
    (_SPENT, LockEvent.DROPPED): _DROPPED,
    (_DROPPED, LockEvent.RELEASED): _DROPPED,
}
"""The next state by state and event. A lock that is released with changes behind it is as free as any other: the fetch
that held it tries again, see FetchState.AGAIN."""


class FetchState(StrEnum):
    """What a fetch does with the records that it reads."""

    OPEN = "open"
    """It takes them if they meet its minimum; else it waits in the queues of its share-partitions."""
    AGAIN = "again"
    """As OPEN; a share-partition that this attempt has visited has changed, so that another attempt follows."""
    LAST = "last"
    """It takes what there is, and ends."""
    ENDED = "ended"


class FetchEvent(StrEnum):
    """The events of a fetch: an attempt begins; a share-partition that it has visited changes; its minimum is met, its
    time is over, or one of its share-partitions cannot be read; it ends."""

    ATTEMPT = "attempt"
    CHANGED = "changed"
    DECIDED = "decided"
    ENDED = "ended"


_OPEN, _AGAIN, _LAST, _ENDED = FetchState

FETCH_TRANSITIONS: dict[tuple[FetchState, FetchEvent], FetchState] = {
    (_OPEN, FetchEvent.ATTEMPT): _OPEN,
    (_OPEN, FetchEvent.CHANGED): _AGAIN,
    (_OPEN, FetchEvent.DECIDED): _LAST,
    (_OPEN, FetchEvent.ENDED): _ENDED,
    (_AGAIN, FetchEvent.ATTEMPT): _OPEN,
    (_AGAIN, FetchEvent.CHANGED): _AGAIN,
    (_AGAIN, FetchEvent.DECIDED): _LAST,
    (_AGAIN, FetchEvent.ENDED): _ENDED,
    (_LAST, FetchEvent.ATTEMPT): _LAST,
    (_LAST, FetchEvent.CHANGED): _LAST,
    (_LAST, FetchEvent.DECIDED): _LAST,
    (_LAST, FetchEvent.ENDED): _ENDED,
}
"""The next state by state and event."""
