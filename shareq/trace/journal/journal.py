"""The journal: every event of a cluster or an observer, in order, append-only. All states are folds of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, TypeVar

from shareq.html import Table, Tables, strong
from shareq.model.errors import ConfigException
from shareq.model.events import MemberJoined
from shareq.trace.journal import jsonl, parquet
from shareq.trace.journal.entry_log import Entry, EntryLog
from shareq.trace.journal.event_text import event_text, member_name
from shareq.trace.journal.index import Index
from shareq.trace.journal.journal_file import JournalFile
from shareq.trace.journal.subject import Subject

T = TypeVar("T")

LAST_EVENTS = 8
"""Number of newest events in the HTML of a notebook."""


class Journal(EntryLog, Tables):
    """Append-only record of typed events; a sequence of `Entry`, oldest first, with an index and two file formats.

    `origin_ms`: the time that views show as t 00:00. `capacity`: number of newest entries to keep (None: all).
    `enabled=False`: record nothing; actors with this flag create no events.
    """

    errors: tuple[Exception, ...] = ()
    """The lines that `from_jsonl(strict=False)` left out, each as a JournalFileError."""

    # ---- lookup ------------------------------------------------------------------------------------------------------

    def select(
        self, *types: type, group: str | None = None, topic: str | None = None, partition: int | None = None
    ) -> list[Entry]:
        """The entries with an event of these types (default: any) about this group, topic and partition.

        The cost follows the number of entries found for one type or one share-partition, not the journal's length.
        """
        return self._index().select(types, group, topic, partition)

    def between(self, first: int, end: int, types: Iterable[type]) -> list[Entry]:
        """The entries with an event of these types and an order in [first, end), as far as they are kept. The cost
        follows their number."""
        return self._index().between(first, end, types)

    def about(self, first: int, end: int, wanted: Mapping[Subject, Iterable[type]]) -> list[Entry]:
        """The same with exactly one of these subjects, each with event types of its own."""
        return self._index().about(first, end, wanted)

    def subjects(self) -> list[Subject]:
        """The subjects of all entries, in order of first appearance."""
        return self._index().subjects()

    def _index(self) -> Index:
        """The index, built by the first lookup: a journal without readers does not pay for it."""
        return self.own(Index, lambda: Index(self))

    def own(self, key: Hashable, make: Callable[[], T]) -> T:
        """What all readers of this journal share, such as the names of members: the first call with a key makes it, and
        it ends with the journal."""
        owned: dict[Hashable, Any] = self.__dict__.setdefault("_owned", {})
        found: T = owned[key] if key in owned else owned.setdefault(key, make())
        return found

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write a file of JSON Lines; `shareq.trace.journal.jsonl` documents the format."""
        jsonl.write(self, path)

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], *, strict: bool = True) -> Journal:
        """Read a file of `to_jsonl`. A bad line raises a JournalFileError that names it; with `strict=False` it is left
        out and its error is in `errors`.
        """
        return cls._from_file(jsonl.read(path, strict=strict))

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file (needs pyarrow); `shareq.trace.journal.parquet` documents the columns."""
        parquet.write(self, path)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> Journal:
        """Read a file of `to_parquet`."""
        return cls._from_file(parquet.read(path))

    @classmethod
    def _from_file(cls, file: JournalFile) -> Journal:
        journal = cls.of(file.entries, file.origin_ms)
        journal.errors = file.errors
        journal.own(Index, lambda: Index(journal, file.orders))
        return journal

    # ---- display -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        kept = f"{len(self):,} events" if self.enabled else "off"
        return f"<Journal {kept}{f', {self.dropped:,} older ones dropped' if self.dropped else ''}>"

    def tables(self) -> Iterator[Table]:
        """The number of events of each type, and the newest events as sentences."""
        counts = Counter(type(entry.event).__name__ for entry in self)
        yield Table(("event", "times"), counts.most_common(), caption=strong(repr(self)[1:-1]), limit=12)
        joined = [entry.event for entry in self.select(MemberJoined) if isinstance(entry.event, MemberJoined)]
        names = {event.member_id: event.client_id for event in joined if event.client_id}
        last = [
            (
                order,
                f"{(time_ms - self.origin_ms) / 1000:,.3f} s",
                event_text(broker_id, event, lambda m: names.get(m, member_name(m))),
            )
            for order, time_ms, broker_id, event in self[-LAST_EVENTS:]
        ]
        if last:
            yield Table(("order", "time", "what happened"), last, caption="The last events")


def journal_of(source: Any) -> Journal:
    """The journal of a source: the source itself, or its `.journal` (of a cluster, a server or an observer)."""
    source = getattr(source, "cluster", source)
    journal = source if isinstance(source, Journal) else getattr(source, "journal", None)
    if not isinstance(journal, Journal):
        raise ConfigException(f"source={source!r}: must be a Journal, or have one as its .journal")
    return journal
