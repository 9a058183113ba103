"""Which entries are about what: by event type, and by group, topic and partition.

Built by whoever reads, as far as the journal has come; a lock keeps two readers from building at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import Any, NamedTuple

from shareq.model.events import ConfigChanged, Event, StateLogPruned, StateRecordWritten
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.trace.journal import Entry, Journal


class Subject(NamedTuple):
    """What an event is about; None where it is about no particular one."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None


def subject(event: Event) -> Subject:
    """What an event is about, by its fields."""
    places = _PLACES.get(type(event))
    if places is None:
        places = _PLACES[type(event)] = _places(type(event))
    group, topic, partition = places
    if group == topic == partition == -1:
        return _special(event)
    fields: tuple[Any, ...] = event
    return Subject(
        None if group < 0 else fields[group],
        None if topic < 0 else fields[topic],
        None if partition < 0 or topic < 0 else fields[partition],
    )


_PLACES: dict[type, tuple[int, int, int]] = {StateLogPruned: (-1, -1, -1)}


def _places(event_type: type[Any]) -> tuple[int, int, int]:
    names = list(event_type._fields)
    group, topic, partition = (names.index(n) if n in names else -1 for n in ("group_id", "topic", "partition"))
    return group, topic, partition


def _special(event: Event) -> Subject:
    """Events that name what they are about in a way of their own."""
    if isinstance(event, ConfigChanged):
        kind, _, name = event.resource.partition(":")
        return Subject(name if kind == "group" else None, name if kind == "topic" else None)
    if isinstance(event, StateRecordWritten):
        return Subject(event.key.rsplit(":", 2)[0])
    if isinstance(event, StateLogPruned):
        return Subject(None, SHARE_STATE_TOPIC, event.partition)
    return Subject()


class Index:
    """The entries of one journal, filed twice. A bounded journal is filed anew when it has dropped something."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._first = self._next = 0
        self._by_type: defaultdict[type, list[Entry]] = defaultdict(list)
        self._by_subject: defaultdict[Subject, list[Entry]] = defaultdict(list)

    def _refresh(self) -> None:
        if self._journal.dropped > self._first:
            self._clear()
            self._first = self._journal.dropped
        entries = self._journal.since(self._next)
        for entry in entries:
            self._by_type[type(entry.event)].append(entry)
            self._by_subject[subject(entry.event)].append(entry)
        if entries:
            self._next = entries[-1].order + 1

    def about(self, key: Subject) -> list[Entry]:
        """The entries about exactly this; a list that only grows, until the journal drops something."""
        with self._lock:
            self._refresh()
            return self._by_subject.get(key, [])

    def subjects(self) -> list[Subject]:
        """All that entries are about, in order of first appearance."""
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
                found = [self._by_type.get(t, []) for t in types] if types else [self._journal.entries()]
                types = ()
            else:
                matching = [s for s in self._by_subject if _matches(s, wanted)]
                found = [self._by_subject[s] for s in matching]
        entries = found[0][:] if len(found) == 1 else sorted([entry for part in found for entry in part])
        return [entry for entry in entries if type(entry.event) in types] if types else entries


def _matches(has: Subject, wanted: Subject) -> bool:
    return all(w is None or h == w for h, w in zip(has, wanted, strict=True))


def index_of(journal: Journal) -> Index:
    """The one index of a journal, made when it is first asked for."""
    index = journal.index
    if index is None:
        index = journal.index = Index(journal)
    return index
