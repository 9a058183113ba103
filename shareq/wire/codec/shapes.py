"""The shape of a struct in one version: kio's schema paired with the message class.

kio's schema is Kafka's own, with one dataclass per struct and version. Fields are paired by name; times have `_ms` in
the message class. A field that the class lacks is written with its default and skipped when read; a field that the
version lacks keeps its default when read, and is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from datetime import timedelta
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.records import RecordBatch
from shareq.wire.codec.variants import ALIASES, CONSTANTS, MUST_TRAVEL

LETTERS = MappingProxyType(
    {
        "bool": "?",
        "int8": "b",
        "int16": "h",
        "uint16": "H",
        "int32": "i",
        "int64": "q",
        "float64": "d",
        "uuid": "16s",
        "error_code": "h",
        "timedelta_i32": "i",
        "timedelta_i64": "q",
        "datetime_i64": "q",
    }
)
"""Kafka's types of fixed size -> the letters of `struct`."""


class ModelType(NamedTuple):
    """The type of a field, or of its elements, in the message class; `takes_none`: the field may be None."""

    inner: Any = None
    takes_none: bool = False

    @property
    def zero(self) -> object:
        """The value of a field without a default that a version lacks."""
        if self.takes_none:
            return None
        if self.inner is TopicId:
            return ZERO_TOPIC_ID
        return self.inner() if self.inner in (str, int, bool, bytes) else ()


class SchemaType(NamedTuple):
    """The type of a field, or of its elements, in kio's schema; `nullable`: the field may be null."""

    inner: Any
    nullable: bool
    is_array: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WireField:
    """A field of a struct. `attribute`: the field of the message class, None if it has none; `shape`: for a struct.

    `default`: the value of an absent tag, and of a field that the message class lacks.
    """

    name: str
    attribute: str | None
    kind: str
    shape: Shape | None
    is_array: bool
    nullable: bool
    ours: ModelType
    tag: int | None
    default: Any

    @property
    def letter(self) -> str:
        """The letter of `struct` if the value has a fixed size, else empty."""
        return "" if self.is_array else LETTERS.get(self.kind, "")

    @property
    def is_batches(self) -> bool:
        return self.ours.inner is RecordBatch

    @property
    def is_numbers(self) -> bool:
        """True for an array that is packed and unpacked at once."""
        return self.is_array and self.kind != "uuid" and self.kind in LETTERS

    @property
    def element(self) -> WireField:
        """An element of the array, as a field."""
        return replace(self, is_array=False, nullable=False, ours=ModelType(self.ours.inner))

    @property
    def is_error(self) -> bool:
        return self.ours.inner is Errors

    @property
    def on_null(self) -> object:
        """The value for null: None, or empty if the message class does not allow None; MISSING if null is illegal."""
        if self.is_batches:
            return ()
        if not self.nullable:
            return MISSING
        if self.ours.takes_none or self.attribute is None:
            return None
        return () if self.is_array else "" if self.kind == "string" else b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A struct in one version. `cls`: the message class, None if there is none, `tuple` for a plain tuple.

    `absent`: fields without a default that this version lacks, with their values when read.
    `must_travel`: fields that this version lacks, with the only value that a message in this version may have.
    """

    name: str
    cls: Any
    flexible: bool
    ordinary: tuple[WireField, ...]
    tagged: tuple[WireField, ...]
    absent: Mapping[str, object]
    must_travel: Mapping[str, object]


def shape_of(ours: Any, entity: Any) -> Shape:
    """Pair a message class, or a plain `tuple[...]` by position, with a dataclass of kio; None: no message class."""
    attributes = _attributes(ours, entity)
    defaults = {field.name: field.default for field in fields(ours)} if is_dataclass(ours) else {}
    found = [_wire_field(theirs, attributes, defaults) for theirs in fields(entity)]
    lacking = sorted(attributes.keys() - {field.attribute for field in found})
    return Shape(
        name=entity.__name__,
        cls=tuple if get_origin(ours) is tuple else ours,
        flexible=entity.__flexible__,
        ordinary=tuple(field for field in found if field.tag is None),
        tagged=tuple(sorted((field for field in found if field.tag is not None), key=lambda field: field.tag or 0)),
        absent={name: attributes[name].zero for name in lacking if defaults[name] is MISSING},
        must_travel={name: defaults[name] for name in lacking if (ours, name) in MUST_TRAVEL},
    )


def _attributes(ours: Any, entity: Any) -> dict[str, ModelType]:
    """The fields of a message class, by name."""
    if ours is None:
        return {}
    if get_origin(ours) is tuple:
        return {theirs.name: _ours(hint) for theirs, hint in zip(fields(entity), get_args(ours), strict=True)}
    hints = get_type_hints(ours, localns=dict(vars(ours)))  # nested structs are named as the class body sees them
    names = [f.name for f in fields(ours)] if is_dataclass(ours) else ours._fields
    return {name: _ours(hints[name]) for name in names}


def _ours(hint: Any) -> ModelType:
    """`tuple[X, ...] | None` is an X that may be None, and so is `X | None`."""
    options = get_args(hint) if NoneType in get_args(hint) else (hint,)
    inner = next(option for option in options if option is not NoneType)
    arguments = get_args(inner)
    return ModelType(arguments[0] if arguments[1:] == (...,) else inner, NoneType in options)


def _theirs(hint: Any) -> SchemaType:
    """kio writes an array as `tuple[X, ...]`, and null as `| None`; a null uuid is the zero uuid."""
    nullable = NoneType in get_args(hint)
    inner = next(option for option in get_args(hint) if option is not NoneType) if nullable else hint
    is_array = get_origin(inner) is tuple
    return SchemaType(get_args(inner)[0] if is_array else inner, nullable, is_array)


def _wire_field(field: Field[Any], attributes: Mapping[str, ModelType], defaults: Mapping[str, object]) -> WireField:
    names = (field.name, f"{field.name}_ms", ALIASES.get(field.name))
    attribute = next((name for name in names if name in attributes), None)
    ours = attributes[attribute] if attribute else ModelType()
    theirs = _theirs(field.type)
    shape = shape_of(ours.inner, theirs.inner) if is_dataclass(theirs.inner) else None
    tag = field.metadata.get("tag")
    default = None if ours.takes_none else _default(field, theirs, shape)
    own_default = defaults.get(attribute or "", MISSING)
    return WireField(
        name=field.name,
        attribute=attribute,
        kind=field.metadata.get("kafka_type", "struct"),
        shape=shape,
        is_array=theirs.is_array,
        nullable=theirs.nullable and tag is None,
        ours=ours,
        tag=tag,
        default=own_default if own_default == default else default,  # identity is checked faster than equality
    )


def _default(field: Field[Any], theirs: SchemaType, shape: Shape | None) -> object:
    """kio's default as a value of the message class; if kio has none, the protocol's: null, empty or zero."""
    if field.default is not MISSING:
        return _in_our_terms(field.default, shape, field.metadata.get("kafka_type"))
    if theirs.is_array or (theirs.nullable and field.metadata.get("kafka_type") != "uuid"):
        return None if theirs.nullable else ()
    zeros = {"string": "", "bytes": b"", "uuid": ZERO_TOPIC_ID, "bool": False}
    return CONSTANTS.get(field.name, zeros.get(field.metadata.get("kafka_type", ""), 0))


def _in_our_terms(value: Any, shape: Shape | None, kind: str | None) -> object:
    if shape is not None and is_dataclass(value):
        return _struct_in_our_terms(value, shape)
    if kind == "uuid":
        return ZERO_TOPIC_ID
    return value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value


def _struct_in_our_terms(value: Any, shape: Shape) -> object:
    """A struct's default; None if there is no message class, as the struct is not written then."""
    if shape.cls is None:
        return None
    values = {
        field.attribute: _in_our_terms(getattr(value, field.name), field.shape, field.kind)
        for field in shape.ordinary
        if field.attribute
    }
    return shape.cls(**values)
