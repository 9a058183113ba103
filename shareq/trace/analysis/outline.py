"""Outline of a share-partition: everything in its state but the records, by a fold that skips their changes.

The records in the window at a moment have all changed since the window ended below them. So the state at a moment is
that of the outline some entries earlier, at the last place from which all records in the window and just below it are
later, with the entries from there on applied. That fold cannot check the records that it has not seen: it begins as
`partial`, as the fold of a journal that has lost its first entries. The outline itself checks what it folds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from shareq.model.events import (
    RecordsAppended,
    RecordsChanged,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.trace.analysis.fold import apply_entry, is_from_leader
from shareq.trace.analysis.runs import Runs
from shareq.trace.analysis.share_partition_state import PAST_OFFSETS, SharePartitionState
from shareq.trace.journal import Entry


class Outline:
    """The outline after an entry. `reach`: no record at or above this offset is in flight; `state` has no records,
    unless it is observed: an observer records no changes of single records, and its outline is the whole state."""

    __slots__ = ("reach", "state")

    def __init__(self, state: SharePartitionState, reach: int = 0) -> None:
        self.state, self.reach = state, reach

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)(self.state.copy(), self.reach)

    def apply(self, entry: Entry) -> None:
        """Apply the next entry about the share-partition."""
        event, state = entry.event, self.state
        if type(event) is RecordsChanged:
            self.reach = max(self.reach, event.end)
            if not state.loaded:
                is_from_leader(state, entry)
            return
        apply_entry(state, entry)
        if type(event) is WindowMoved:
            if not state.partial:
                self.reach = state.window_end
        elif type(event) in _NEW_WINDOW:
            state.runs, self.reach = Runs(), state.window_end

    def read(self, entries: list[Entry]) -> None:
        """Apply the next entries, at a lower cost than one by one: most are changes of records, legal moves of the
        window, writes and their results, and appended records."""
        state, reach, loaded, leader = self.state, self.reach, self.state.loaded, self._leader()
        for entry in entries:
            event: Any = entry[3]
            kind = type(event)
            if kind is RecordsChanged and loaded:
                reach = max(reach, event[5])
            elif leader == entry[2] and kind is StateWriteSettled and state.writes.pop(event[3], None) is not None:
                state.now_ms = entry[1]
            elif leader == entry[2] and kind is WindowMoved and state.spso <= event[3] <= event[4] >= state.window_end:
                state.now_ms, state.spso, state.window_end = entry[1], event[3], event[4]
                state.log_end, reach = max(state.log_end, event[4]), event[4]
            elif leader is not None and kind is RecordsAppended:
                state.now_ms, state.log_end = entry[1], event[3]
            elif leader == entry[2] and kind is StateWritePrepared and event[3] > state.last_write_id:
                state.now_ms, state.last_write_id, state.writes[event[3]] = entry[1], event[3], (entry[1], event)
            else:
                self.reach = reach
                self.apply(entry)
                reach, loaded, leader = self.reach, state.loaded, self._leader()
        self.reach = reach

    def _leader(self) -> int | None:
        """The broker whose events count, if the next ones need not be compared with records: there are none here, and
        no entry is missing."""
        state = self.state
        plain = state.loaded and not state.partial and not state.observed and not state.runs and not state.past
        return state.loaded_by if plain else None

    def holds_for(self, spso: int) -> bool:
        """True if all records above a later SPSO, and in the `past` below it, have changed since this outline."""
        return self.reach <= max(spso - PAST_OFFSETS, 0)

    def begin(self) -> SharePartitionState:
        """A state to which the later entries can be applied; it is partial, since it has no records."""
        return replace(self.state.copy(), partial=True, runs=Runs(), past=[])


_NEW_WINDOW = (SharePartitionLoaded, TopicCreated, TopicDeleted)
"""Events after which no earlier record is in flight."""
