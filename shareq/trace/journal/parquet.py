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
    member_epoch, record_count, start_offset, delivery_complete_count, snapshot_epoch, delta_index int64
    counts list of int64; state_batches list of lists of int64; key, kind string
    payload string          all fields of the event as a JSON object

`read` takes an event from the typed columns if they have all its fields, and otherwise from its payload.

Metadata of the schema: `shareq_journal` (version, 2) and `origin_ms`. In version 1, `window_end` has the name `speo`;
it can be read. Needs pyarrow.
"""

from __future__ import annotations

import json
from itertools import repeat
from os import PathLike, fspath
from typing import Any

from shareq.extras import require
from shareq.trace.journal.entry_log import EntryLog
from shareq.trace.journal.event_codec import encode
from shareq.trace.journal.journal_file import VERSION, JournalFile, JournalFileError, without_collection
from shareq.trace.journal.parquet_columns import HEAD, PAYLOAD, STATES, arrow_types
from shareq.trace.journal.parquet_entries import read_entries


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
    typed = arrow_types()
    for name in typed:
        values = map(dict.get, events, repeat(name))
        columns[name] = (
            [None if v is None else STATES.get(v, str(v)) for v in values]
            if name in ("state", "to_state")
            else list(values)
        )
    columns["payload"] = [dumps(event) for event in events]
    others = {name: getattr(pa, kind)() for name, kind in (*HEAD, PAYLOAD)}
    schema = pa.schema(
        [(name, (others | typed)[name]) for name in columns],
        metadata={"shareq_journal": str(VERSION), "origin_ms": str(log.origin_ms)},
    )
    pq.write_table(pa.table(columns, schema=schema), fspath(path), compression="zstd")


def read(path: str | PathLike[str]) -> JournalFile:
    """Read a file; JournalFileError if it is not a journal."""
    require("lab", "pyarrow")
    import pyarrow as pa

    try:
        with without_collection():
            return read_entries(path)
    except (pa.ArrowException, ValueError) as error:
        if isinstance(error, JournalFileError):
            raise
        raise JournalFileError(path, 0, str(error)) from error
