"""Hypothesis strategies for every message in every version, and the equal entities of kio.

`twin` maps field by field and name by name: it is the naive oracle for the compiled codec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from shareq.log.batches import parse_batch
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId, topic_id_from_bytes, topic_id_to_bytes
from shareq.model.records import RecordBatch

BATCHES = tuple(
    parse_batch(encode_batch([(None, b"x" * size, (), 1_700_000_000_000)] * count))
    for size, count in ((0, 1), (7, 2), (100, 3))
)
OTHER_NAMES = {
    "topic_data": "topics",
    "partition_data": "partitions",
    "partition_responses": "partitions",
}
EPOCH = datetime.fromtimestamp(0, UTC)
LAST_DATETIME_MS = 253_402_300_799_999

_PLAIN: Mapping[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(1 << 7), (1 << 7) - 1),
    "int16": st.integers(-(1 << 15), (1 << 15) - 1),
    "uint16": st.integers(0, (1 << 16) - 1),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "float64": st.floats(allow_nan=False),
    "timedelta_i32": st.integers(-(1 << 31), (1 << 31) - 1),
    "timedelta_i64": st.integers(0, 1 << 45),
    "datetime_i64": st.just(-1) | st.integers(0, LAST_DATETIME_MS),
    "error_code": st.integers(-1, 100),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.just("x" * 200),
    "bytes": st.binary(max_size=300),
    "records": st.binary(max_size=300),
    "uuid": st.just(ZERO_TOPIC_ID) | st.binary(min_size=16, max_size=16).map(topic_id_from_bytes),
}


@cache
def messages(ours: Any, entity: Any) -> st.SearchStrategy[Any]:
    """Instances of shareq's class that can be encoded as `entity`; fields that the entity lacks keep their defaults."""
    hints = hints_of(ours, entity)
    found = {name: _values(hints[name], field) for field in fields(entity) if (name := our_name(field, hints))}
    if get_origin(ours) is tuple:
        return st.tuples(*found.values())
    lacking = hints.keys() - found.keys()
    found |= {name: st.just(zero(hints[name])) for name in lacking if has_no_default(ours, name)}
    build: Callable[..., Any] = ours
    return st.builds(build, **found)


def twin(message: Any, entity: Any, ours: Any = None) -> Any:
    """The same message as an entity of kio."""
    cls: Any = ours or type(message)
    hints = hints_of(cls, entity)
    made = {}
    for i, field in enumerate(fields(entity)):
        name = our_name(field, hints)
        if name is None:
            made[field.name] = left_out(field)
        else:
            value = message[i] if get_origin(ours) is tuple else getattr(message, name)
            made[field.name] = _theirs(value, field, hints[name])
    return entity(**made)


@cache
def hints_of(ours: Any, entity: Any) -> dict[str, Any]:
    """Types of the fields of a class; a plain tuple stands for a struct by position."""
    if get_origin(ours) is tuple:
        return {field.name: hint for field, hint in zip(fields(entity), get_args(ours), strict=True)}
    hints = get_type_hints(ours, localns=dict(vars(ours)))
    names = [field.name for field in fields(ours)] if is_dataclass(ours) else ours._fields
    return {name: hints[name] for name in names}


def our_name(field: Field[Any], hints: Mapping[str, Any]) -> str | None:
    """shareq's name of a field of kio; None if shareq has no such field."""
    names = (field.name, f"{field.name}_ms", OTHER_NAMES.get(field.name, ""))
    return next((name for name in names if name in hints), None)


def left_out(field: Field[Any]) -> Any:
    """Value that is written for a field that shareq does not have."""
    if field.default is not MISSING:
        return field.default
    if NoneType in get_args(field.type):
        return None
    if get_origin(field.type) is tuple:
        return ()
    kind = field.metadata["kafka_type"]
    if kind == "error_code":
        return ErrorCode.none
    if kind.startswith("timedelta"):
        return timedelta(0)
    return -1 if field.name == "replica_id" else "" if kind == "string" else 0


def inner(hint: Any) -> tuple[Any, bool]:
    """`tuple[X, ...] | None` gives (X, True): the element type, and True if None is allowed."""
    options = get_args(hint) if NoneType in get_args(hint) else (hint,)
    (value,) = (option for option in options if option is not NoneType)
    arguments = get_args(value)
    return (arguments[0] if arguments[1:] == (...,) else value), NoneType in options


def zero(hint: Any) -> Any:
    """Value of a field without default in a version that lacks the field."""
    value, takes_none = inner(hint)
    return None if takes_none else ZERO_TOPIC_ID if value is TopicId else value()


def has_no_default(ours: Any, name: str) -> bool:
    return next(field.default is MISSING for field in fields(ours) if field.name == name)


def element_of(field: Field[Any]) -> tuple[Any, bool, bool]:
    """kio's type of the field or of its elements; True if it is an array; True if it can be null."""
    options = get_args(field.type) if NoneType in get_args(field.type) else (field.type,)
    (value,) = (option for option in options if option is not NoneType)
    is_array = get_origin(value) is tuple
    return (get_args(value)[0] if is_array else value), is_array, NoneType in options


def _values(hint: Any, field: Field[Any]) -> st.SearchStrategy[Any]:
    ours, takes_none = inner(hint)
    theirs, is_array, nullable = element_of(field)
    kind = field.metadata.get("kafka_type", "struct")
    values: st.SearchStrategy[Any]
    if ours is RecordBatch:
        return st.lists(st.sampled_from(BATCHES), max_size=3).map(tuple)
    if kind == "struct":
        values = messages(ours, theirs)
    elif ours is Errors:
        values = st.sampled_from([error for error in Errors if error >= Errors.UNKNOWN_SERVER_ERROR])  # of the wire
    else:
        values = _PLAIN[kind]
    if is_array:
        values = st.lists(values, max_size=3).map(tuple)
    absent_is_none = takes_none and "tag" in field.metadata
    return st.none() | values if takes_none and (nullable or absent_is_none) else values


def _theirs(value: Any, field: Field[Any], hint: Any) -> Any:
    theirs, is_array, nullable = element_of(field)
    kind = field.metadata.get("kafka_type", "struct")
    ours, _ = inner(hint)
    if value is None:
        return field.default if "tag" in field.metadata else None
    if ours is RecordBatch:
        return b"".join(batch.data for batch in value)
    if is_array:
        return tuple(_one(element, theirs, ours, kind) for element in value)
    if kind == "datetime_i64":
        return None if nullable and value == -1 else EPOCH + timedelta(milliseconds=value)
    return _one(value, theirs, ours, kind)


def _one(value: Any, theirs: Any, ours: Any, kind: str) -> Any:
    if kind == "struct":
        return twin(value, theirs, ours)
    if kind == "uuid":
        return None if value == ZERO_TOPIC_ID else UUID(bytes=topic_id_to_bytes(value))
    if kind == "error_code":
        return ErrorCode(value)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    return value
