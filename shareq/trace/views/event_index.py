"""The entries of a timeline with what a person sees of them all: steps, marks, and folds of the time axis."""

from __future__ import annotations

from collections.abc import Callable

from shareq.trace.analysis.steps import Steps
from shareq.trace.analysis.time_axis import Folds
from shareq.trace.journal import Entry
from shareq.trace.views.marks import Marks
from shareq.trace.views.member_names import MemberNames


class EventIndex:
    """`read` returns the entries up to the end of the journal: always the same list, which only grows."""

    def __init__(self, names: MemberNames, origin_ms: int, read: Callable[[], list[Entry]]) -> None:
        self._names, self._read = names, read
        self.entries = read()
        self.marks = Marks()
        self.steps = Steps()
        self.folds = Folds(origin_ms)
        self._count = 0

    def refresh(self) -> int:
        """Read the journal to its end; the number of entries."""
        self._names.refresh()
        self._read()
        count, names = self._count, self._names
        for entry in self.entries[count:]:
            count += 1
            if member_id := getattr(entry.event, "member_id", None):
                names.member(member_id)  # a member whose arrival is unknown has its letter by its first event
            self.marks.add(count, entry, names.name)
            self.steps.add(entry)
            self.folds.add(entry.time_ms)
        self._count = count
        return count
