"""What is worth scrubbing to: the turns of a story, thinned to as many as fit a timeline."""

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
    RecordsChanged,
    StateWriteSettled,
)
from shareq.model.states import RecordEvent, RecordState
from shareq.trace.changes import PREPARED
from shareq.trace.journal import Entry
from shareq.trace.words import Name, span

MARKS = 40
"""How many marks a view shows at most."""

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
)
"""Rarest and weightiest first: where there are too many, the last ones are thinned most."""

Mark = dict[str, Any]


class Marks:
    """The marks of one story, in order."""

    def __init__(self) -> None:
        self._found: dict[str, list[Mark]] = {}
        self._leader = -1
        self._thinned: tuple[int, list[Mark]] = (0, [])

    def take_in(self, count: int, entry: Entry, name: Name) -> None:
        """The view's entry that makes `count` of them."""
        told = self._tell(entry.event, name)
        if told is None:
            return
        kind, text = told
        same = self._found.setdefault(kind, [])
        if not same or same[-1]["time_ms"] != entry.time_ms:
            same.append({"order": count, "time_ms": entry.time_ms, "kind": kind, "text": text})

    def _tell(self, event: Event, name: Name) -> tuple[str, str] | None:
        if isinstance(event, RecordsChanged):
            return _of_records(event)
        if isinstance(event, StateWriteSettled):
            return ("write_failed", "write failed") if event.error else None
        if isinstance(event, LeaderElected):
            before, self._leader = self._leader, event.leader
            moved = f"broker {event.leader} leads" if event.leader >= 0 else "no leader"
            return ("leader_moved", moved) if before not in (-1, event.leader) else None
        if isinstance(event, MemberLeft):
            return "member_left", f"{name(event.member_id)} {'left' if event.reason == 'left' else 'is gone'}"
        if isinstance(event, BrokerStopped):
            return "broker_killed", f"broker {event.broker_id} {'killed' if event.killed else 'stopped'}"
        if isinstance(event, ObservationDisturbed):
            return ("disturbed", "not all seen") if event.reason else None
        if isinstance(event, FaultInjected):
            return "fault", event.text
        return ("log_start", f"log starts at {event.log_start_offset}") if isinstance(event, LogStartMoved) else None

    def shown(self) -> list[Mark]:
        """At most MARKS of them, by order. Of a kind that has too many an evenly spread choice is shown."""
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


def _of_records(event: RecordsChanged) -> tuple[str, str] | None:
    """A lock that ran out, or a record that is archived."""
    if event.cause == RecordEvent.LOCK_TIMEOUT:
        return "lock_timeout", "time-out"
    if event.state == RecordState.ARCHIVED and event.cause != PREPARED:
        return "archived", f"archived {span(event.first, event.end)}"
    return None
