"""Marks on a timeline: the notable events, thinned to a limit."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shareq.model.events import (
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
from shareq.model.states import PREPARED, RecordEvent, RecordState
from shareq.trace.analysis.replay import order_of
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import Name, range_text
from shareq.trace.views.snapshot import Mark

MARKS = 40
"""Maximum number of marks in a view."""

FAILURES = ("broker_killed", "leader_moved", "disturbed", "fault", "member_left")
"""The kinds that a diagram over time marks as lines."""

KINDS = (
    *FAILURES,
    "write_failed",
    "log_start",
    "lock_timeout",
    "archived",
    "appended",
)
"""Kinds of marks, the most important first: with too many marks, the last kinds are thinned most; of several marks at
one place, the first kind is drawn."""


class Marks:
    """The marks of one timeline. `entries`: all of it, a list that may grow; `name`: the name of a member, for the
    texts."""

    def __init__(self, entries: Sequence[Entry], name: Name) -> None:
        self._entries, self._name = entries, name
        self._found: dict[str, list[Entry]] = {}
        """Kind -> the first entry of each time. An object for each mark would be work for each garbage collection."""
        self._leaders: dict[tuple[str, int], int] = {}
        self._appended: dict[int, int] = {}
        """The records that were appended at a time: a mark stands for all batches of its time."""
        self._thinned: tuple[int, list[Mark]] = (0, [])

    def add(self, by_type: Mapping[type, Sequence[Entry]]) -> None:
        """Add the marks of the next entries: those of each type of events, in order."""
        for event_type, entries in by_type.items():
            if event_type is RecordsAppended:
                self._count(entries)
            elif event_type is RecordsChanged:
                changes: Sequence[Any] = entries
                self._add(_of_records, [entry for entry in changes if entry[3][6] in _RETURNED])
            elif event_type in _KINDS_OF:
                self._add(_KINDS_OF[event_type], entries)

    def _add(self, kind_of: Callable[[Marks, Any], str | None], entries: Iterable[Entry]) -> None:
        found = self._found
        for entry in entries:
            kind = kind_of(self, entry[3])
            if kind is not None:
                same = found.get(kind) or found.setdefault(kind, [])
                if not same or same[-1][1] != entry[1]:
                    same.append(entry)

    def _count(self, entries: Iterable[Entry]) -> None:
        appended, found = self._appended, self._found.setdefault("appended", [])
        of_records: Iterable[Any] = entries
        for entry in of_records:
            _, time_ms, _, (_, _, first, end) = entry
            if time_ms in appended:
                appended[time_ms] += end - first
            else:
                appended[time_ms] = end - first
                found.append(entry)
        self._thinned = (0, [])

    def of_election(self, event: LeaderElected) -> str | None:
        """The kind of an election: a mark if another broker led before."""
        before = self._leaders.get((event.topic, event.partition), -1)
        self._leaders[event.topic, event.partition] = event.leader
        return "leader_moved" if before not in (-1, event.leader) else None

    def shown(self) -> list[Mark]:
        """At most MARKS marks, by order. Of a kind with too many, an evenly spaced selection."""
        total = sum(map(len, self._found.values()))
        if self._thinned[0] != total:
            self._thinned = (total, sorted(self._thin(), key=lambda mark: int(mark["order"])))
        return self._thinned[1]

    def _mark(self, kind: str, entry: Entry) -> Mark:
        order = bisect_right(self._entries, entry[0], key=order_of)
        appended = kind == "appended"
        text = f"{self._appended[entry.time_ms]} appended" if appended else _TEXTS[kind](entry.event, self._name)
        return {"order": order, "time_ms": entry.time_ms, "kind": kind, "rank": KINDS.index(kind), "text": text}

    def _thin(self) -> list[Mark]:
        kinds, room, chosen = [k for k in KINDS if k in self._found], MARKS, []
        for place, kind in enumerate(kinds):
            entries, others = self._found[kind], len(kinds) - place - 1
            rest = sum(min(len(self._found[k]), 4) for k in kinds[place + 1 :])
            share = min(len(entries), max(room - rest, 4))
            chosen += [self._mark(kind, entries[i * len(entries) // share]) for i in range(share)]
            room -= share if others else 0
        return chosen


def failures(entries: Sequence[Entry], name: Name) -> list[Mark]:
    """The marks of deaths, faults and elections, thinned to the limit; a member that leaves by itself is none."""
    marks = Marks(entries, name)
    found = [entry for entry in entries if type(entry[3]) in _FAILURES and not _has_left_by_itself(entry)]
    marks.add(by_type(found))
    return marks.shown()


def by_type(entries: Iterable[Entry]) -> Mapping[type, list[Entry]]:
    """The entries with each type of events, in order."""
    found: defaultdict[type, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[type(entry[3])].append(entry)
    return found


def _has_left_by_itself(entry: Entry) -> bool:
    """True for a member that has left, and was not removed."""
    return isinstance(entry.event, MemberLeft) and entry.event.reason == "left"


_FAILURES = frozenset((BrokerStopped, LeaderElected, ObservationDisturbed, FaultInjected, MemberLeft))
"""The types of the events with marks of these kinds."""

_RETURNED = (int(RecordState.AVAILABLE), int(RecordState.ARCHIVED))
"""The states of records after a lock has expired."""


_EXPIRED, _ARCHIVED = str(RecordEvent.LOCK_TIMEOUT), int(RecordState.ARCHIVED)


def _of_records(_: Marks, event: RecordsChanged) -> str | None:
    """The kind of an expired lock, or of an archived record."""
    if event.cause == _EXPIRED:
        return "lock_timeout"
    return "archived" if event.state == _ARCHIVED and event.cause != PREPARED else None


_KINDS_OF: dict[type, Callable[[Marks, Any], str | None]] = {
    StateWriteSettled: lambda _, event: "write_failed" if event[4] else None,
    LeaderElected: Marks.of_election,
    MemberLeft: lambda _, __: "member_left",
    BrokerStopped: lambda _, __: "broker_killed",
    ObservationDisturbed: lambda _, event: "disturbed" if event.reason else None,
    FaultInjected: lambda _, __: "fault",
    LogStartMoved: lambda _, __: "log_start",
}
"""Event type -> the kind of an event's mark, None if it has none. `add` leaves out most changes of records."""

_TEXTS: dict[str, Callable[[Any, Name], str]] = {
    "broker_killed": lambda event, _: f"broker {event.broker_id} {'killed' if event.killed else 'stopped'}",
    "leader_moved": lambda event, _: f"broker {event.leader} leads" if event.leader >= 0 else "no leader",
    "disturbed": lambda _, __: "not all seen",
    "fault": lambda event, _: str(event.text),
    "member_left": lambda e, name: f"{name(e.member_id)} {'left' if e.reason == 'left' else 'is gone'}",
    "write_failed": lambda _, __: "write failed",
    "log_start": lambda event, _: f"log starts at {event.log_start_offset}",
    "lock_timeout": lambda _, __: "time-out",
    "archived": lambda event, _: f"archived {range_text(event.first, event.end)}",
}
"""Kind -> the text of the mark of an event."""
