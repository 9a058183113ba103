"""Marks on a timeline: the notable events, thinned to a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

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


class _Found(NamedTuple):
    """The entries with marks of one kind, and the number of entries of the view up to and including each. Two lists: a
    tuple for each mark of a long journal would be work for each garbage collection."""

    counts: list[int]
    entries: list[Entry]


class Marks:
    """The marks of one timeline, in order. `name`: the name of a member, for the texts."""

    def __init__(self, name: Name) -> None:
        self._name = name
        self._found: dict[str, _Found] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._appended: dict[int, int] = {}
        """The records that were appended at a time: a mark stands for all batches of its time."""
        self._thinned: tuple[int, list[Mark]] = (0, [])

    def add(self, count: int, entries: Iterable[Entry]) -> None:
        """Add the marks of the entries of the view that follow the first `count` ones."""
        found = self._found
        for entry in entries:
            count += 1
            event: Any = entry[3]
            event_type = type(event)
            if event_type is RecordsChanged:
                if event[6] not in _RETURNED:
                    continue
            elif event_type not in _KINDS_OF or (event_type is StateWriteSettled and not event[4]):
                continue
            kind = _KINDS_OF[event_type](self, event)
            if kind is not None:
                if isinstance(event, RecordsAppended):
                    self._count(entry[1], event)
                same = found.get(kind) or found.setdefault(kind, _Found([], []))
                if not same.entries or same.entries[-1][1] != entry[1]:
                    same.counts.append(count)
                    same.entries.append(entry)

    def _count(self, time_ms: int, event: RecordsAppended) -> None:
        self._appended[time_ms] = self._appended.get(time_ms, 0) + event.end - event.first
        self._thinned = (0, [])

    def of_election(self, event: LeaderElected) -> str | None:
        """The kind of an election: a mark if another broker led before."""
        before = self._leaders.get((event.topic, event.partition), -1)
        self._leaders[event.topic, event.partition] = event.leader
        return "leader_moved" if before not in (-1, event.leader) else None

    def shown(self) -> list[Mark]:
        """At most MARKS marks, by order. Of a kind with too many, an evenly spaced selection."""
        total = sum(len(same.counts) for same in self._found.values())
        if self._thinned[0] != total:
            self._thinned = (total, sorted(self._thin(), key=lambda mark: int(mark["order"])))
        return self._thinned[1]

    def _mark(self, kind: str, order: int, entry: Entry) -> Mark:
        appended = kind == "appended"
        text = f"{self._appended[entry.time_ms]} appended" if appended else _TEXTS[kind](entry.event, self._name)
        return {"order": order, "time_ms": entry.time_ms, "kind": kind, "rank": KINDS.index(kind), "text": text}

    def _thin(self) -> list[Mark]:
        kinds, room, chosen = [k for k in KINDS if k in self._found], MARKS, []
        for place, kind in enumerate(kinds):
            (counts, entries), others = self._found[kind], len(kinds) - place - 1
            rest = sum(min(len(self._found[k].counts), 4) for k in kinds[place + 1 :])
            share = min(len(counts), max(room - rest, 4))
            places = [i * len(counts) // share for i in range(share)]
            chosen += [self._mark(kind, counts[place], entries[place]) for place in places]
            room -= share if others else 0
        return chosen


def failures(entries: Iterable[Entry], name: Name) -> list[Mark]:
    """The marks of deaths, faults and elections, thinned to the limit; a member that leaves by itself is none."""
    marks = Marks(name)
    marks.add(0, [entry for entry in entries if type(entry[3]) in _FAILURES and not _has_left_by_itself(entry)])
    return marks.shown()


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
    RecordsChanged: _of_records,
    StateWriteSettled: lambda _, __: "write_failed",
    LeaderElected: Marks.of_election,
    MemberLeft: lambda _, __: "member_left",
    BrokerStopped: lambda _, __: "broker_killed",
    ObservationDisturbed: lambda _, event: "disturbed" if event.reason else None,
    FaultInjected: lambda _, __: "fault",
    RecordsAppended: lambda _, __: "appended",
    LogStartMoved: lambda _, __: "log_start",
}
"""Event type -> the kind of an event's mark, None if it has none. `add` leaves out the most frequent ones without."""

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
