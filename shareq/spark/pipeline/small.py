"""The events of a small trace, read by this process: while Spark starts, and without a plan of Spark's.

A trace is read here only if each of its lines is a valid event or a header; Spark reads any other one (`events_of`). So
Spark alone decides what is wrong with a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline.events import STATE_COLUMNS, columns, json_columns
from shareq.trace.journal import journal_of
from shareq.trace.journal.event_codec import decode, encode, parse
from shareq.trace.journal.journal_file import READABLE, current
from shareq.trace.journal.parquet_columns import HEAD, PAYLOAD, STATES

if TYPE_CHECKING:
    import pyarrow as pa

_FOLDERS = (".json", ".jsonl", ".parquet")
"""A folder with such a name is one journal in parts."""

_TYPES = {"bigint": "int64", "string": "string", "boolean": "bool_"}


class _LeftToSparkError(ValueError):
    """Only Spark reads this trace."""


def read_here(trace: Any) -> pa.Table | None:
    """The events of a trace in files or in memory, as `events_of` has them; None if only Spark reads it."""
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(list(_rows(trace)), _schema())
    except (pa.ArrowException, ArithmeticError, LookupError, OSError, TypeError, ValueError):
        return None


def _rows(trace: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(trace, (str, PathLike)):
        for entry in journal_of(trace).entries():
            head = {"order": entry.order, "time_ms": entry.time_ms, "broker": entry.broker_id}
            yield _row("journal", head | {"type": type(entry.event).__name__}, encode(entry.event))
        return
    for file in _files(str(trace)):
        name = file.parent.name if file.parent.suffix in _FOLDERS else file.name
        for fields in _of_parquet(file) if file.suffix == ".parquet" else _of_lines(file):
            head = {key: fields.pop(key) for key, _ in HEAD}
            if not all(type(head[key]) is int for key in ("order", "time_ms", "broker")):
                raise _LeftToSparkError(file)
            fields = current(fields)
            decode(head["type"], fields)
            yield _row(name, head, fields)


def _files(trace: str) -> Iterable[Path]:
    """The files of a trace. Those that Spark reads in another way, such as compressed ones, do not fit."""
    path = Path(trace).absolute()
    if "://" in trace or set("*?[{") & set(trace) or path.name[0] in "._":
        raise _LeftToSparkError(trace)
    if path.is_file():
        return [path]
    found = [file for file in sorted(path.iterdir()) if file.name[0] not in "._"]
    if path.suffix in _FOLDERS or not all(file.is_file() for file in found):
        raise _LeftToSparkError(trace)
    journals = [file for file in found if file.suffix == ".parquet" or ".json" in file.name]
    if not journals or any(file.suffix not in _FOLDERS or file.stem.endswith(".json") for file in journals):
        raise _LeftToSparkError(trace)
    return journals


def _of_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open("rb") as lines:
        for line in lines:
            if text := line.decode().strip(" \r\n"):
                fields = parse(text)
                if not isinstance(fields, dict):
                    raise _LeftToSparkError(file)
                if (version := fields.get("shareq_journal")) is None:
                    yield fields
                elif version not in READABLE:
                    raise _LeftToSparkError(file)


def _of_parquet(file: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    (payload, _), heads = PAYLOAD, [name for name, _ in HEAD]
    for row in parquet.read_table(file, columns=[*heads, payload]).to_pylist():
        yield parse(row.pop(payload)) | row


def _row(journal: str, head: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    row = {"journal": journal, **head, **fields}
    for name in STATE_COLUMNS:
        if row.get(name) is not None:
            if row[name] not in STATES:  # Spark's names for it differ by the format of the file
                raise _LeftToSparkError(journal)
            row[name] = STATES[row[name]]
    for name in json_columns():
        if row.get(name) is not None:
            row[name] = _dumps(row[name])
    return row


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _schema() -> pa.Schema:
    import pyarrow as pa

    def arrow(kind: str) -> pa.DataType:
        if kind.startswith("array<"):
            return pa.list_(arrow(kind.removeprefix("array<").removesuffix(">")))
        return getattr(pa, _TYPES[kind])()

    return pa.schema([(name, arrow(kind)) for name, kind in columns().items()])
