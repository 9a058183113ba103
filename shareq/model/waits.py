"""What a share-partition waits for while no record of it can be acquired, and what a ShareFetch waits for.

A leader answers from its memory, a view from the journal, and a monitor from what it can read of any Kafka. About a
window all decide by `window_wait`; a view and a monitor answer only what they know.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

from shareq.model.experiments import DELIVERY
from shareq.model.states import TERMINAL, RecordState


class Wait(StrEnum):
    """The reasons; those of a fetch alone come last. The value is the name beside figures and in JSON; a line of
    text has the sentence."""

    NOT_LOADED = "not loaded"
    LOADING = "loading"
    DROPPED = "dropped"
    PAUSED = "paused"
    WINDOW_FULL = "window full"
    HELD = "window full, held"
    STATE_WRITE = "window full, state write"
    DEAD_LETTERS = "window full, dead letters"
    STAGED = "window full, staged"
    RESTING = "resting"
    KEY_ORDER = "key order"
    UNKNOWN_KEYS = "unknown keys"
    EXPIRED = "expired"
    LOG_END = "log end"
    FETCH_LOCK = "fetch lock"

    READS = "reads"
    TURN = "turn"
    MIN_BYTES = "min bytes"
    STATE_WRITES = "state writes"

    @property
    def sentence(self) -> str:
        """The reason as a sentence, in the middle of another one."""
        return _SENTENCES[self]


_FULL = "the window is full"
_SENTENCES = {
    Wait.NOT_LOADED: "no leader has its records in memory: it waits for a fetch",
    Wait.LOADING: "its leader reads its durable state",
    Wait.DROPPED: "its leader has dropped it, with an error: the next fetch loads it again",
    Wait.PAUSED: f"the group is paused: {DELIVERY}=false",
    Wait.WINDOW_FULL: _FULL,
    Wait.HELD: f"{_FULL}, and a member holds its first unfinished record",
    Wait.STATE_WRITE: f"{_FULL}, and its start moves when a state write has settled",
    Wait.DEAD_LETTERS: f"{_FULL}, and its first unfinished record is on its way to the dead-letter queue",
    Wait.STAGED: f"{_FULL}, and its first unfinished record is acknowledged in an open transaction",
    Wait.RESTING: "its available records rest after their release",
    Wait.KEY_ORDER: "its available records wait for earlier ones of their keys",
    Wait.UNKNOWN_KEYS: "an open transaction has records whose keys are not known",
    Wait.EXPIRED: "the first record that is not too old is being looked up",
    Wait.LOG_END: "all records that the group may read are delivered",
    Wait.FETCH_LOCK: "another fetch reads its log",
    Wait.READS: "the logs have not answered all of its reads",
    Wait.TURN: "another fetch of the group is attempted before it",
    Wait.MIN_BYTES: "there are fewer bytes than its minimum",
    Wait.STATE_WRITES: "the state writes of its acknowledgements have not settled",
}


WAITS_FULL = frozenset({Wait.WINDOW_FULL, Wait.HELD, Wait.STATE_WRITE, Wait.DEAD_LETTERS, Wait.STAGED})
"""The reasons of a full window."""


WAITS_CALM = frozenset({Wait.NOT_LOADED, Wait.LOG_END})
"""The reasons that the next fetch ends, or the next record."""


class InFlightRecord(Protocol):
    """What a leader and a journal both know of the records of a run."""

    @property
    def state(self) -> RecordState: ...

    @property
    def write_id(self) -> int | None: ...

    @property
    def rests(self) -> bool: ...

    @property
    def staged(self) -> bool: ...


def window_wait(runs: Iterable[tuple[int, int, InFlightRecord]], *, full: bool) -> Wait:
    """What a window waits for from which nothing can be acquired: it is `full`, or it has all records of the log.

    `runs` are its records, ascending: those that are AVAILABLE are kept back.
    """
    first: InFlightRecord | None = None
    for _, _, record in runs:
        if record.state is RecordState.AVAILABLE:
            return Wait.RESTING if record.rests else Wait.KEY_ORDER
        if first is None and record.state not in TERMINAL:
            first = record
    if not full:
        return Wait.LOG_END
    if first is None:
        return Wait.STATE_WRITE
    if first.state is RecordState.ARCHIVING:
        return Wait.DEAD_LETTERS
    if first.staged:
        return Wait.STAGED
    return Wait.HELD if first.write_id is None else Wait.STATE_WRITE
