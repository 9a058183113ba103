"""What members have seen of a broker: one line for each answer that a member got."""

from __future__ import annotations

from typing import NamedTuple

NOTHING = -1


class Seen(NamedTuple):
    """An answer that a member got, `at_s` seconds after the start.

    `what`: "delivered", "nothing" (a fetch without a record), "accept", "release", "reject", "renew", or "close".
    `offset`: of the record; `NOTHING` for "nothing" and "close". `delivery_count`: of a delivery.
    `answer`: of an acknowledgement, "ok" or the name of the error.
    """

    at_s: float
    what: str
    member: str
    offset: int = NOTHING
    delivery_count: int = 0
    answer: str = ""

    def __str__(self) -> str:
        place = "" if self.offset == NOTHING else f"{self.offset:>4}"
        more = f"delivery {self.delivery_count}" if self.delivery_count else self.answer
        return f"{self.at_s:8.1f} s  {self.member:<4} {self.what:<9} {place:<4}  {more}".rstrip()


class History(tuple[Seen, ...]):
    """What all members have seen, in order; its `repr` has a line for each."""

    __slots__ = ()

    def about(self, offset: int) -> History:
        """The lines about one record, and the closings of members that it was delivered to."""
        members = {seen.member for seen in self if seen.offset == offset}
        return History(
            seen for seen in self if seen.offset == offset or (seen.what == "close" and seen.member in members)
        )

    def until(self, last: Seen) -> History:
        """The lines up to this one."""
        return History(self[: self.index(last) + 1])

    def __repr__(self) -> str:
        return "\n".join(map(str, self))
