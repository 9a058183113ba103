"""A member of the group as pictures show it."""

from __future__ import annotations

from typing import NamedTuple

from shareq_widgets.instant import Instant


class Holder(NamedTuple):
    """`alive`: the member is in the group."""

    member_id: str
    letter: str
    name: str
    colour: str
    alive: bool

    def __str__(self) -> str:
        return f"{self.letter} {self.name}"


def holder_of(instant: Instant, member_id: str) -> Holder:
    """The member at this moment."""
    alive = member_id in instant.history.group(instant.until).members
    return Holder(member_id, instant.letter(member_id), instant.name(member_id), instant.colour(member_id), alive)
