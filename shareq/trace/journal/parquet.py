"""The journal as a Parquet file: typed columns for filters and groupings, and the whole event as JSON beside them.

Columns (null where an event has no such field):

    order int64             place in the journal, counting up by one
    time_ms int64           since the epoch
    broker int32            -1: a client, or the cluster as a whole
    type string             name of the event in shareq.model.events
    group_id, topic string; partition int32
    first, end int64        half-open range of offsets
    spso, window_end int64  the window, half-open
    cause, state, to_state string (available, acquired, ...); delivery_count int32; deadline_ms int64
    member_id, client_id string
    write_id int64; error int32; why string
    payload string          all fields of the event as a JSON object; `read` uses only this column of them

Metadata of the schema: `shareq_journal` (version, 2) and `origin_ms`. In version 1, `window_end` has the name `speo`;
it can be read. Needs pyarrow.
"""

from __future__ import annotations

import json
from itertools import repeat
from os import PathLike, fspath
from typing import Any

from shareq.extras import require
from shareq.model.states import RecordState
from shareq.trace.journal.entry_log import Entry, EntryLog
from shareq.trace.journal.event_codec import BadEvent, decode, encode, parse
from shareq.trace.journal.journal_file import (
    READABLE,
    VERSION,
    JournalFile,
    JournalFileError,
    current,
    without_collection,
)

HEAD = (("order", "int64"), ("time_ms", "int64"), ("broker", "int32"), ("type", "string"))
FIELDS = (
    ("group_id", "string"),
    ("topic", "string"),
    ("partition", "int32"),
    ("first", "int64"),
    ("end", "int64"),
    ("spso", "int64"),
    ("window_end", "int64"),
    ("cause", "string"),
    ("state", "string"),
    ("to_state", "string"),
    ("delivery_count", "int32"),
    ("deadline_ms", "int64"),
    ("member_id", "string"),
    ("client_id", "string"),
    ("write_id", "int64"),
    ("error", "int32"),
    ("why", "string"),
)
PAYLOAD = ("payload", "string")
_STATES = {int(state): state.name.lower() for state in RecordState}


def write(log: EntryLog, path: str | PathLike[str]) -> None:
    """Write the kept entries."""
    require("lab", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    entries = log.entries()[:]
    dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    events = [encode(entry.event) for entry in entries]
    columns: dict[str, Any] = {
        "order": [entry.order for entry in entries],
        "time_ms": [entry.time_ms for entry in entries],
        "broker": [entry.broker_id for entry in entries],
        "type": [type(entry.event).__name__ for entry in entries],
    }
    for name, _ in FIELDS:
        values = map(dict.get, events, repeat(name))
        columns[name] = (
            [None if v is None else _STATES.get(v, str(v)) for v in values]
            if name in ("state", "to_state")
            else list(values)
        )
    columns["payload"] = [dumps(event) for event in events]
    schema = pa.schema(
        [(name, getattr(pa, kind)()) for name, kind in (*HEAD, *FIELDS, PAYLOAD)],
        metadata={"shareq_journal": str(VERSION), "origin_ms": str(log.origin_ms)},
    )
    pq.write_table(pa.table(columns, schema=schema), fspath(path), compression="zstd")


def read(path: str | PathLike[str]) -> JournalFile:
    """Read a file; JournalFileError if it is not a journal."""
    require("lab", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(fspath(path), columns=[name for name, _ in (*HEAD, PAYLOAD)])
        metadata = table.schema.metadata or {}
        version = metadata.get(b"shareq_journal", b"").decode(errors="replace")
        if version not in map(str, READABLE):
            raise JournalFileError(path, 0, f"not a journal of version {' or '.join(map(str, READABLE))}")
        with without_collection():
            entries = _entries(table, version == str(VERSION))
    except (pa.ArrowException, ValueError) as error:
        if isinstance(error, JournalFileError):
            raise
        raise JournalFileError(path, 0, str(error)) from error
    return JournalFile(int(metadata[b"origin_ms"]), sorted(entries))


def _entries(table: Any, is_current: bool) -> list[Entry]:
    """The entries of all rows; BadEvent names the order of one that is malformed."""
    columns = [_values(table.column(name), kind, name) for name, kind in (*HEAD, PAYLOAD)]
    entries: list[Entry] = []
    for order, time_ms, broker_id, type_name, payload in zip(*columns, strict=True):
        try:
            fields = parse(payload)
            if not isinstance(fields, dict):
                raise BadEvent("the payload must be a JSON object")
            event = decode(type_name, fields if is_current else current(fields))
        except ValueError as error:
            raise BadEvent(f"entry {order}: {error}") from error
        entries.append(_new(Entry, (order, time_ms, broker_id, event)))
    return entries


_new = tuple.__new__


def _values(column: Any, kind: str, name: str) -> list[Any]:
    """The values of a column as Python objects; BadEvent if one is missing, or of another type."""
    import pyarrow as pa

    if column.null_count:
        raise BadEvent(f"{name} must not be null")
    if str(column.type) not in (kind, "int64", f"large_{kind}") or (kind == "string") == pa.types.is_integer(
        column.type
    ):
        raise BadEvent(f"{name} must be {kind}, not {column.type}")
    if kind == "string":
        return list(column.to_numpy())
    return list(column.to_numpy().tolist())
