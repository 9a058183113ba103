"""A timeline as a person moves through it: its events as sentences, its steps, its marks and its time axis."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any
from weakref import finalize

from shareq.model.events import RecordsChanged
from shareq.model.numbers import plain
from shareq.model.states import PREPARED
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.analysis.replay import order_of, time_of
from shareq.trace.analysis.time_axis import TimeAxis
from shareq.trace.journal import Entry, journal_of
from shareq.trace.journal.event_text import event_text
from shareq.trace.views.event_index import EventIndex
from shareq.trace.views.member_names import names_of
from shareq.trace.views.snapshot import Event, Mark, Snapshot, Step
from shareq.trace.views.step_text import step_text


@used_by_one_thread
class EventView:
    """The entries of a source that concern one subject: `total()` of them so far, counted from 1.

    A position is a count of entries; a moment of the whole journal is an `until`, see `GroupHistory`. Letters and names
    of members stay the same. Threads take turns, while another one may write the journal.
    """

    def __init__(self, source: Any, group: str, close: Callable[[], None] | None = None) -> None:
        """A subclass sets `_index`."""
        self.group = group
        self.source = getattr(source, "cluster", source)
        self.journal = journal_of(self.source)
        self._close = None if close is None else finalize(self, close)
        self._names = names_of(self.journal, group)
        self._index: EventIndex

    def close(self) -> None:
        """Close what was opened for this view only, such as an observer; its journal stays. Repeatable."""
        if self._close is not None:
            self._close()

    # ---- where and when ----------------------------------------------------------------------------------------------

    def total(self) -> int:
        """Events recorded so far for this subject."""
        return self._index.refresh()

    def at_time(self, time_ms: int) -> int:
        """The order of the last event at or before `time_ms` (since the epoch); 0 if there is none."""
        self.total()
        return bisect_right(self._index.entries, time_ms, key=time_of)

    def at_moment(self, until: int) -> int:
        """The number of entries whose order in the journal is below `until`."""
        self.total()
        return bisect_left(self._index.entries, until, key=order_of)

    def moment(self, order: int | None = None) -> int:
        """The moment of the journal directly after the event at `order`; None is the end of the journal."""
        if order is None:
            return self.journal.total
        self._check(order, low=0)
        return self._index.entries[order - 1].order + 1 if order else 0

    def moment_at(self, time_ms: int) -> int:
        """The moment of the journal after all events up to and including `time_ms` (since the epoch)."""
        return self.journal.until(time_ms)

    def axis(self) -> TimeAxis:
        """The time axis: from the origin of the journal to the last event, or to the source's own time."""
        self.total()
        return self._index.folds.axis(int(getattr(self.source, "now_ms", 0)))

    def next_step(self, order: int) -> int:
        """The order of the last event of the next step: of all that one cause has changed. At the end, the last one."""
        self._check(order, low=0)
        return self._index.steps.after(order)

    def previous_step(self, order: int) -> int:
        """The order at which the step before the event at `order` has ended; 0 at the beginning."""
        self._check(order, low=0)
        return self._index.steps.before(order)

    def entry(self, order: int) -> Entry:
        """The journal's entry behind an order from 1 to `total()`."""
        self._check(order, low=1)
        return self._index.entries[order - 1]

    def sentence(self, order: int) -> str:
        """The event at an order from 1 to `total()` as a sentence."""
        return self._text(self.entry(order))

    def cause(self, order: int) -> str:
        """Why the event at an order from 1 to `total()` happened: a change of records by its own cause, another event
        by its name."""
        event = self.entry(order).event
        if isinstance(event, RecordsChanged):
            return str(event.why) if event.cause == PREPARED else str(event.cause)
        return _snake(type(event).__name__)

    def _check(self, order: int, *, low: int) -> None:
        total = self.total()
        order = plain(order)
        if isinstance(order, bool) or not isinstance(order, int) or not low <= order <= total:
            raise ValueError(f"order must be a whole number from {low} to {total}, not {order!r}")

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self, order: int | None = None) -> Snapshot:
        """The state after `order` events, as JSON values; None is the live end, at the source's own time.

        ValueError outside 0..total.
        """
        total = self.total()
        if order is not None:
            self._check(order, low=0)
        shown = total if order is None else order
        return {
            "group": self.group,
            "now_ms": self._now_ms(shown, live=order is None),
            "origin_ms": self.journal.origin_ms,
            "order": shown,
            "total": total,
            "event": self._event(shown) if shown else None,
            "step": self._step(shown) if shown else None,
            "marks": [mark.copy() for mark in self._shown_marks()],
        }

    def _now_ms(self, order: int, *, live: bool) -> int:
        last_ms = self._index.entries[order - 1].time_ms if order else self.journal.origin_ms
        return max(last_ms, int(getattr(self.source, "now_ms", 0))) if live else last_ms

    def _event(self, order: int) -> Event:
        entry = self._index.entries[order - 1]
        event = entry.event
        return {
            "order": order,
            "time_ms": entry.time_ms,
            "cause": self.cause(order),
            "first": getattr(event, "first", 0),
            "end": getattr(event, "end", 0),
            "member": getattr(event, "member_id", None),
            "text": self._text(entry),
        }

    def _step(self, order: int) -> Step | None:
        """The step that ends at `order`, from its first event; None inside a step."""
        before = self._index.steps.before(order)
        if self._index.steps.after(before) != order:
            return None
        text = step_text(self._index.entries[before:order], self._names.name, self._place)
        return {"first": before + 1, "text": text}

    def _text(self, entry: Entry) -> str:
        return self._place(entry) + event_text(entry.broker_id, entry.event, self._names.name)

    def _place(self, entry: Entry) -> str:
        """What a sentence begins with where the subject has several places; empty if it has one."""
        del entry
        return ""

    def _shown_marks(self) -> list[Mark]:
        return self._index.marks.shown()


def _snake(name: str) -> str:
    """StateWriteSettled -> state_write_settled."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
