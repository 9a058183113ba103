"""The transitions of records between two moments along the state machine, with the members that caused them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from shareq.model.events import (
    AcknowledgementRefused,
    HoldEnded,
    RecordsChanged,
    RecordsHeld,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.states import (
    ABANDONED,
    EXPERIMENTAL_TRANSITIONS,
    PREPARED,
    RESTED,
    RETURNING,
    SETTLED,
    STAGED,
    TRANSITIONS,
    TXN_COMMIT,
    RecordEvent,
    RecordState,
)
from shareq.trace.analysis.fold import apply_entry, is_from_leader
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.runs import STATE_OF_CODE, RecordStatus, Runs
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry

_TRANSITIONS: Final = TRANSITIONS | EXPERIMENTAL_TRANSITIONS
SOURCES: dict[str, RecordState] = {event: source for source, event in _TRANSITIONS}
"""Event -> the state that it begins in: each event leaves one state."""


class Move(NamedTuple):
    """The records [first, end) of a share-partition went from `source` to `target` by `event`, or, with `failed`, stay
    at `source`, because the state write failed. `member_id`: the holder before, or after an acquisition."""

    order: int
    time_ms: int
    topic: str
    partition: int
    first: int
    end: int
    source: RecordState
    target: RecordState
    event: RecordEvent
    delivery_count: int
    member_id: str | None = None
    failed: bool = False

    @property
    def at_limit(self) -> bool:
        """True if the delivery limit has changed the target."""
        return self.event in RETURNING and _TRANSITIONS[self.source, self.event] is not self.target


class Moves(NamedTuple):
    """What happened in an interval, in order."""

    moves: list[Move]
    refused: list[Entry]


_AT_REST: Final = (PREPARED, RESTED, STAGED)
"""The causes of changes that move no record: a prepared write leads nowhere yet, the end of a rest changes no state."""
_OF_WRITES: Final = frozenset((StateWritePrepared, StateWriteSettled))
"""The events of writes beside the changes of their records, which alone are moves."""

BLOCK: Final = 64
"""The number of entries whose moves are computed together."""
BLOCKS_KEPT: Final = 512


class RecordMoves:
    """The moves of one share-partition. They are computed once for each block of entries: a picture of each moment asks
    for those of the last second. Not thread-safe."""

    def __init__(self, timeline: PartitionTimeline) -> None:
        self._timeline = timeline
        self._blocks: dict[int, tuple[int, Moves]] = {}
        """Block -> the number of entries of the timeline up to which its moves are known, and the moves."""
        self._state, self._applied = timeline.state(0).copy(), 0
        """The state after a number of entries, by a fold that checks nothing: the timeline's own checks all."""

    def between(self, since: int, until: int) -> Moves:
        """The moves and the refused acknowledgements in entries with `since` <= order < `until`.

        A prepared write moves nothing; its records move when it settles. The cost follows the entries of the interval.
        """
        first, stop = self._timeline.count(since), self._timeline.count(until)
        found = Moves([], [])
        for block in range(first // BLOCK, -(-stop // BLOCK)):
            known = self._known(block, min(stop, block * BLOCK + BLOCK))
            found.moves.extend(move for move in known.moves if since <= move.order < until)
            found.refused.extend(entry for entry in known.refused if since <= entry.order < until)
        return found

    def _known(self, block: int, stop: int) -> Moves:
        """The moves of a block, up to `stop` entries of the timeline at least."""
        count, found = self._blocks.pop(block, (block * BLOCK, Moves([], [])))
        if count < stop:
            state = self._before(count)
            self._applied = -1  # an entry may be refused
            for entry in self._timeline.entries[count:stop]:
                self._add(found, state, entry)
            state.runs.drop_below(state.spso)
            self._applied = stop
        self._blocks[block] = max(count, stop), found
        if len(self._blocks) > BLOCKS_KEPT:
            del self._blocks[next(iter(self._blocks))]
        return found

    def _add(self, found: Moves, state: SharePartitionState, entry: Entry) -> None:
        """Add what happened in the next entry, and apply it to the state."""
        event: Any = entry[3]
        kind = type(event)
        if kind is RecordsChanged:
            if event.cause not in _AT_REST and (not state.loaded or entry[2] == state.loaded_by):
                found.moves.extend(_moves_of(entry, event, state.runs))
        elif kind is WindowMoved:  # what it passes takes part in no move: it is dropped once for each block
            if is_from_leader(state, entry):
                state.spso = event.spso
            return
        elif kind in _OF_WRITES:
            return
        elif kind is AcknowledgementRefused:
            found.refused.append(entry)
        elif kind is RecordsHeld:
            found.moves.append(_acquired(entry, event))
        elif kind is HoldEnded:
            found.moves.append(_let_go(entry, event))
        apply_entry(state, entry)
        state.partial = True  # also after a load

    def _before(self, position: int) -> SharePartitionState:
        """The state after the first `position` entries, to which the next ones will be applied, without the writes."""
        if position != self._applied:
            self._state, self._applied = self._timeline.state(position).copy(), position
        self._state.partial = True
        return self._state


def _moves_of(entry: Entry, event: RecordsChanged, runs: Runs) -> Iterator[Move]:
    """The moves of one change; `runs`: those before it, which name the holders."""
    if event.cause == RecordEvent.ACQUIRE:
        if event.state == RecordState.ACQUIRED:  # else new records of the batch that stay available
            yield _acquired(entry, event)
        return
    where = (entry.order, entry.time_ms, event.topic, event.partition)
    if event.cause == RecordEvent.EXPIRED:  # also of records that were not in the window
        lost = (RecordState.AVAILABLE, RecordState(event.state), RecordEvent.EXPIRED, event.delivery_count)
        yield Move(*where, event.first, event.end, *lost)
        return
    failed = event.cause == ABANDONED
    for first, end, status in runs.overlap(event.first, event.end):
        cause, target = _course(event, status)
        if cause is not None and target is not None:
            source, count = SOURCES[cause], event.delivery_count
            yield Move(*where, first, end, source, target, RecordEvent(cause), count, status.member_id, failed)


def _course(event: RecordsChanged, before: RecordStatus) -> tuple[str | None, RecordState | None]:
    """The record event behind a change, and the state that it leads to. What a transaction commits is the
    acknowledgement that was staged."""
    if event.cause == ABANDONED:
        return before.why, _goal(before)
    verdict = event.cause in (SETTLED, TXN_COMMIT)
    return (before.why or event.why if verdict else event.cause), STATE_OF_CODE[event.state]


def _goal(status: RecordStatus) -> RecordState | None:
    """The state that the write under way leads to; of a staged acknowledgement, the one that it stands for."""
    if status.staged and status.why is not None:
        return _TRANSITIONS[status.state, RecordEvent(status.why)]
    return status.to_state


def _let_go(entry: Entry, event: HoldEnded) -> Move:
    where = (entry.order, entry.time_ms, event.topic, event.partition, event.first, event.end)
    target, cause = STATE_OF_CODE[event.state], RecordEvent(event.cause)
    return Move(*where, RecordState.ACQUIRED, target, cause, event.delivery_count, event.member_id)


def _acquired(entry: Entry, event: RecordsChanged | RecordsHeld) -> Move:
    return Move(
        entry.order,
        entry.time_ms,
        event.topic,
        event.partition,
        event.first,
        event.end,
        RecordState.AVAILABLE,
        RecordState.ACQUIRED,
        RecordEvent.ACQUIRE,
        event.delivery_count,
        event.member_id,
    )
