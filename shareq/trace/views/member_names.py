"""Names and letters of a group's members, constant at every point of a view."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.events import MemberJoined, MemberLeft, RecordsChanged, RecordsHeld
from shareq.trace.journal import Entry
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
    """The members in order of first appearance. A member's name is its client id, or else its shortened member id."""

    def __init__(self) -> None:
        self._members: dict[str, MemberName] = {}
        self._names: set[str] = set()
        self._changes: list[tuple[int, str, bool]] = []

    def add(self, count: int, entry: Entry) -> None:
        """Add the `count`th entry of the view."""
        event = entry.event
        if isinstance(event, MemberJoined):
            self._add_member(event.member_id, event.client_id)
            self._changes.append((count, event.member_id, True))
        elif isinstance(event, MemberLeft):
            self._changes.append((count, event.member_id, False))
        elif isinstance(event, (RecordsChanged, RecordsHeld)) and event.member_id is not None:
            self._add_member(event.member_id, "")

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

    def name(self, member_id: str) -> str:
        member = self._members.get(member_id)
        return member_name(member_id) if member is None else member.name

    def letter(self, member_id: str) -> str:
        member = self._members.get(member_id)
        return "?" if member is None else member.letter

    def member(self, member_id: str) -> MemberName:
        """Name and letter; KeyError for a member that never appeared."""
        return self._members[member_id]

    def present(self, count: int) -> set[str]:
        """Ids of the members in the group after the first `count` entries."""
        present_ids: set[str] = set()
        for at, member_id, joined in self._changes:
            if at > count:
                break
            (present_ids.add if joined else present_ids.discard)(member_id)
        return present_ids
