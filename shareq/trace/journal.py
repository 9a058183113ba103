"""The journal: everything that happened, in order, append-only. Whoever wants to know a state folds it.

One thread appends, any thread may read: entries are immutable, what has been read stays as it was, and the list only
grows (a bounded journal puts a shorter list in its place). Looking things up by type or share-partition goes through an
index that is built by whoever looks, so that appending costs one tuple and one list append.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, overload

from shareq.model.errors import ConfigException
from shareq.model.events import Event

if TYPE_CHECKING:
    from shareq.trace.index import Index


class Entry(NamedTuple):
    """`order` counts from 0 without gaps; `time_ms` since the epoch; `broker_id` -1: a client, or the cluster as a
    whole.
    """

    order: int
    time_ms: int
    broker_id: int
    event: Event


_new = tuple.__new__  # what a NamedTuple's own constructor comes to, at half its price


class Journal:
    """Append-only record of typed events; a sequence of `Entry`, oldest first.

    `origin_ms`: the time that is shown as t 00:00. `capacity`: keep so many of the newest entries (None: all).
    `enabled=False`: keep nothing; actors that are told so make no events at all.
    """

    def __init__(self, origin_ms: int = 0, *, capacity: int | None = None, enabled: bool = True) -> None:
        if capacity is not None and capacity < 1:
            raise ConfigException(f"capacity={capacity!r}: must be >= 1, or None to keep everything")
        self.origin_ms = origin_ms
        self.capacity = capacity
        self.enabled = enabled
        self._entries: list[Entry] = []
        self._next = 0
        self._trim_at = None if capacity is None else 2 * capacity
        self.errors: tuple[Exception, ...] = ()
        """What was wrong with the lines that a forgiving reader left out."""
        self.index: Index | None = None  # made by `index_of`

    @classmethod
    def of(cls, entries: list[Entry], origin_ms: int) -> Journal:
        """A journal of entries that were kept elsewhere; their orders must count up by one."""
        journal = cls(origin_ms)
        journal._entries = entries
        journal._next = entries[-1].order + 1 if entries else 0
        return journal

    def record(self, time_ms: int, broker_id: int, event: Event) -> None:
        """Append one event."""
        if not self.enabled:
            return
        order = self._next
        self._next = order + 1
        entries = self._entries
        entries.append(_new(Entry, (order, time_ms, broker_id, event)))
        if self._trim_at is not None and len(entries) >= self._trim_at:
            self._entries = entries[-self._trim_at // 2 :]

    # ---- a sequence --------------------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """What is kept, oldest first. Without a capacity this is the live list itself: do not change it."""
        entries = self._entries
        return entries if self.capacity is None else entries[-self.capacity :]

    @property
    def total(self) -> int:
        """How many events were recorded, those included that a capacity has dropped."""
        entries = self._entries
        return entries[-1].order + 1 if entries else 0

    @property
    def dropped(self) -> int:
        """How many of the oldest entries are gone."""
        entries = self._entries
        return entries[-min(len(entries), self.capacity or len(entries))].order if entries else 0

    def __len__(self) -> int:
        return len(self._entries) if self.capacity is None else min(len(self._entries), self.capacity)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    @overload
    def __getitem__(self, key: int) -> Entry: ...
    @overload
    def __getitem__(self, key: slice) -> list[Entry]: ...
    def __getitem__(self, key: int | slice) -> Entry | list[Entry]:
        return self.entries()[key]

    def since(self, order: int) -> list[Entry]:
        """The entries from `order` on that are still kept."""
        entries = self.entries()
        return entries[max(order - entries[0].order, 0) :] if entries else []

    def select(
        self, *types: type, group: str | None = None, topic: str | None = None, partition: int | None = None
    ) -> list[Entry]:
        """The entries with an event of these types (none given: of any) about this group, topic and partition.

        Cost follows what is found for one type or one share-partition, not the length of the journal.
        """
        from shareq.trace.index import index_of

        return index_of(self).select(types, group, topic, partition)

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write a file of JSON Lines; `shareq.trace.jsonl` says what is in it."""
        from shareq.trace.jsonl import write

        write(self, path)

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], *, strict: bool = True) -> Journal:
        """Read what `to_jsonl` wrote. A bad line is a JournalFileError that names it; see `shareq.trace.jsonl`."""
        from shareq.trace.jsonl import read

        return read(path, strict=strict)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file (needs pyarrow); `shareq.trace.parquet` documents the columns."""
        from shareq.trace.parquet import write

        write(self, path)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> Journal:
        """Read what `to_parquet` wrote."""
        from shareq.trace.parquet import read

        return read(path)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        kept = f"{len(self):,} events" if self.enabled else "off"
        return f"<Journal {kept}{f', {self.dropped:,} older ones dropped' if self.dropped else ''}>"

    def _repr_html_(self) -> str:
        from shareq.trace.reprs import journal_html

        return journal_html(self)
