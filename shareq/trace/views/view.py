"""View of one share-partition: snapshots for widgets, at the end of the journal or at any earlier point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import finalize

from shareq.model.errors import ConfigException
from shareq.model.events import RecordsChanged
from shareq.model.states import PREPARED
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.runs import Runs
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.steps import Steps
from shareq.trace.analysis.time_axis import Folds, TimeAxis
from shareq.trace.journal import Entry, journal_of
from shareq.trace.journal.event_text import event_text, list_text, range_text, write_text
from shareq.trace.views.marks import Mark, Marks
from shareq.trace.views.member_names import MemberNames
from shareq.trace.views.share_partition_html import ShownState, share_partition_html
from shareq.trace.views.step_text import step_text
from shareq.trace.views.strip_text import strip_text
from shareq.trace.views.subjects import check_subject

VERSION = 2
Snapshot = dict[str, Any]


def view(source: Any, group: str, topic: str, partition: int = 0, *, close: Callable[[], None] | None = None) -> View:
    """View of one share-partition. `source`: a `Journal`, or an object that has one as `.journal`, such as a cluster.

    The share-partition may have no events yet. ConfigException for an invalid argument, and for a group, topic or
    partition that the journal does not have while it has others. `close` is called when the view is closed, or no
    longer referenced.
    """
    if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
        raise ConfigException(f"partition={partition!r}: must be a whole number from 0")
    return View(source, group, topic, partition, close)


class View:
    """A share-partition and the events that concern it: `total()` of them so far, counted from 1.

    `snapshot(order)` is the state after the first `order` of them, as a dict of JSON values; letters and names of
    members stay the same for the life of the view. For use by one thread, while another one may write the journal.
    """

    def __init__(
        self, source: Any, group: str, topic: str, partition: int, close: Callable[[], None] | None = None
    ) -> None:
        self.group, self.topic, self.partition = group, topic, partition
        self.source = getattr(source, "cluster", source)
        self._journal = journal_of(self.source)
        check_subject(self._journal, group, topic, partition)
        self._close = None if close is None else finalize(self, close)
        self._timeline = PartitionTimeline(self._journal, group, topic, partition)
        self._members = MemberNames()
        self._marks = Marks()
        self._steps = Steps()
        self._folds = Folds(self._journal.origin_ms)

    def close(self) -> None:
        """Close what was opened for this view only, such as an observer; its journal stays. Repeatable."""
        if self._close is not None:
            self._close()

    # ---- where and when ----------------------------------------------------------------------------------------------

    def total(self) -> int:
        """Events recorded so far for this share-partition."""
        count = len(self._timeline.entries)
        for entry in self._timeline.refresh():
            count += 1
            self._members.add(count, entry)
            self._marks.add(count, entry, self._members.name)
            self._steps.add(entry)
            self._folds.add(entry.time_ms)
        return count

    def at_time(self, time_ms: int) -> int:
        """The order of the last event at or before `time_ms` (since the epoch); 0 if there is none."""
        self.total()
        return self._timeline.at_time(time_ms)

    def axis(self) -> TimeAxis:
        """The time axis: from the origin of the journal to the last event, or to the source's own time."""
        self.total()
        return self._folds.axis(int(getattr(self.source, "now_ms", 0)))

    def next_step(self, order: int) -> int:
        """The order of the last event of the next step: of all that one cause has changed. At the end, the last one."""
        self._check(order, low=0)
        return self._steps.after(order)

    def previous_step(self, order: int) -> int:
        """The order at which the step before the event at `order` has ended; 0 at the beginning."""
        self._check(order, low=0)
        return self._steps.before(order)

    def entry(self, order: int) -> Entry:
        """The journal's entry behind an order from 1 to `total()`."""
        self._check(order, low=1)
        return self._timeline.entries[order - 1]

    def sentence(self, order: int) -> str:
        """The event at an order from 1 to `total()` as a sentence."""
        entry = self.entry(order)
        return event_text(entry.broker_id, entry.event, self._members.name)

    def state(self, order: int | None = None) -> ShownState:
        """The state after `order` events (None: all of them), for programs; `snapshot` is for display."""
        return ShownState.of(self._at(order))

    def _at(self, order: int | None) -> SharePartitionState:
        total = self.total()
        if order is not None:
            self._check(order, low=0)
        return self._timeline.state(total if order is None else order)

    def _check(self, order: int, *, low: int) -> None:
        total = self.total()
        if isinstance(order, bool) or not isinstance(order, int) or not low <= order <= total:
            raise ValueError(f"order must be a whole number from {low} to {total}, not {order!r}")

    # ---- the snapshot ------------------------------------------------------------------------------------------------

    def snapshot(self, order: int | None = None) -> Snapshot:
        """The state after `order` events; None is the live end, at the source's own time. ValueError outside
        0..total.
        """
        state = self._at(order)
        total = len(self._timeline.entries)
        shown = total if order is None else order
        now_ms = state.now_ms or self._journal.origin_ms
        if order is None:
            now_ms = max(now_ms, int(getattr(self.source, "now_ms", 0)))
        return {
            "version": VERSION,
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "leader": state.leader,
            "now_ms": now_ms,
            "origin_ms": self._journal.origin_ms,
            "order": shown,
            "total": total,
            "loaded": state.loaded,
            "observed": state.observed,
            "disturbed": state.disturbed,
            "spso": state.spso,
            "window_end": state.window_end,
            "log_start": state.log_start,
            "log_end": state.log_end,
            "delivery_count_limit": state.delivery_count_limit,
            "max_record_locks": state.max_record_locks,
            "lock_duration_ms": state.lock_duration_ms,
            "in_flight": None if state.observed else state.in_flight,
            "lag": state.lag,
            "runs": _runs(state),
            "past": [
                [first, end, status.state.name.lower(), status.delivery_count] for first, end, status in state.past
            ],
            "members": self._shown_members(state.runs, shown),
            "writes": _writes(state),
            "event": self._event(shown) if shown else None,
            "step": self._step(shown) if shown else None,
            "marks": self._shown_marks(),
            "text": strip_text(state, self._members.letter),
        }

    def _shown_members(self, runs: Runs, order: int) -> list[dict[str, Any]]:
        """The members that hold records or are in the group, by letter."""
        present = self._members.present(order)
        held: dict[str, tuple[int, int | None]] = dict.fromkeys(present, (0, None))
        for first, end, status in runs:
            if status.member_id is not None:
                count, deadline_ms = held.get(status.member_id, (0, None))
                if status.deadline_ms is not None:
                    deadline_ms = status.deadline_ms if deadline_ms is None else min(deadline_ms, status.deadline_ms)
                held[status.member_id] = (count + end - first, deadline_ms)
        shown = sorted((self._members.member(member_id), member_id) for member_id in held)
        return [
            {"id": member_id, "name": member.name, "letter": member.letter, "held": held[member_id][0]}
            | {"deadline_ms": held[member_id][1], "alive": member_id in present}
            for member, member_id in shown
        ]

    def _event(self, order: int) -> dict[str, Any]:
        entry = self._timeline.entries[order - 1]
        event = entry.event
        cause = _snake(type(event).__name__)
        if isinstance(event, RecordsChanged):
            cause = str(event.why) if event.cause == PREPARED else str(event.cause)
        return {
            "order": order,
            "time_ms": entry.time_ms,
            "cause": cause,
            "first": getattr(event, "first", 0),
            "end": getattr(event, "end", 0),
            "member": getattr(event, "member_id", None),
            "text": event_text(entry.broker_id, event, self._members.name),
        }

    def _step(self, order: int) -> dict[str, Any] | None:
        """The step that ends at `order`, from its first event; None inside a step."""
        before = self._steps.before(order)
        if self._steps.after(before) != order:
            return None
        return {"first": before + 1, "text": step_text(self._timeline.entries[before:order], self._members.name)}

    def _shown_marks(self) -> list[Mark]:
        return [dict(mark) for mark in self._marks.shown()]

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{self.group} on {self.topic}-{self.partition}: {strip_text(self._at(None), self._members.letter)}"

    def _repr_html_(self) -> str:
        return share_partition_html(self._at(None), self._members.name, self._members.letter)


def _runs(state: SharePartitionState) -> list[list[Any]]:
    return [
        [first, end, status.name, *status[1:5], None if status.to_state is None else status.to_state.name.lower()]
        for first, end, status in state.runs
    ]


def _writes(state: SharePartitionState) -> list[dict[str, Any]]:
    """The state writes under way, with the records and states that each one writes."""
    if not state.writes:
        return []
    texts_of: dict[int, list[str]] = {write_id: [] for write_id in state.writes}
    for first, end, status in state.runs:
        if status.write_id in texts_of:
            texts_of[status.write_id].append(f"{range_text(first, end)} {status.why}")
    return [
        {"id": write_id, "since_ms": since_ms, "text": list_text(texts_of[write_id], 3) or write_text(event)}
        for write_id, (since_ms, event) in state.writes.items()
    ]


def _snake(name: str) -> str:
    """StateWriteSettled -> state_write_settled."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
