"""Index of entries by event type, and within it by the group, topic and partition that an event is about.

A reader extends the index to the end of the log before each lookup; a lock excludes concurrent extensions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from itertools import chain
from operator import itemgetter
from threading import Lock
from typing import Any, NamedTuple

from shareq.model.events import ConfigChanged, Event, StateLogPruned, StateRecordWritten
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.trace.journal.entry_log import Entry, EntryLog
from shareq.trace.journal.journal_file import without_collection

MANY = 100_000
"""From this number of new entries on, the garbage collector waits: it would go through the new lists, twice."""


class Subject(NamedTuple):
    """The group, topic and partition that an event is about; None where it names none."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None


def subject_of(event: Event) -> Subject:
    """The subject of an event, taken from its fields."""
    return Subject(*KEYS[type(event)](event))


Key = tuple[str | None, str | None, int | None]
"""A subject as a plain tuple: equal to the subject, with the same hash, and made at a fifth of its cost."""


class _Keys(dict[type, Callable[[Any], Key]]):
    """Event type -> function from an event of this type to the key of its subject."""

    def __missing__(self, event_type: type) -> Callable[[Any], Key]:
        found = self[event_type] = _key_of(event_type)
        return found


def _key_of(event_type: Any) -> Callable[[Any], Key]:
    """A function that takes the key from the fields group_id, topic and partition, as far as the type has them."""
    other = _OTHER_FIELDS.get(event_type)
    if other is not None:
        return other
    names = list(event_type._fields)
    group, topic, partition = (names.index(n) if n in names else -1 for n in ("group_id", "topic", "partition"))
    if topic < 0:
        return lambda event: (event[group], None, None) if group >= 0 else (None, None, None)
    if group >= 0 and partition >= 0:
        return itemgetter(group, topic, partition)
    if group >= 0:
        return lambda event: (event[group], event[topic], None)
    return lambda event: (None, event[topic], event[partition] if partition >= 0 else None)


def _key_of_config(event: ConfigChanged) -> Key:
    kind, _, name = event.resource.partition(":")
    return name if kind == "group" else None, name if kind == "topic" else None, None


_OTHER_FIELDS: dict[type, Callable[[Any], Key]] = {
    ConfigChanged: _key_of_config,
    StateRecordWritten: lambda event: (event.key.rsplit(":", 2)[0], None, None),
    StateLogPruned: lambda event: (None, SHARE_STATE_TOPIC, event.partition),
}
"""Event types whose subject is in fields with other names."""

KEYS = _Keys()


class Index:
    """Index of one log. When a bounded log has dropped entries, the index is rebuilt."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._first = self._next = 0
        self._found: defaultdict[type, defaultdict[Key, list[Entry]]] = defaultdict(partial(defaultdict, list))

    def _refresh(self) -> None:
        if self._log.dropped > self._first:
            self._clear()
            self._first = self._log.dropped
        entries = self._log.since(self._next)
        if entries:
            with without_collection() if len(entries) >= MANY else nullcontext():
                self._add(entries)
            self._next = entries[-1].order + 1

    def _add(self, entries: list[Entry]) -> None:
        found, keys = self._found, KEYS
        for entry in entries:
            event = entry[3]
            kind = type(event)
            found[kind][keys[kind](event)].append(entry)

    def subjects(self) -> list[Subject]:
        """The subjects of all entries, in order of first appearance."""
        with self._lock:
            self._refresh()
            first: dict[Key, int] = {}
            for by_subject in self._found.values():
                for key, part in by_subject.items():
                    first[key] = min(first.get(key, part[0].order), part[0].order)
        return [Subject(*key) for key in sorted(first, key=first.__getitem__)]

    def select(
        self, types: tuple[type, ...], group: str | None, topic: str | None, partition: int | None
    ) -> list[Entry]:
        """See `Journal.select`."""
        wanted = Subject(group, topic, partition)
        with self._lock:
            self._refresh()
            of_types = [self._found[t] for t in types if t in self._found] if types else self._found.values()
            if wanted == Subject():
                return _joined([part for found in of_types for part in found.values()]) if types else self._log[:]
            return _joined([part for found in of_types for key, part in found.items() if _matches(key, wanted)])

    def between(self, first: int, end: int, types: Iterable[type], subject: Subject | None) -> list[Entry]:
        """See `Journal.between`."""
        with self._lock:
            self._refresh()
            of_types = [self._found[t] for t in types if t in self._found]
            if subject is None:
                parts = [part for found in of_types for part in found.values()]
            else:
                parts = [found[subject] for found in of_types if subject in found]
            return _joined([_part(part, first, end) for part in parts if part[-1].order >= first])


def _part(entries: list[Entry], first: int, end: int) -> list[Entry]:
    """The entries with an order in [first, end)."""
    return entries[bisect_left(entries, first, key=_ORDER) : bisect_left(entries, end, key=_ORDER)]


def _joined(parts: list[list[Entry]]) -> list[Entry]:
    """The entries of lists without common ones, by order; a list of its own."""
    filled = [part for part in parts if part]
    return filled[0][:] if len(filled) == 1 else sorted(chain.from_iterable(filled), key=_ORDER)


_ORDER: Callable[[Entry], int] = itemgetter(0)


def _matches(subject: Key, wanted: Subject) -> bool:
    """True if the subject has all values of `wanted`; None matches any value."""
    return all(w is None or value == w for value, w in zip(subject, wanted, strict=True))
