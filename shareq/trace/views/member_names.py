"""Names and letters of a group's members, the same in all views and at every moment of a journal."""

from __future__ import annotations

import re
import weakref
from typing import NamedTuple

from shareq.model.events import MemberJoined, MemberLeft
from shareq.trace.analysis.one_thread import by_one_thread
from shareq.trace.journal import Journal, Subject
from shareq.trace.journal.event_text import member_name


def letter(place: int) -> str:
    """A to Z, then AA, AB, ..."""
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(65 + rest) + text
    return text


class MemberName(NamedTuple):
    """Name and letter of a member; `place` counts members in order of first appearance."""

    place: int
    name: str
    letter: str


class MemberNames:
    """The members of a group in a journal. A member's name is its client id, or else its shortened member id.

    A letter never changes. Letters follow the order of names among the members that join between two calls of
    `refresh`, and otherwise the order in which they join.
    """

    def __init__(self, journal: Journal, group: str) -> None:
        self._journal = weakref.ref(journal)
        self._subject = Subject(group)
        self._members: dict[str, MemberName] = {}
        self._names: set[str] = set()
        self._changes: list[tuple[int, str, bool]] = []
        self._seen = 0

    def refresh(self) -> None:
        """Read the journal to its end."""
        journal = self._journal()
        if journal is None or journal.total == self._seen:
            return
        total = journal.total
        new = journal.about(self._seen, total, {self._subject: (MemberJoined, MemberLeft)})
        self._seen = total
        joined: dict[str, str] = {}
        for entry in new:
            event = entry.event
            if isinstance(event, (MemberJoined, MemberLeft)):
                self._changes.append((entry.order, event.member_id, isinstance(event, MemberJoined)))
            if isinstance(event, MemberJoined):
                joined.setdefault(event.member_id, event.client_id)
        for member_id, client_id in sorted(joined.items(), key=lambda item: _by_number(item[1])):
            self._add_member(member_id, client_id)

    def _add_member(self, member_id: str, client_id: str) -> None:
        if member_id in self._members:
            return
        name = wanted = client_id or member_name(member_id)
        number = 1
        while name in self._names:
            number += 1
            name = f"{wanted}-{number}"
        self._names.add(name)
        self._members[member_id] = MemberName(len(self._members), name, letter(len(self._members)))

    def __len__(self) -> int:
        """The number of members so far: the place of the next one."""
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def name(self, member_id: str) -> str:
        return self.member(member_id).name

    def letter(self, member_id: str) -> str:
        return self.member(member_id).letter

    def member(self, member_id: str) -> MemberName:
        """Name and letter. A member whose arrival is not in the journal has its place from now on."""
        if member_id not in self._members:
            self._add_member(member_id, "")
        return self._members[member_id]

    def joined(self, until: int) -> set[str]:
        """Ids of the members that have joined by then, also of those that have left since."""
        return {member_id for order, member_id, joined in self._changes if joined and order < until}

    def present(self, until: int) -> set[str]:
        """Ids of the members in the group after the entries whose order is below `until`."""
        present_ids: set[str] = set()
        for order, member_id, joined in self._changes:
            if order >= until:
                break
            (present_ids.add if joined else present_ids.discard)(member_id)
        return present_ids


def _by_number(name: str) -> tuple[tuple[int, int, str], ...]:
    """The sort key of a name: clerk-2 is before clerk-10."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


@by_one_thread
def names_of(journal: Journal, group: str) -> MemberNames:
    """The names of a group's members, the same for all views of a journal, up to its end."""
    names = journal.own((MemberNames, group), lambda: MemberNames(journal, group))
    names.refresh()
    return names
