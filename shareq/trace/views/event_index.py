"""The entries of a timeline with what a person sees of them all: steps, marks, and folds of the time axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.trace.analysis.steps import Steps
from shareq.trace.analysis.time_axis import Folds
from shareq.trace.journal import Entry
from shareq.trace.journal.event_codec import EVENT_TYPES
from shareq.trace.views.marks import Marks
from shareq.trace.views.member_names import MemberNames

AT_ONCE = 1_000
"""The number of entries that are read by all readers before the next ones: so many fit into a processor's cache."""


class EventIndex:
    """`read` returns the entries up to the end of the journal: always the same list, which only grows."""

    def __init__(self, names: MemberNames, origin_ms: int, read: Callable[[], list[Entry]]) -> None:
        self._names, self._read = names, read
        self.entries = read()
        self.marks = Marks(names.name)
        self.steps = Steps(self.entries)
        self.folds = Folds(origin_ms)
        self._count = 0

    def refresh(self) -> int:
        """Read the journal to its end; the number of entries."""
        self._names.refresh()
        self._read()
        total = len(self.entries)
        while self._count < total:
            new = self.entries[self._count : min(self._count + AT_ONCE, total)]
            self._name_members(new)
            self.marks.add(self._count, new)
            self.folds.add([entry[1] for entry in new])
            self._count += len(new)
        return self._count

    def _name_members(self, entries: list[Any]) -> None:
        """Give a letter to each member whose arrival is unknown, by its first event."""
        names, of_members = self._names, _OF_MEMBERS
        for member_id in dict.fromkeys([entry[3].member_id for entry in entries if type(entry[3]) in of_members]):
            if member_id:
                names.member(member_id)


_OF_MEMBERS = frozenset(event_type for event_type in EVENT_TYPES.values() if "member_id" in event_type._fields)
