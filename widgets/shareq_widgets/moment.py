"""The moment, the selection and the span of time that all linked views of one journal show.

One view at a time moves: that of the last command, or the first that shows new events. Its position is what the others
show. A view that was scrolled away loses this role, and any that stops ticking does so after `STALE_MS`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Final, Protocol

from shareq.model.numbers import plain
from shareq.trace.journal import Journal
from shareq_widgets.position import Position, Span
from shareq_widgets.selection import parse

STALE_MS: Final = 1000


class Follower(Protocol):
    hidden: bool
    """True if no screen shows it."""

    @property
    def cost_ms(self) -> float:
        """The duration of its last drawing."""

    def show_moment(self, position: Position) -> None:
        """Show the position of another view."""

    def show_selection(self, subject: str) -> None:
        """Mark the selected subject; "" is none."""

    def show_span(self) -> None:
        """Show the span of time of the moment."""


class Moment:
    """The views that show one moment, and the one that moves."""

    def __init__(self) -> None:
        self.selection = ""
        self.record = ""
        """The record that was selected last: another subject, such as a message, may be selected since."""
        self.position: Position | None = None
        """Where the views stand; None before the first view."""
        self._key, self._number = token_hex(8), 0
        self._numbered: Position | None = None
        self.span: Span | None = None
        """The times that the time axes show; None: all of them."""
        self._followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        self._mover: weakref.ref[Follower] | None = None
        self._moved_ms = 0.0
        self._answers = False
        self._late: list[Follower] = []

    @property
    def mark(self) -> tuple[str, int]:
        """The name of these views, and the number of their position. A page draws a position in one frame: when all
        views on its screen have received its number."""
        return self._key, self._number

    def number(self, position: Position) -> None:
        """Give a position that the views are going to show a number of its own, unless they show it."""
        if position != self._numbered:
            self._number, self._numbered = self._number + 1, position

    def join(self, follower: Follower) -> None:
        """Link a view to the others."""
        self._followers.add(follower)

    def leave(self, follower: Follower) -> None:
        """Unlink a view."""
        self._followers.discard(follower)
        if self._mover is not None and self._mover() is follower:
            self._mover = None

    def may_move(self, follower: object, now_ms: float) -> bool:
        """True if the view may move by itself at the real time `now_ms`: no other one is moving."""
        mover = None if self._mover is None else self._mover()
        return mover is None or mover is follower or mover.hidden or now_ms - self._moved_ms > STALE_MS

    def show(self, position: Position, by: Follower, now_ms: float, *, moving: bool) -> None:
        """Show the position of a view in all others; `moving`: the view goes on by itself.

        The most expensive view is first: a front end draws it while the others are computed.
        """
        self._mover, self._moved_ms = (weakref.ref(by) if moving else None), now_ms
        before, self.position = self.position, position
        if self.span is not None and not self.span[0] <= position.now_ms <= self.span[1]:
            follows = position.end and before is not None and before.live
            length = self.span[1] - self.span[0]
            self.span = (position.now_ms - length, position.now_ms) if follows else None
            by.show_span()
        others = [follower for follower in self._followers if follower is not by]
        if self._answers:
            self._late = [follower for follower in others if follower.hidden]
            others = [follower for follower in others if not follower.hidden]
        for follower in sorted(others, key=lambda follower: follower.cost_ms, reverse=True):
            follower.show_moment(position)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While a command of a front end is answered, hidden views wait: they show the position at the end."""
        self._answers = True
        try:
            yield
        finally:
            self._answers = False
            late, self._late = self._late, []
            for follower in late:
                assert self.position is not None
                follower.show_moment(self.position)

    def zoom(self, span: Span | None) -> None:
        """Show a span of time on the time axes of all views; None shows all of it. ValueError for no span.

        A span ends when the views move out of it; one at the live end moves with it.
        """
        if span is not None:
            span = plain(span[0]), plain(span[1])
        if span is not None and not (all(type(ms) is int for ms in span) and span[0] < span[1]):
            raise ValueError(f"the span must be two whole numbers, the first one lower, not {span!r}")
        self.span = span
        for follower in list(self._followers):
            follower.show_span()

    def select(self, subject: str, record: str | None = None) -> None:
        """Mark a subject in all views, or none (""). ValueError for a text that names no subject.

        `record`: the record that stays the last selected one. None: it does, until it is selected no more.
        """
        kind = parse(subject).kind if subject else ""
        if record:
            parse(record)
        if kind == "record":
            self.record = subject
        elif record is not None:
            self.record = record
        elif not subject and self.selection == self.record:
            self.record = ""
        self.selection = subject
        for follower in list(self._followers):
            follower.show_selection(subject)


def moment_of(journal: Journal) -> Moment:
    """The moment that views of a journal show."""
    return journal.own(Moment, Moment)
