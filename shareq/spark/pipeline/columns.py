"""The description of tables of a trace."""

from __future__ import annotations

from typing import Final, NamedTuple

from shareq.spark.pipeline.figures import BINS


class Column(NamedTuple):
    """A name, its Spark type, and its meaning."""

    name: str
    type: str
    meaning: str


class TableSpec(NamedTuple):
    """`time`: the column whose day (UTC) is `date`; such tables are partitioned by group_id and date."""

    about: str
    sql: str
    columns: tuple[Column, ...]
    time: str = ""

    @property
    def schema(self) -> str:
        """The schema in Spark's notation."""
        return ", ".join(f"`{name}` {kind}" for name, kind, _ in self.dated())

    def dated(self) -> tuple[Column, ...]:
        """All columns, including `date`."""
        return (*self.columns, Column("date", "date", f"day of `{self.time}`, UTC")) if self.time else self.columns


_KINDS = {"i": "bigint", "s": "string", "d": "double", "b": "boolean", "n": "int", "a": "array<string>"}

_KNOWN: Final = {
    "journal": "s; name of the journal: its file, or the key of its records in a topic",
    "group_id": "s; the share group",
    "topic": "s; the topic",
    "partition": "i; the partition",
    "load": "i; order of the SharePartitionLoaded event of the leader; -1: before the journal begins",
    "order": "i; place of the event in the journal",
    "leader": "i; broker that recorded the event",
    "member_id": "s; the member",
    "client_id": "s; the member's client id",
    "first": "i; first offset",
    "end": "i; the offset after the last one",
    "records": "i; number of records",
    "delivery_count": "i; delivery count of the records, including this delivery",
    "time_ms": "i; time of the event",
    "accepted": "i; records that were durably accepted",
    "acquired": "i; acquired records; each acquisition counts",
    "bin": f"n; index of the time bin, of {BINS} equal ones over the journal, from 0",
}
"""The meanings of columns with these names, unless a table overrides them."""


def columns(text: str) -> tuple[Column, ...]:
    """Columns from lines of known names, or of "name kind; meaning"."""
    found = []
    for part in filter(None, map(str.strip, text.splitlines())):
        for name in part.split() if ";" not in part else [part]:
            name, _, rest = (f"{name} {_KNOWN[name]}" if ";" not in name else name).partition(" ")
            kind, _, meaning = rest.partition("; ")
            found.append(Column(name, _KINDS[kind], meaning))
    return tuple(found)
