"""View of one share-partition: snapshots for widgets, at the end of the journal or at any earlier point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.errors import ConfigException
from shareq.model.events import FaultInjected
from shareq.model.numbers import plain
from shareq.trace.analysis.group_history import history_of
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.runs import Runs
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.waits import waits_for
from shareq.trace.journal.event_text import list_text, range_text, write_text
from shareq.trace.views.event_index import EventIndex
from shareq.trace.views.event_view import EventView, Snapshot
from shareq.trace.views.palette import member_colour
from shareq.trace.views.share_partition_html import ShownState, share_partition_html
from shareq.trace.views.strip_text import strip_text
from shareq.trace.views.subjects import check_subject

VERSION = 2


def view(source: Any, group: str, topic: str, partition: int = 0, *, close: Callable[[], None] | None = None) -> View:
    """View of one share-partition. `source`: a `Journal`, or an object that has one as `.journal`, such as a cluster.

    The share-partition may have no events yet. ConfigException for an invalid argument, and for a group, topic or
    partition that the journal does not have while it has others. `close` is called when the view is closed, or no
    longer referenced.
    """
    partition = plain(partition)
    if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
        raise ConfigException(f"partition={partition!r}: must be a whole number from 0")
    return View(source, group, topic, partition, close)


@used_by_one_thread
class View(EventView):
    """A share-partition and the events that concern it: `total()` of them so far, counted from 1.

    `snapshot(order)` is the state after the first `order` of them, as a dict of JSON values; letters and names of
    members stay the same. `waits`: what the share-partition waits for, None if the journal does not show it. Threads
    take turns, while another one may write the journal.
    """

    def __init__(
        self, source: Any, group: str, topic: str, partition: int, close: Callable[[], None] | None = None
    ) -> None:
        super().__init__(source, group, close)
        self.topic, self.partition = topic, partition
        check_subject(self.journal, group, topic, partition)
        self._history = history = history_of(self.journal, group)
        self._index = EventIndex(
            self._names, self.journal.origin_ms, lambda: history.timeline(topic, partition).entries
        )

    @property
    def _timeline(self) -> PartitionTimeline:
        """The entries of the share-partition, up to the end of the journal."""
        return self._history.timeline(self.topic, self.partition)

    def state(self, order: int | None = None) -> ShownState:
        """The state after `order` events (None: all of them), for programs; `snapshot` is for display."""
        return ShownState.of(self._at(order))

    def _at(self, order: int | None) -> SharePartitionState:
        total = self.total()
        if order is not None:
            self._check(order, low=0)
        return self._timeline.state(total if order is None else order)

    # ---- the snapshot ------------------------------------------------------------------------------------------------

    def snapshot(self, order: int | None = None) -> Snapshot:
        """The state after `order` events; None is the live end, at the source's own time. ValueError outside
        0..total.
        """
        state = self._at(order)
        common, wait = super().snapshot(order), waits_for(state)
        shown = int(common["order"])
        experiments: Snapshot = {}
        if state.log_kept is not None:
            since_ms, kept = state.log_kept
            experiments["log_kept"] = {"since_ms": since_ms, "needed_by": kept.needed_by, "reason": kept.reason}
        return (
            common
            | experiments
            | {
                "version": VERSION,
                "topic": self.topic,
                "partition": self.partition,
                "leader": state.leader,
                "loaded": state.loaded,
                "observed": state.uncertain,
                "tapped": state.observed and not state.uncertain,
                "disturbed": state.disturbed,
                "spso": state.spso,
                "window_end": state.window_end,
                "log_start": state.log_start,
                "log_end": state.log_end,
                "delivery_count_limit": state.delivery_count_limit,
                "max_record_locks": state.max_record_locks,
                "lock_duration_ms": state.lock_duration_ms,
                "in_flight": None if state.uncertain else state.in_flight,
                "lag": state.lag,
                "runs": _runs(state),
                "past": [
                    [first, end, status.state.name.lower(), status.delivery_count] for first, end, status in state.past
                ],
                "members": self._shown_members(state.runs, shown),
                "writes": _writes(state),
                "waits": None if wait is None else wait.value,
                "text": strip_text(state, self._names.letter),
            }
        )

    def _shown_members(self, runs: Runs, order: int) -> list[dict[str, Any]]:
        """The members that hold records or are in the group, by letter; `alive`: in it, and its program runs, as far as
        the journal has its crash."""
        moment = self.moment(order)
        present = self._names.present(moment)
        events = (entry.event for entry in self.journal.between(0, moment, (FaultInjected,)))
        crashed = {one.member_id for one in events if isinstance(one, FaultInjected) and one.fault == "crashed"}
        held: dict[str, tuple[int, int | None]] = dict.fromkeys(present, (0, None))
        for first, end, status in runs:
            if status.member_id is not None:
                count, deadline_ms = held.get(status.member_id, (0, None))
                if status.deadline_ms is not None:
                    deadline_ms = status.deadline_ms if deadline_ms is None else min(deadline_ms, status.deadline_ms)
                held[status.member_id] = (count + end - first, deadline_ms)
        shown = sorted((self._names.member(member_id), member_id) for member_id in held)
        return [
            {"id": member_id, "name": member.name, "letter": member.letter, "colour": member_colour(member.place)}
            | {"held": held[member_id][0], "deadline_ms": held[member_id][1]}
            | {"alive": member_id in present and member_id not in crashed}
            for member, member_id in shown
        ]

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{self.group} on {self.topic}-{self.partition}: {strip_text(self._at(None), self._names.letter)}"

    def _repr_html_(self) -> str:
        return share_partition_html(self._at(None), self._names.name, self._names.letter)


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
