"""Who the members of a group are: a name and a letter each, that stay the same however the view is scrubbed."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.events import MemberJoined, MemberLeft, RecordsChanged, RecordsHeld
from shareq.trace.journal import Entry
from shareq.trace.words import member_name


def letter(place: int) -> str:
    """A to Z, then AA, AB, ..."""
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(65 + rest) + text
    return text


class Card(NamedTuple):
    """`place` is the order of first appearance."""

    place: int
    name: str
    letter: str


class Roster:
    """Members in order of first appearance. A member is called by its client id where it told one."""

    def __init__(self) -> None:
        self._cards: dict[str, Card] = {}
        self._names: set[str] = set()
        self._comings: list[tuple[int, str, bool]] = []

    def take_in(self, count: int, entry: Entry) -> None:
        """The view's entry that makes `count` of them."""
        event = entry.event
        if isinstance(event, MemberJoined):
            self._meet(event.member_id, event.client_id)
            self._comings.append((count, event.member_id, True))
        elif isinstance(event, MemberLeft):
            self._comings.append((count, event.member_id, False))
        elif isinstance(event, (RecordsChanged, RecordsHeld)) and event.member_id is not None:
            self._meet(event.member_id, "")

    def _meet(self, member_id: str, client_id: str) -> None:
        if member_id in self._cards:
            return
        name = wanted = client_id or member_name(member_id)
        number = 1
        while name in self._names:
            number += 1
            name = f"{wanted}-{number}"
        self._names.add(name)
        self._cards[member_id] = Card(len(self._cards), name, letter(len(self._cards)))

    def name(self, member_id: str) -> str:
        card = self._cards.get(member_id)
        return member_name(member_id) if card is None else card.name

    def letter(self, member_id: str) -> str:
        card = self._cards.get(member_id)
        return "?" if card is None else card.letter

    def card(self, member_id: str) -> Card:
        """KeyError for a member that never appeared."""
        return self._cards[member_id]

    def present(self, count: int) -> set[str]:
        """Who is in the group after the first `count` entries."""
        inside: set[str] = set()
        for at, member_id, joined in self._comings:
            if at > count:
                break
            (inside.add if joined else inside.discard)(member_id)
        return inside
