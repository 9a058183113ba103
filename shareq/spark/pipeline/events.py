"""Journal lines as rows: one column for each field of any event, and the error of an invalid line.

The columns follow from the annotations of the events, so that a new event needs no change here. Validity is that of
`shareq.trace.journal.jsonl`, except that unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from shareq.model.states import RecordState
from shareq.trace.journal.event_codec import EVENT_TYPES
from shareq.trace.journal.journal_file import READABLE, RENAMED
from shareq.trace.journal.parquet_columns import DETAILS, FIELDS, HEAD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BAD = "bad"
BITS = 60
"""The type of rows that are not valid events."""

_SCALARS = {int: "bigint", str: "string", bool: "boolean"}
_STATE_NAMES = " ".join(f"WHEN {int(state)} THEN '{state.name.lower()}'" for state in RecordState)
STATE_COLUMNS = ("state", "to_state")
_WRITES = "('prepared', 'settled', 'abandoned', 'staged', 'txn_commit')"


def _spark_type(annotation: Any) -> str:
    """Spark's type for a field; JSON text if the field is nested deeper than arrays of one type."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (a for a in get_args(annotation) if a is not NoneType)
    if get_origin(annotation) is not tuple:
        return _SCALARS[annotation]
    items = {a for a in get_args(annotation) if a is not Ellipsis}
    if items in ({int}, {str}):
        return f"array<{_SCALARS[items.pop()]}>"
    runs = all(hasattr(a, "_fields") and set(get_type_hints(a).values()) == {int} for a in items)
    return "array<array<bigint>>" if runs else "string"


@cache
def fields() -> dict[str, str]:
    """The Spark type of every field of any event, by name; states are names, not codes."""
    found: dict[str, str] = {}
    for event_type in EVENT_TYPES.values():
        for name, annotation in get_type_hints(event_type).items():
            kind = _spark_type(annotation)
            assert found.setdefault(name, kind) == kind, f"{name} is {kind} and {found[name]}"
    return found


@cache
def json_columns() -> frozenset[str]:
    """The fields whose values are nested too deeply for a type of Spark: they are JSON text."""
    hints = (hint for event_type in EVENT_TYPES.values() for hint in get_type_hints(event_type).items())
    return frozenset(
        name for name, annotation in hints if get_origin(annotation) is tuple and _spark_type(annotation) == "string"
    )


def columns() -> dict[str, str]:
    """All columns of the table of events."""
    head = {"journal": "string", "order": "bigint", "time_ms": "bigint", "broker": "bigint", "type": "string"}
    return head | {name: "string" if name in STATE_COLUMNS else kind for name, kind in fields().items()}


def parquet_schema() -> str:
    """The columns of a journal's Parquet file, in Spark's schema notation."""
    kinds = {"int64": "bigint", "int32": "int", "string": "string"}
    known = {name: kinds[kind] for name, kind in (*HEAD, *FIELDS, ("payload", "string"))}
    known |= {name: fields()[name] for name in DETAILS}
    return ", ".join(f"`{name}` {kind}" for name, kind in known.items()) + f", {_old_names(known)}"


def _schema(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}` {fields()[name]}" for name in names)


def _old_names(kinds: Mapping[str, str]) -> str:
    """The fields that version 1 of the journals has by other names, in Spark's schema notation."""
    return ", ".join(f"`{old}` {kinds[new]}" for old, new in RENAMED.items())


def _renamed(flat: DataFrame) -> DataFrame:
    """Fields of version 1 by their present names."""
    from pyspark.sql import functions as f

    named = {new: f.coalesce(f.col(new), f.col(old)) for old, new in RENAMED.items()}
    return flat.withColumns(named).drop(*RENAMED)


def of_lines(lines: DataFrame) -> DataFrame:
    """(journal, value) -> events; invalid lines have `why_bad` and `line`. Headers and empty lines are dropped."""
    from pyspark.sql import functions as f

    head = (
        "`order` bigint, `time_ms` bigint, `broker` bigint, `type` string, `shareq_journal` bigint, `_corrupt` string"
    )
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    parsed = lines.where("trim(value) <> ''").select(
        "journal",
        f.col("value").alias("line"),
        f.from_json("value", f"{head}, {_schema(fields())}, {_old_names(fields())}", options).alias("e"),
    )
    flat = _renamed(parsed.select("journal", "line", "e.*"))
    strange = f"shareq_journal NOT IN ({', '.join(map(str, READABLE))})"
    allowed = " or ".join(map(str, READABLE))
    strange_version = f.when(
        f.expr(strange), f.format_string(f"journal version %s: must be {allowed}", "shareq_journal")
    )
    return _rows(
        flat.where(f"shareq_journal IS NULL OR {strange}").withColumn("why_bad", strange_version), f.col("line")
    )


def of_table(table: DataFrame) -> DataFrame:
    """The events of a journal's Parquet file. JSON is parsed only where the typed columns are incomplete."""
    from pyspark.sql import functions as f

    table = _renamed(table)
    late = ("why", *DETAILS)
    flat = [name for name, _ in FIELDS if name not in late]
    rest = [name for name in fields() if name not in flat]
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    parsed = f.from_json("payload", f"{_schema(rest)}, `_corrupt` string", options)
    named = [f.col(name).cast(fields()[name]).alias(name) for name in flat if name not in STATE_COLUMNS]
    shown = table.withColumn("e", f.when(f.expr(_incomplete(flat, late)), parsed)).select(
        "journal", "order", "time_ms", f.col("broker").cast("bigint").alias("broker"), "type", "payload",
        *STATE_COLUMNS, *named, *[f.coalesce(f.col(name), f.col(f"e.`{name}`")).alias(name) for name in late],
        *[f.col(f"e.`{name}`") for name in rest if name not in late], "e._corrupt",
    )  # fmt: skip
    return _rows(shown.withColumn("why_bad", f.lit(None).cast("string")), f.to_json(f.struct(*table.columns)))


def _incomplete(flat: Sequence[str], late: Sequence[str]) -> str:
    """An SQL expression: the typed columns lack a field of the event. Those in `late` are missing in older files: there
    a column is null that the event needs."""
    columnless = [name for name, t in EVENT_TYPES.items() if not {*t._fields} <= {*flat, *late}]
    found = [f"type IN ({', '.join(map(repr, columnless))})", f"(cause IN {_WRITES} AND why IS NULL)"]
    for name in EVENT_TYPES:
        needed = [field for field in _needed(name) if field in late] if name not in columnless else []
        if needed:
            found.append(f"(type = '{name}' AND ({' OR '.join(f'`{field}` IS NULL' for field in needed)}))")
    return " OR ".join(found)


def _rows(flat: DataFrame, line: Column) -> DataFrame:
    """The common part: the errors, and the columns in order."""
    from pyspark.sql import functions as f

    whole = flat
    for place, names in enumerate(_words()):
        whole = whole.withColumn(f"lacking{place}", f.expr(_lacking(names)))
    whole = whole.withColumn("why_bad", f.expr(_why_bad()))
    is_bad = f.col("why_bad").isNotNull()
    coded = dict(flat.dtypes)
    states = [
        f.expr(f"CASE {name} {_STATE_NAMES} END AS {name}") if coded[name] == "bigint" else f.col(name)
        for name in STATE_COLUMNS
    ]
    kind = f.when(is_bad, f.lit(BAD)).otherwise(f.col("type")).alias("type")
    others = [name for name in columns() if name not in ("type", *STATE_COLUMNS)]
    return whole.select(*others, kind, *states, "why_bad", f.when(is_bad, line).alias("line"))


def _why_bad() -> str:
    """An SQL expression: the error of a row, or null."""
    heads = "".join(f"WHEN `{name}` IS NULL THEN '{name} must be a whole number' " for name, _ in HEAD[:3])
    lacks = "".join(f"WHEN lacking{place} <> 0 THEN {_first(place, names)} " for place, names in enumerate(_words()))
    return f"""
        CASE WHEN why_bad IS NOT NULL THEN why_bad
             WHEN _corrupt IS NOT NULL THEN 'not a JSON object, or a field has the wrong type'
             {heads}
             WHEN lacking0 IS NULL THEN concat('unknown event type ', coalesce(type, 'null'))
             {lacks} END"""


def _first(place: int, names: Sequence[str]) -> str:
    """An SQL expression: the first missing field of a word of `_words` that is not 0."""
    listed = ", ".join(f"'{name}'" for name in names)
    lowest = f"length(bin(lacking{place} & -lacking{place}))"
    return f"concat(type, ' lacks the field ', element_at(array({listed}), {lowest}))"


def _lacking(names: Sequence[str]) -> str:
    """An SQL expression: the missing fields of an event, of these ones, as bits in their order; null for an unknown
    type.

    A condition for each field of each type would exceed the code size that Java compiles.
    """
    bits = {name: 1 << place for place, name in enumerate(names)}
    absent = " | ".join(f"IF(`{name}` IS NULL, {bit}L, 0L)" for name, bit in bits.items())
    needed = " ".join(
        f"WHEN '{name}' THEN {sum(bits.get(field, 0) for field in _needed(name))}L"
        for name in sorted(EVENT_TYPES, key=_rarity)
    )
    return f"CASE type {needed} END & ({absent})"


def _words() -> list[list[str]]:
    """The required fields, as many at a time as a bigint has bits for."""
    required = _required()
    return [required[place : place + BITS] for place in range(0, len(required), BITS)]


@cache
def _required() -> list[str]:
    """The fields that some type of event cannot lack."""
    needed = {field for name in EVENT_TYPES for field in _needed(name)}
    return [field for field in fields() if field in needed]


def _needed(name: str) -> list[str]:
    """The required fields of an event of this type."""
    event_type = EVENT_TYPES[name]
    return [
        field
        for field, annotation in get_type_hints(event_type).items()
        if field not in event_type._field_defaults and NoneType not in get_args(annotation)
    ]


def _rarity(name: str) -> bool:
    """False for frequent events: the branches of a CASE are tried in order."""
    return name not in ("RecordsChanged", "WindowMoved", "StateWritePrepared", "StateWriteSettled", "RecordsDelivered")
