"""The entries of a journal in a Parquet file, read type by type: no Python code runs for a single row.

Events of a type whose fields all have columns of their own are made from these columns. Those of another type are made
from the payloads, which Arrow parses. Only rows that do not fit, and types with fields of mixed tuples, are decoded one
by one: then an error names the entry and what is wrong with it.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import repeat
from math import prod
from operator import itemgetter, lt
from os import PathLike, fspath
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from shareq.trace.journal.arrow_values import arrow_type, coded, python_values, to_arrow, to_arrow_text, to_numpy
from shareq.trace.journal.entry_log import Entry
from shareq.trace.journal.event_codec import EVENT_TYPES, BadEvent, decode
from shareq.trace.journal.journal_file import READABLE, RENAMED, VERSION, JournalFile, JournalFileError, current
from shareq.trace.journal.parquet_columns import HEAD, PAYLOAD, STATES, arrow_types
from shareq.trace.journal.subject import KEY_FIELDS, KEYS, has_plain_key, no_orders

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_AT_ONCE = 100_000
"""Number of payloads that are parsed before their events are made."""
BLOCK_SIZE = 1 << 26
"""Bytes that Arrow's JSON reader parses at once; a longer payload is parsed by itself."""

_CODES = {name: code for code, name in STATES.items()}
_OLD_NAMES = {name: old for old, name in RENAMED.items()}
_new = tuple.__new__


def read_entries(path: str | PathLike[str]) -> JournalFile:
    """The origin, the entries by order, and their index. JournalFileError if the file is not a journal; BadEvent names
    the order of an entry that is malformed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(fspath(path))
    names = [field.name for field in schema if field.name != PAYLOAD[0] and pa.types.is_string(field.type)]
    with pq.ParquetFile(fspath(path), read_dictionary=names) as file:
        metadata = schema.metadata or {}
        version = metadata.get(b"shareq_journal", b"").decode(errors="replace")
        if version not in map(str, READABLE):
            raise JournalFileError(path, 0, f"not a journal of version {' or '.join(map(str, READABLE))}")
        rows = _Rows(file, is_current=version == str(VERSION))
        entries = rows.entries()
    is_sorted = all(map(lt, rows.orders, rows.orders[1:]))
    if not is_sorted:
        entries.sort(key=itemgetter(0))
    return JournalFile(int(metadata[b"origin_ms"]), entries, orders=rows.index if is_sorted else None)


class _Rows:
    """The rows of a file, and the events that they have. A column is read when an event needs it.

    `orders`: those of the rows; `index`: the index of the entries, when they have been read.
    """

    def __init__(self, file: Any, *, is_current: bool) -> None:
        import numpy as np

        self._file = file
        self._is_current = is_current
        self._schema, self._kinds = file.schema_arrow, arrow_types()
        self.orders, self._times_ms, self._brokers = (self._whole_numbers(*column) for column in HEAD[:3])
        self._columns: dict[str, Any] = {}
        self._payloads: tuple[NDArray[Any], Any] | None = None
        """The places of rows, and their payloads."""
        self.index = no_orders()
        self._order_objects = np.array(self.orders, object)
        self._from_columns: set[str] = set()
        """The types whose events are made from typed columns."""

    def entries(self) -> list[Entry]:
        """The entries of all rows, in the order of the file."""
        import numpy as np

        types = _one_chunk(self._texts(*HEAD[3]).dictionary_encode())
        codes, events = to_numpy(types.indices), np.empty(len(types), object)
        names = types.dictionary.to_pylist()
        untyped = [code for code, name in enumerate(names) if not self._is_typed(name)]
        self._read_payloads(np.flatnonzero(np.isin(codes, untyped)))
        for code, name in enumerate(names):
            places = np.flatnonzero(codes == code)
            if not len(places):
                continue
            found = self._events(name, places)
            events[places] = np.fromiter(found, object, len(places))
            self._add_to_index(EVENT_TYPES[name], places, found)
        rows = zip(self.orders, self._times_ms, self._brokers, events.tolist(), strict=True)
        return list(map(_new, repeat(Entry), rows))

    def _events(self, type_name: str, places: NDArray[Any]) -> list[Any]:
        """The events of the rows with this type."""
        if self._is_typed(type_name):
            fields = {name: self._column(name, places) for name in _hints(type_name)}
            events = _made(type_name, fields)
            if events is not None:
                self._from_columns.add(type_name)
                return events
        found: list[Any] = []
        for begin in range(0, len(places), ROWS_AT_ONCE):
            found += self._of_payloads(type_name, places[begin : begin + ROWS_AT_ONCE])
        return found

    def _add_to_index(self, event_type: Any, places: NDArray[Any], events: list[Any]) -> None:
        """Add the orders of rows with events of this type to the index, by subject."""
        import numpy as np

        by_key, name = self.index[event_type], event_type.__name__
        if name not in self._from_columns or not has_plain_key(event_type) or None in map(self._stored, KEY_FIELDS):
            for place, key in zip(places.tolist(), map(KEYS[event_type], events), strict=True):
                by_key[key].append(self.orders[place])
            return
        codes, values = zip(*(coded(self._column(field, places)) for field in KEY_FIELDS), strict=True)
        shape = tuple(map(len, values))
        numbers = np.ravel_multi_index(codes, shape).astype(np.min_scalar_type(prod(shape)))  # small ones sort fast
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        for part in np.split(order, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1):
            key, orders = KEYS[event_type](events[part[0]]), self._order_objects[places[part]].tolist()
            by_key[key] = sorted([*by_key[key], *orders])  # a file may have two codes for one value

    # ---- typed columns -----------------------------------------------------------------------------------------------

    def _is_typed(self, type_name: str) -> bool:
        """True if all fields of this type have typed columns."""
        hints = _hints(type_name)
        return bool(hints) and all(self._stored(name) is not None for name in hints)

    def _stored(self, name: str) -> str | None:
        """The name of the typed column of a field; None if the file has none, or one of another type."""
        import pyarrow as pa

        stored = name if self._is_current else _OLD_NAMES.get(name, name)
        if name not in self._kinds or stored not in self._schema.names:
            return None
        kind = self._schema.field(stored).type
        return stored if (kind.value_type if pa.types.is_dictionary(kind) else kind) == self._kinds[name] else None

    def _column(self, name: str, places: NDArray[Any]) -> Any:
        """The values of some rows in the typed column of a field, as an Arrow array."""
        if name not in self._columns:
            self._columns[name] = _one_chunk(self._read(str(self._stored(name))))
        found = self._columns[name].take(to_arrow(places))
        return _codes(found) if name in ("state", "to_state") else found

    # ---- payloads ----------------------------------------------------------------------------------------------------

    def _read_payloads(self, places: NDArray[Any]) -> None:
        """Read the payloads of some rows. All of them take most of the file's memory, and few are needed."""
        import numpy as np
        import pyarrow as pa

        if not len(places):
            return
        self._check_texts(*PAYLOAD)
        found, begin = [], 0
        for batch in self._file.iter_batches(ROWS_AT_ONCE, columns=[PAYLOAD[0]], use_threads=False):
            end = begin + len(batch)
            first, last = np.searchsorted(places, (begin, end))
            found.append(batch.column(0).take(to_arrow(places[first:last] - begin)))
            begin = end
        texts = pa.chunked_array(found)
        if texts.null_count:
            raise BadEvent(f"{PAYLOAD[0]} must not be null")
        self._payloads = places, texts

    def _of_payloads(self, type_name: str, places: NDArray[Any]) -> list[Any]:
        """The events of some rows with this type, from their payloads."""
        import numpy as np

        if self._payloads is None or not np.isin(places, self._payloads[0]).all():
            self._read_payloads(np.arange(len(self.orders)))
        assert self._payloads is not None
        known, payloads = self._payloads
        texts = payloads.take(to_arrow(np.searchsorted(known, places))).combine_chunks()
        events = self._parsed(type_name, texts)
        if events is not None:
            return events
        return [
            self._of_payload(type_name, text, self.orders[place])
            for place, text in zip(places.tolist(), texts.to_pylist(), strict=True)
        ]

    def _parsed(self, type_name: str, texts: Any) -> list[Any] | None:
        """The events of payloads that all have the same fields; None if one does not fit."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import json as pa_json

        hints = _hints(type_name)
        types = {name: arrow_type(annotation) for name, annotation in hints.items()}
        if not types or None in types.values() or pc.any(pc.match_substring(texts, "\n")).as_py():
            return None
        stored = {name: name if self._is_current else _OLD_NAMES.get(name, name) for name in types}
        whole = pa.ListArray.from_arrays(to_arrow(np.array([0, len(texts)], np.int32)), texts)
        lines = pc.binary_join(whole, to_arrow_text("\n"))
        try:
            table = pa_json.read_json(
                pa.BufferReader(lines[0].as_buffer()),
                read_options=pa_json.ReadOptions(use_threads=False, block_size=BLOCK_SIZE),
                parse_options=pa_json.ParseOptions(
                    explicit_schema=pa.schema([(stored[name], kind) for name, kind in types.items()]),
                    unexpected_field_behavior="error",
                ),
            )
        except pa.ArrowException:
            return None
        if len(table) != len(texts):
            return None
        return _made(type_name, {name: table.column(stored[name]).combine_chunks() for name in types})

    def _of_payload(self, type_name: str, text: str, order: int) -> Any:
        """The event of one row; BadEvent names its order if it is malformed."""
        try:
            fields = json.loads(text)
            if not isinstance(fields, dict):
                raise BadEvent("the payload must be a JSON object")
            return decode(type_name, fields if self._is_current else current(fields))
        except ValueError as error:
            raise BadEvent(f"entry {order}: {error}") from error

    # ---- columns that must have a value in each row ------------------------------------------------------------------

    def _whole_numbers(self, name: str, kind: str) -> list[int]:
        """The values of a column of numbers; BadEvent if one is missing or of another type."""
        column = self._without_nulls(name)
        if str(column.type) not in (kind, "int64"):
            raise BadEvent(f"{name} must be {kind}, not {column.type}")
        values: list[int] = to_numpy(_one_chunk(column)).tolist()
        return values

    def _texts(self, name: str, kind: str) -> Any:
        """A column of texts; BadEvent if one is missing or of another type."""
        self._check_texts(name, kind)
        return self._without_nulls(name)

    def _check_texts(self, name: str, kind: str) -> None:
        """BadEvent if the file has no column of texts with this name."""
        self._check_name(name)
        of_column = self._schema.field(name).type
        stored = getattr(of_column, "value_type", of_column)
        if str(stored) not in (kind, f"large_{kind}"):
            raise BadEvent(f"{name} must be {kind}, not {stored}")

    def _check_name(self, name: str) -> None:
        if name not in self._schema.names:
            raise BadEvent(f"the column {name} is missing")

    def _without_nulls(self, name: str) -> Any:
        self._check_name(name)
        column = self._read(name)
        if column.null_count:
            raise BadEvent(f"{name} must not be null")
        return column

    def _read(self, name: str) -> Any:
        return self._file.read(columns=[name]).column(name)


def _hints(type_name: str) -> dict[str, Any]:
    """The fields of an event type, and their annotations; none for an unknown type."""
    return get_type_hints(EVENT_TYPES[type_name]) if type_name in EVENT_TYPES else {}


def _one_chunk(column: Any) -> Any:
    """A column as one array, with one dictionary if it has several."""
    return (column.unify_dictionaries() if column.num_chunks > 1 else column).combine_chunks()


def _made(type_name: str, arrays: dict[str, Any]) -> list[Any] | None:
    """The events of a type, from the values of each field; None if a value is missing or does not fit."""
    event_type: Any = EVENT_TYPES[type_name]
    columns = []
    for name, annotation in get_type_hints(event_type).items():
        kinds = get_args(annotation)
        optional = NoneType in kinds
        values = python_values(arrays[name], kinds[0] if optional else annotation, optional=optional)
        if values is None:
            return None
        columns.append(values)
    return list(map(partial(_new, event_type), zip(*columns, strict=True)))


def _codes(states: Any) -> Any:
    """The numbers of states, by their texts; null where a text is neither a name nor a number."""
    import numpy as np

    codes = [_code(text) for text in states.dictionary.to_pylist()]
    numbers = to_arrow(
        np.array([code or 0 for code in codes], np.int64), np.array([code is not None for code in codes], bool)
    )
    return numbers.take(states.indices)


def _code(text: str) -> int | None:
    found = _CODES.get(text)
    return int(text) if found is None and text.lstrip("-").isdecimal() else found
