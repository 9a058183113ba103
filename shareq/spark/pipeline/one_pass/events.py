"""The events of a journal that tables need, by type and in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shareq.trace.journal.event_codec import EVENT_TYPES

if TYPE_CHECKING:
    import pyarrow as pa

Event = Any
"""A named tuple: order, time_ms, broker, and the fields of its type."""

USED: Final = (
    "BrokerStopped", "TopicCreated", "ConfigChanged", "RecordsAppended", "SharePartitionLoaded",
    "SharePartitionDropped", "RecordsChanged", "ExpiredRecordsSkipped", "WindowMoved", "StateWritePrepared",
    "StateWriteSettled", "RecordsDelivered", "MemberJoined", "MemberLeft", "MemberReconciled", "HeartbeatReceived",
)  # fmt: skip
"""The types of events from which tables follow."""

_HEAD: Final = ("order", "time_ms", "broker")
_UNUSED: Final = {"assignment", "to_state", "topic_id", "partition_count", "killed"}
_ROWS: Final[dict[str, Any]] = {
    name: NamedTuple(name, [(field, Any) for field in (*_HEAD, *EVENT_TYPES[name]._fields) if field not in _UNUSED])
    for name in USED
}

COLUMNS: Final = ("journal", "type", *dict.fromkeys(field for row in _ROWS.values() for field in row._fields))
"""The columns of the table of events from which tables follow."""


def is_a(event: Event, name: str) -> bool:
    """True for an event of this type."""
    return type(event) is _ROWS[name]


class Events(NamedTuple):
    """The events of a journal: `total` of all types, `first_order` to `last_order`; those of a used type by type."""

    journal: str
    total: int
    first_order: int
    last_order: int
    since_ms: int
    until_ms: int
    by_type: dict[str, list[Event]]

    def of(self, *types: str) -> list[Event]:
        """The events of these types, in order."""
        if len(types) == 1:
            return self.by_type[types[0]]
        return sorted((event for name in types for event in self.by_type[name]), key=itemgetter(0))

    def appended(self) -> dict[tuple[str, int], list[Event]]:
        """The appends by topic and partition, in order."""
        return grouped(self.of("RecordsAppended"), lambda event: (event.topic, event.partition))

    def bin(self, time_ms: int, bins: int) -> int:
        """The index of the time bin, of so many equal ones over the journal, from 0."""
        return (time_ms - self.since_ms) * bins // (self.until_ms - self.since_ms + 1)


def grouped(events: Iterable[Event], key: Callable[[Event], Any]) -> dict[Any, list[Event]]:
    """The events by key, in order; none of another key."""
    found: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        found[key(event)].append(event)
    return found


def journals_in(table: pa.Table) -> Iterator[Events]:
    """The journals of a table of events."""
    import pyarrow.compute as pc

    for journal in pc.unique(table["journal"]).to_pylist():
        mine = table.filter(pc.equal(table["journal"], journal))
        orders, times = (pc.min_max(mine[name]).as_py() for name in ("order", "time_ms"))
        by_type = {
            name: _rows(mine.select(row._fields).filter(pc.equal(mine["type"], name)), row)
            for name, row in _ROWS.items()
        }
        yield Events(journal, len(mine), orders["min"], orders["max"], times["min"], times["max"], by_type)


def _rows(table: pa.Table, row: Any) -> list[Event]:
    rows = list(map(row._make, zip(*(column.to_pylist() for column in table.columns), strict=True)))
    rows.sort(key=itemgetter(0))
    return rows
