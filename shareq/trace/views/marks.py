"""Marks on a timeline: the notable events, thinned to a limit."""

from __future__ import annotations

from typing import Any

from shareq.model.events import (
    BrokerStopped,
    Event,
    FaultInjected,
    LeaderElected,
    LogStartMoved,
    MemberLeft,
    ObservationDisturbed,
    RecordsAppended,
    RecordsChanged,
    StateWriteSettled,
)
from shareq.model.states import PREPARED, RecordEvent, RecordState
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import Name, range_text

MARKS = 40
"""Maximum number of marks in a view."""

KINDS = (
    "broker_killed",
    "leader_moved",
    "disturbed",
    "fault",
    "member_left",
    "write_failed",
    "log_start",
    "lock_timeout",
    "archived",
    "appended",
)
"""Kinds of marks, the most important first: with too many marks, the last kinds are thinned most; of several marks at
one place, the first kind is drawn."""

_MARKED = frozenset(
    (
        BrokerStopped,
        FaultInjected,
        LeaderElected,
        LogStartMoved,
        MemberLeft,
        ObservationDisturbed,
        RecordsAppended,
        RecordsChanged,
        StateWriteSettled,
    )
)
"""The types of the events that can have a mark."""

Mark = dict[str, Any]


class Marks:
    """The marks of one timeline, in order."""

    def __init__(self) -> None:
        self._found: dict[str, list[Mark]] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._thinned: tuple[int, list[Mark]] = (0, [])

    def add(self, count: int, entry: Entry, name: Name) -> None:
        """Add the mark of the `count`th entry of the view, if it has one."""
        if type(entry.event) not in _MARKED:
            return
        found = self._mark(entry.event, name)
        if found is None:
            return
        kind, text = found
        same = self._found.setdefault(kind, [])
        if not same or same[-1]["time_ms"] != entry.time_ms:
            same.append(
                {"order": count, "time_ms": entry.time_ms, "kind": kind, "rank": KINDS.index(kind), "text": text}
            )

    def _mark(self, event: Event, name: Name) -> tuple[str, str] | None:
        """Kind and text of the event's mark."""
        if isinstance(event, RecordsChanged):
            return _of_records(event)
        if isinstance(event, StateWriteSettled):
            return ("write_failed", "write failed") if event.error else None
        if isinstance(event, LeaderElected):
            before = self._leaders.get((event.topic, event.partition), -1)
            self._leaders[event.topic, event.partition] = event.leader
            moved = f"broker {event.leader} leads" if event.leader >= 0 else "no leader"
            return ("leader_moved", moved) if before not in (-1, event.leader) else None
        if isinstance(event, MemberLeft):
            return "member_left", f"{name(event.member_id)} {'left' if event.reason == 'left' else 'is gone'}"
        if isinstance(event, BrokerStopped):
            return "broker_killed", f"broker {event.broker_id} {'killed' if event.killed else 'stopped'}"
        if isinstance(event, ObservationDisturbed):
            return ("disturbed", "not all seen") if event.reason else None
        return ("fault", event.text) if isinstance(event, FaultInjected) else _of_log(event)

    def shown(self) -> list[Mark]:
        """At most MARKS marks, by order. Of a kind with too many, an evenly spaced selection."""
        total = sum(map(len, self._found.values()))
        if self._thinned[0] != total:
            self._thinned = (total, sorted(self._thin(), key=lambda mark: int(mark["order"])))
        return self._thinned[1]

    def _thin(self) -> list[Mark]:
        kinds, room, chosen = [k for k in KINDS if k in self._found], MARKS, []
        for place, kind in enumerate(kinds):
            marks, others = self._found[kind], len(kinds) - place - 1
            share = min(len(marks), max(room - sum(min(len(self._found[k]), 4) for k in kinds[place + 1 :]), 4))
            chosen += [marks[i * len(marks) // share] for i in range(share)]
            room -= share if others else 0
        return chosen


_RETURNED = (int(RecordState.AVAILABLE), int(RecordState.ARCHIVED))
"""The states of records after a lock has expired."""


def _of_records(event: RecordsChanged) -> tuple[str, str] | None:
    """The mark of an expired lock, or of an archived record."""
    if event.state not in _RETURNED:
        return None
    if event.cause == RecordEvent.LOCK_TIMEOUT:
        return "lock_timeout", "time-out"
    if event.state == RecordState.ARCHIVED and event.cause != PREPARED:
        return "archived", f"archived {range_text(event.first, event.end)}"
    return None


def _of_log(event: Event) -> tuple[str, str] | None:
    """The mark of appended records, or of a moved log start."""
    if isinstance(event, RecordsAppended):
        return "appended", f"{event.end - event.first} appended"
    return ("log_start", f"log starts at {event.log_start_offset}") if isinstance(event, LogStartMoved) else None
