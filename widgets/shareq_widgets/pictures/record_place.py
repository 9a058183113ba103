"""The place of an offset now, and why it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from shareq.model.states import RESTED, RETURNING, TXN_COMMIT, RecordEvent, RecordState
from shareq.model.waits import Wait
from shareq.trace.analysis.kept_back import kept_back
from shareq.trace.analysis.record_history import (
    DELIVERED,
    IN_QUEUE,
    NOT_IN_QUEUE,
    PASSED,
    QUEUE_AWAITED,
    REMOVED,
    UNLOADED,
    RecordChange,
    lost_deliveries,
)
from shareq.trace.analysis.runs import RecordStatus
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal.record_words import WORDS
from shareq_widgets.instant import Instant
from shareq_widgets.time_scale import time_text

ENDINGS: Final[dict[str, str]] = {event: words.because for event, words in WORDS.items()} | {
    RESTED: "its rest ended at {at}",
    TXN_COMMIT: "the transaction that {holder} acknowledged it in was committed at {at}, in {delivery}",
}


_KEEPING: Final = frozenset({PASSED, REMOVED, UNLOADED, IN_QUEUE, QUEUE_AWAITED, NOT_IN_QUEUE})
"""Changes that leave the status of the record."""


class RecordPlace(NamedTuple):
    """`where`: the place in the log and the window; `why`: one sentence; `name`: the state as in the palette, or
    "above", "below" or "none" (there is no such record)."""

    name: str
    where: str
    why: str


class _Asked(NamedTuple):
    instant: Instant
    state: SharePartitionState
    offset: int
    changes: Sequence[RecordChange]

    @property
    def partition(self) -> str:
        return f"{self.state.topic}-{self.state.partition}"

    def at(self, time_ms: int) -> str:
        return time_text(time_ms - self.instant.origin_ms, 1)

    def last(self, *states: RecordState | None) -> RecordChange | None:
        """The last change that led to one of the states."""
        found = [change for change in self.changes if change.state in states and change.what not in _KEEPING]
        return found[-1] if found else None


def place_of(instant: Instant, state: SharePartitionState, offset: int, changes: Sequence[RecordChange]) -> RecordPlace:
    """The place of an offset of a share-partition at this moment."""
    asked = _Asked(instant, state, offset, changes)
    for answer in (_outside_the_log, _without_group, _below, _above):
        found = answer(asked)
        if found is not None:
            return found
    return _in_window(asked)


def _outside_the_log(asked: _Asked) -> RecordPlace | None:
    state, offset = asked.state, asked.offset
    history, until = asked.instant.history, asked.instant.until
    partitions = history.cluster(until).topics.get(state.topic)
    if (state.topic, state.partition) not in history.share_partitions(until):
        if partitions is None:
            return RecordPlace("none", "no such topic", f"There is no topic {state.topic} at this moment.")
        if state.partition >= len(partitions):
            known = f"{len(partitions)} partition{'' if len(partitions) == 1 else 's'}"
            return RecordPlace("none", "no such partition", f"The topic {state.topic} has {known}, counted from 0.")
    if state.log_end < 0:
        return None
    if offset >= state.log_end:
        end = f"ends at {state.log_end - 1}" if state.log_end else "is empty"
        return RecordPlace(
            "none", "not written yet", f"Offset {offset} is not written yet: the log of {asked.partition} {end}."
        )
    if offset < state.log_start and offset >= state.spso:
        why = f"The log of {asked.partition} begins at {state.log_start}: it no longer has offset {offset}."
        return RecordPlace("below", "below the log start", why)
    return None


def _without_group(asked: _Asked) -> RecordPlace | None:
    history, state = asked.instant.history, asked.state
    if (state.topic, state.partition) in history.share_partitions(asked.instant.until):
        return None
    why = f"The group {state.group_id} does not read {asked.partition} yet: it has no share-partition there."
    return RecordPlace("above", "not in the group", why)


def _below(asked: _Asked) -> RecordPlace | None:
    state = asked.state
    if asked.offset >= state.spso:
        return None
    gone = f", and below the log start {state.log_start}" if asked.offset < state.log_start else ""
    where = f"below the SPSO {state.spso}{gone}"
    end = asked.last(RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
    if end is not None and end.state is not None:
        return RecordPlace(end.state.name.lower(), where, f"It is done: {_ended(asked, end)}.")
    if asked.last(RecordState.ACQUIRED, RecordState.AVAILABLE) is None:
        return RecordPlace("below", where, f"No member of the group had it: the SPSO is {state.spso}, above it.")
    return RecordPlace("below", where, f"It is done: the SPSO is {state.spso}; its last state is not in the journal.")


def _ended(asked: _Asked, end: RecordChange) -> str:
    """How a delivery ended, or the record became terminal."""
    if end.what not in ENDINGS:
        state = "changed" if end.state is None else end.state.name.lower()
        return f"it is {state} in the durable state"
    holder = "a member" if end.member_id is None else asked.instant.name(end.member_id)
    until = asked.changes[: asked.changes.index(end) + 1]
    delivery = delivery_text(end.delivery_count, lost_deliveries(until))
    text = ENDINGS[end.what].format(holder=holder, at=asked.at(end.time_ms), delivery=delivery)
    used_up = end.what in RETURNING and end.state is RecordState.ARCHIVED
    return text + (", the last one: it was archived" if used_up else "")


def delivery_text(count: int, lost: int) -> str:
    """A delivery by its number, and by the delivery count if that has lost some with a leader."""
    return f"delivery {count + lost}, counted as {count}" if lost else f"delivery {count}"


def _above(asked: _Asked) -> RecordPlace | None:
    state = asked.state
    if asked.offset < state.window_end or state.runs.overlap(asked.offset, asked.offset + 1):
        return None  # a record is acquired one event before the window grows
    window = "the window is empty" if state.spso == state.window_end else f"above the SPEO {state.window_end - 1}"
    if not state.loaded:
        why = f"No broker has the share-partition {asked.partition} in memory."
    elif state.paused:
        why = f"No fetch reaches it: {Wait.PAUSED.sentence}."
    elif state.in_flight >= state.max_record_locks:
        why = f"The window is full, with {state.in_flight:,} records: its SPSO {state.spso} must move first"
        return RecordPlace("above", window, f"{why}{_holding_back(asked)}.")
    elif not asked.instant.history.group(asked.instant.until).members:
        why = "The group has no member that could fetch it."
    else:
        why = "No fetch has reached it yet."
    return RecordPlace("above", window, why)


def _holding_back(asked: _Asked) -> str:
    """The record at the SPSO, which holds the window back."""
    state = asked.state
    for first, _, status in state.runs.overlap(state.spso, state.window_end):
        if not status.state.terminal:
            holder = "" if status.member_id is None else f" by {asked.instant.name(status.member_id)}"
            return f": offset {first} is {status.name}{holder}"
    return ""


def _in_window(asked: _Asked) -> RecordPlace:
    state = asked.state
    found = state.runs.overlap(asked.offset, asked.offset + 1)
    end = max(state.window_end, found[0][1]) if found else state.window_end
    window = f"in the window {state.spso}–{end - 1}"
    if not found:
        why = "No delivery of it is known: the log has no record there, or no fetch has read it since the last load."
        return RecordPlace("above", window, why)
    status = found[0][2]
    delivered = f"{window}, delivered {status.delivery_count} of {state.delivery_count_limit}"
    if not state.loaded and not state.observed:
        why = f"No broker has the share-partition {asked.partition} in memory: its durable state is loaded next."
        return RecordPlace(status.name, delivered, why)
    return RecordPlace(status.name, delivered, _why_in_window(asked, status))


def _why_in_window(asked: _Asked, status: RecordStatus) -> str:
    if not status.known:
        if status.delivery_count:
            return "It was returned, and a member may hold it again: an observer does not know."
        return "It is above the durable SPSO: whether a member holds it is not known to an observer."
    if status.state is RecordState.ACQUIRED:
        return _why_held(asked, status)
    if status.state is RecordState.AVAILABLE:
        return _why_available(asked, status)
    if status.state is RecordState.ARCHIVING:
        news = [change for change in asked.changes if change.what in (QUEUE_AWAITED, RecordEvent.ACQUIRE)]
        waits = f", and waits: {news[-1].why}" if news and news[-1].what == QUEUE_AWAITED else ""
        return f"It is on its way to the dead-letter queue{waits}."
    end = asked.last(RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
    done = "It is done" if end is None else f"It is done, because {_ended(asked, end)}"
    return f"{done}; it stays in the window until the SPSO can pass{_holding_back(asked)}."


def _why_held(asked: _Asked, status: RecordStatus) -> str:
    holder = asked.instant.name(status.member_id or "")
    taken = [change for change in asked.changes if change.what in (RecordEvent.ACQUIRE, DELIVERED)]
    began = f" since {asked.at(taken[-1].time_ms)}" if taken else ""
    if status.staged:
        member = "a member" if status.member_id is None else holder
        return f"{member}'s {status.why} is staged in a transaction: it counts if that is committed, whatever its lock."
    if status.why is not None:
        verdict = status.why.replace("_", " ")
        return f"{holder} has held it{began}; its {verdict} counts when the state write has succeeded."
    if status.deadline_ms is None:
        return f"{holder} has held it{began}; the deadline is not known."
    last = ", or it is archived" if status.delivery_count >= asked.state.delivery_count_limit else ""
    return f"{holder} has held it{began} and must acknowledge it by {asked.at(status.deadline_ms)}{last}."


def _why_available(asked: _Asked, status: RecordStatus) -> str:
    back = asked.changes[-1] if asked.changes else None
    if status.deadline_ms is not None:
        released = f", because {_ended(asked, back)}" if back is not None and back.what in RETURNING else ""
        return f"It rests until {asked.at(status.deadline_ms)}, and no fetch may acquire it before{released}."
    if asked.state.paused:
        return f"No fetch may acquire it: {Wait.PAUSED.sentence}."
    before = kept_back(asked.state, asked.offset)
    if before is not None:
        done = "" if before.member_id is None else f", which {asked.instant.name(before.member_id)} holds"
        return f"No fetch may acquire it before offset {before.offset} of its key {before.key!r} is done{done}."
    if back is None or back.what not in RETURNING:
        return "It waits for the next fetch of a member."
    return f"It waits for the next fetch of a member, because {_ended(asked, back)}."
