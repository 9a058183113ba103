"""The moment and the selection that all linked views of one journal show.

One view at a time moves: that of the last command, or the first that shows new events. Its position is what the others
show. A view that stops ticking, such as one that was scrolled away, loses this role after `STALE_MS`.
"""

from __future__ import annotations

import weakref
from typing import Final, Protocol

from shareq.trace.journal import Journal
from shareq_widgets.position import Position
from shareq_widgets.selection import parse

STALE_MS: Final = 1000


class Follower(Protocol):
    def show_moment(self, position: Position) -> None:
        """Show the position of another view."""

    def show_selection(self, subject: str) -> None:
        """Mark the selected subject; "" is none."""


class Moment:
    """The views that show one moment, and the one that moves."""

    def __init__(self) -> None:
        self.selection = ""
        self.position: Position | None = None
        """Where the views stand; None before the first view."""
        self._followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        self._mover: weakref.ref[Follower] | None = None
        self._moved_ms = 0.0

    def join(self, follower: Follower) -> None:
        """Link a view to the others."""
        self._followers.add(follower)

    def leave(self, follower: Follower) -> None:
        """Unlink a view."""
        self._followers.discard(follower)
        if self._mover is not None and self._mover() is follower:
            self._mover = None

    def may_move(self, follower: Follower, now_ms: float) -> bool:
        """True if the view may move by itself at the real time `now_ms`: no other one is moving."""
        mover = None if self._mover is None else self._mover()
        return mover is None or mover is follower or now_ms - self._moved_ms > STALE_MS

    def show(self, position: Position, by: Follower, now_ms: float, *, moving: bool) -> None:
        """Show the position of a view in all others; `moving`: the view goes on by itself."""
        self._mover, self._moved_ms = (weakref.ref(by) if moving else None), now_ms
        self.position = position
        for follower in [f for f in self._followers if f is not by]:
            follower.show_moment(position)

    def select(self, subject: str) -> None:
        """Mark a subject in all views, or none (""). ValueError for a text that names no subject."""
        if subject:
            parse(subject)
        self.selection = subject
        for follower in list(self._followers):
            follower.show_selection(subject)


_MOMENTS: weakref.WeakKeyDictionary[Journal, Moment] = weakref.WeakKeyDictionary()


def moment_of(journal: Journal) -> Moment:
    """The moment that views of a journal show."""
    return _MOMENTS.setdefault(journal, Moment())
