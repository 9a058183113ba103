"""A member of the group as pictures show it."""

from __future__ import annotations

from typing import NamedTuple

from shareq_widgets.instant import Instant
from shareq_widgets.look import FROZEN, GONE


class Holder(NamedTuple):
    """`alive`: the member is in the group. `fault`: its program has "crashed" or is "frozen" by a fault, or ""."""

    member_id: str
    letter: str
    name: str
    colour: str
    alive: bool
    fault: str = ""

    @property
    def works(self) -> bool:
        """False if it can no longer acknowledge what it holds: it has left the group, or its program has ended."""
        return self.alive and self.fault != "crashed"

    @property
    def sign(self) -> str:
        """The sign behind its name: ended or gone, frozen, or none."""
        return GONE if not self.works else FROZEN if self.fault == "frozen" else ""

    def __str__(self) -> str:
        return f"{self.letter} {self.name}"


def holder_of(instant: Instant, member_id: str) -> Holder:
    """The member at this moment."""
    alive = member_id in instant.history.group(instant.until).members
    fault = instant.history.liveness(instant.until).faults.get(member_id, "")
    return Holder(
        member_id, instant.letter(member_id), instant.name(member_id), instant.colour(member_id), alive, fault
    )
