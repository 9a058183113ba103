"""The entries of a timeline with what a person sees of them all: steps, marks, and folds of the time axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from shareq.trace.analysis.steps import Steps
from shareq.trace.analysis.time_axis import Folds
from shareq.trace.journal import Entry
from shareq.trace.journal.event_codec import EVENT_TYPES
from shareq.trace.views.marks import Marks, by_type
from shareq.trace.views.member_names import MemberNames

AT_ONCE = 1_000
"""The number of entries that are read by all readers before the next ones: so many fit into a processor's cache."""


class EventIndex:
    """`read` returns the entries up to the end of the journal: always the same list, which only grows."""

    def __init__(self, names: MemberNames, origin_ms: int, read: Callable[[], list[Entry]]) -> None:
        self._names, self._read = names, read
        self.entries = read()
        self.marks = Marks(self.entries, names.name)
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
            found = by_type(new)
            self._name_members(new, found)
            self.marks.add(found)
            self.folds.add([entry[1] for entry in new])
            self._count += len(new)
        return self._count

    def _name_members(self, entries: list[Entry], found: Mapping[type, list[Entry]]) -> None:
        """Give a letter to each member whose arrival is unknown, by its first event. `found`: the entries by type."""
        names, ids = self._names, set[str | None]()
        for event_type, member_of in _MEMBER_OF.items():
            ids.update([member_of(entry[3]) for entry in found.get(event_type, ())])
        if all(member_id in names for member_id in ids if member_id):
            return
        for _, _, _, event in entries:
            if type(event) in _MEMBER_OF and (member_id := _MEMBER_OF[type(event)](event)):
                names.member(member_id)


_MEMBER_OF: dict[type, Callable[[Any], str | None]] = {
    event_type: itemgetter(event_type._fields.index("member_id"))
    for event_type in EVENT_TYPES.values()
    if "member_id" in event_type._fields
}
"""Event type -> the member that an event is about, for those that have one."""
