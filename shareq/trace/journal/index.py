"""Index of entries by event type, and within it by the group, topic and partition that an event is about.

A reader extends the index to the end of the log before each lookup; a lock excludes concurrent extensions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from itertools import chain
from threading import Lock

from shareq.trace.journal.entry_log import Entry, EntryLog
from shareq.trace.journal.journal_file import without_collection
from shareq.trace.journal.subject import KEYS, Key, Orders, Subject, no_orders

MANY = 100_000
"""From this number of new entries on, the garbage collector waits: it would go through the new lists, twice."""


class Index:
    """Index of one log. When a bounded log has dropped entries, the index is rebuilt."""

    def __init__(self, log: EntryLog, orders: Orders | None = None) -> None:
        """`orders`: those of all present entries, if they are known."""
        self._log = log
        self._lock = Lock()
        self._clear()
        if orders is not None:
            self._orders, self._next = orders, log.total

    def _clear(self) -> None:
        self._first = self._next = 0
        self._orders = no_orders()

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
        orders, keys = self._orders, KEYS
        for order, _, _, event in entries:
            kind = type(event)
            orders[kind][keys[kind](event)].append(order)

    def subjects(self) -> list[Subject]:
        """The subjects of all entries, in order of first appearance."""
        with self._lock:
            self._refresh()
            first: dict[Key, int] = {}
            for by_subject in self._orders.values():
                for key, part in by_subject.items():
                    first[key] = min(first.get(key, part[0]), part[0])
        return [Subject(*key) for key in sorted(first, key=first.__getitem__)]

    def select(
        self, types: tuple[type, ...], group: str | None, topic: str | None, partition: int | None
    ) -> list[Entry]:
        """See `Journal.select`."""
        wanted = Subject(group, topic, partition)
        with self._lock:
            self._refresh()
            if not types and wanted == Subject():
                return self._log[:]
            of_types = self._of(types) if types else self._orders.values()
            parts = [part for found in of_types for key, part in found.items() if _matches(key, wanted)]
            return self._log.at(_merged(parts))

    def between(self, first: int, end: int, types: Iterable[type]) -> list[Entry]:
        """See `Journal.between`."""
        with self._lock:
            self._refresh()
            parts = [part for found in self._of(types) for part in found.values()]
            return self._log.at(_merged(_part(part, first, end) for part in parts))

    def about(self, first: int, end: int, wanted: Mapping[Subject, Iterable[type]]) -> list[Entry]:
        """See `Journal.about`."""
        with self._lock:
            self._refresh()
            parts = [
                found[subject] for subject, types in wanted.items() for found in self._of(types) if subject in found
            ]
            return self._log.at(_merged(_part(part, first, end) for part in parts))

    def _of(self, types: Iterable[type]) -> list[defaultdict[Key, list[int]]]:
        return [self._orders[t] for t in types if t in self._orders]


def _part(orders: list[int], first: int, end: int) -> list[int]:
    """The orders in [first, end)."""
    if orders[-1] < first:  # as nearly always: a reader has read all but the last entries
        return []
    return orders[bisect_left(orders, first) : bisect_left(orders, end)]


def _merged(parts: Iterable[list[int]]) -> list[int]:
    """The orders of lists without common ones, ascending."""
    filled = [part for part in parts if part]
    return filled[0] if len(filled) == 1 else sorted(chain.from_iterable(filled))


def _matches(subject: Key, wanted: Subject) -> bool:
    """True if the subject has all values of `wanted`; None matches any value."""
    return all(w is None or value == w for value, w in zip(subject, wanted, strict=True))
