"""What a picture is drawn from: a share group at one moment of its history."""

from __future__ import annotations

from typing import NamedTuple

from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.views.member_names import MemberNames, names_of
from shareq.trace.views.palette import member_colour


class Instant(NamedTuple):
    """A moment of a group: the entries of the journal below `until`, and the displayed time, ms since the epoch.

    `now_ms` is at or after the last of these entries: locks run down between two events, too. `names` are those of all
    linked views. `history` must have been refreshed up to `until`.
    """

    history: GroupHistory
    names: MemberNames
    until: int
    now_ms: int

    @property
    def origin_ms(self) -> int:
        """The time that views show as 0:00."""
        return self.history.journal.origin_ms

    def name(self, member_id: str) -> str:
        return self.names.name(member_id)

    def letter(self, member_id: str) -> str:
        return self.names.letter(member_id)

    def colour(self, member_id: str) -> str:
        """The palette's name of the member's colour."""
        return member_colour(self.names.member(member_id).place)


def instant_of(history: GroupHistory, until: int | None = None, now_ms: int | None = None) -> Instant:
    """A moment of a history. None: the end of the journal, the time of the last entry."""
    history.refresh()
    names = names_of(history.journal, history.group_id)
    entries = history.journal.entries()
    shown = history.total if until is None else until
    last_ms = entries[min(shown, history.total) - 1 - history.journal.dropped].time_ms if shown else 0
    return Instant(history, names, shown, max(last_ms, now_ms or 0, history.journal.origin_ms))
