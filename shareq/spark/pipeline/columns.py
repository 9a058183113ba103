"""How the tables of a trace are described."""

from __future__ import annotations

from typing import Final, NamedTuple

from shareq.spark.pipeline.figures import BINS


class Column(NamedTuple):
    """A name, Spark's type, and what it says."""

    name: str
    type: str
    says: str


class Table(NamedTuple):
    """`time`: the column whose day (UTC) is `date`; such tables are partitioned by group_id and date."""

    says: str
    sql: str
    columns: tuple[Column, ...]
    time: str = ""

    @property
    def schema(self) -> str:
        """As Spark writes a schema."""
        return ", ".join(f"`{name}` {kind}" for name, kind, _ in self.dated())

    def dated(self) -> tuple[Column, ...]:
        """All columns, that of the date too."""
        return (*self.columns, Column("date", "date", f"day of `{self.time}`, UTC")) if self.time else self.columns


_KINDS = {"i": "bigint", "s": "string", "d": "double", "b": "boolean", "n": "int", "a": "array<string>"}

_KNOWN: Final = {
    "journal": "s; name of the journal: its file, or the key of its records in a topic",
    "group_id": "s; the share group",
    "topic": "s; the topic",
    "partition": "i; the partition",
    "load": "i; order of the SharePartitionLoaded by which its leader began; -1: before the journal begins",
    "order": "i; place of the event in the journal",
    "leader": "i; broker that tells",
    "member_id": "s; the member",
    "client_id": "s; what its client calls itself",
    "first": "i; first offset",
    "end": "i; the offset after the last one",
    "records": "i; how many",
    "delivery_count": "i; how often the records have been acquired, this time included",
    "time_ms": "i; when",
    "accepted": "i; records that were accepted durably",
    "acquired": "i; records that were acquired, each time counted",
    "bin": f"n; which of the {BINS} equal parts of the journal's time, from 0",
}
"""What columns of these names say everywhere, unless a table says something else."""


def columns(text: str) -> tuple[Column, ...]:
    """Lines of names that are known ones, or "name kind; what it says"."""
    found = []
    for part in filter(None, map(str.strip, text.splitlines())):
        for name in part.split() if ";" not in part else [part]:
            name, _, said = (f"{name} {_KNOWN[name]}" if ";" not in name else name).partition(" ")
            kind, _, says = said.partition("; ")
            found.append(Column(name, _KINDS[kind], says))
    return tuple(found)
