"""Index of entries by event type, and by the group, topic and partition that an event is about.

A reader extends the index to the end of the log before each lookup; a lock excludes concurrent extensions.
"""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import Any, NamedTuple

from shareq.model.events import ConfigChanged, Event, StateLogPruned, StateRecordWritten
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.trace.journal.entry_log import Entry, EntryLog


class Subject(NamedTuple):
    """The group, topic and partition that an event is about; None where it names none."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None


def subject_of(event: Event) -> Subject:
    """The subject of an event, taken from its fields."""
    places = _PLACES.get(type(event))
    if places is None:
        places = _PLACES[type(event)] = _places(type(event))
    group, topic, partition = places
    if group == topic == partition == -1:
        return _subject_in_other_fields(event)
    fields: tuple[Any, ...] = event
    return Subject(
        None if group < 0 else fields[group],
        None if topic < 0 else fields[topic],
        None if partition < 0 or topic < 0 else fields[partition],
    )


_PLACES: dict[type, tuple[int, int, int]] = {StateLogPruned: (-1, -1, -1)}
"""Event type -> positions of its fields group_id, topic and partition; -1 where it has no such field."""


def _places(event_type: type[Any]) -> tuple[int, int, int]:
    names = list(event_type._fields)
    group, topic, partition = (names.index(n) if n in names else -1 for n in ("group_id", "topic", "partition"))
    return group, topic, partition


def _subject_in_other_fields(event: Event) -> Subject:
    """The subject of events whose fields have other names."""
    if isinstance(event, ConfigChanged):
        kind, _, name = event.resource.partition(":")
        return Subject(name if kind == "group" else None, name if kind == "topic" else None)
    if isinstance(event, StateRecordWritten):
        return Subject(event.key.rsplit(":", 2)[0])
    if isinstance(event, StateLogPruned):
        return Subject(None, SHARE_STATE_TOPIC, event.partition)
    return Subject()


class Index:
    """Index of one log. When a bounded log has dropped entries, the index is rebuilt."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._first = self._next = 0
        self._by_type: defaultdict[type, list[Entry]] = defaultdict(list)
        self._by_subject: defaultdict[Subject, list[Entry]] = defaultdict(list)

    def _refresh(self) -> None:
        if self._log.dropped > self._first:
            self._clear()
            self._first = self._log.dropped
        entries = self._log.since(self._next)
        for entry in entries:
            self._by_type[type(entry.event)].append(entry)
            self._by_subject[subject_of(entry.event)].append(entry)
        if entries:
            self._next = entries[-1].order + 1

    def about(self, subject: Subject) -> list[Entry]:
        """The entries with exactly this subject; a list that only grows, until the log drops entries."""
        with self._lock:
            self._refresh()
            return self._by_subject.get(subject, [])

    def subjects(self) -> list[Subject]:
        """The subjects of all entries, in order of first appearance."""
        with self._lock:
            self._refresh()
            return list(self._by_subject)

    def select(
        self, types: tuple[type, ...], group: str | None, topic: str | None, partition: int | None
    ) -> list[Entry]:
        """See `Journal.select`."""
        with self._lock:
            self._refresh()
            wanted = Subject(group, topic, partition)
            if wanted == Subject():
                found = [self._by_type.get(t, []) for t in types] if types else [self._log.entries()]
                types = ()
            else:
                matching = [s for s in self._by_subject if _matches(s, wanted)]
                found = [self._by_subject[s] for s in matching]
        entries = found[0][:] if len(found) == 1 else sorted([entry for part in found for entry in part])
        return [entry for entry in entries if type(entry.event) in types] if types else entries


def _matches(subject: Subject, wanted: Subject) -> bool:
    """True if the subject has all values of `wanted`; None matches any value."""
    return all(w is None or value == w for value, w in zip(subject, wanted, strict=True))
