"""Events as plain values and back, driven by the annotations of their fields: a new event type needs no code here.

Plain values are those of JSON: numbers, text, true and false, null, lists. A tuple, including a named one, becomes a
list; a member of an enumeration becomes its value, which compares equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from shareq.model.events import Event

EVENT_TYPES: dict[str, type[Any]] = {t.__name__: t for t in get_args(Event)}

Decoder = Callable[[Any], Any]


class BadEvent(ValueError):
    """A plain value does not fit the field of the event."""


def encode(event: Event) -> dict[str, Any]:
    """The fields of an event by name; JSON turns their tuples into lists."""
    return dict(zip(event._fields, event, strict=True))


def decode(type_name: object, fields: Mapping[str, Any]) -> Event:
    """The event of this type; BadEvent names the field that is missing, unknown or of the wrong type."""
    event_type = EVENT_TYPES.get(type_name) if isinstance(type_name, str) else None
    if event_type is None:
        raise BadEvent(f"unknown event type {type_name!r}")
    types = tuple(map(type, fields.values()))
    lists = _checked.get((event_type, types))
    if lists is None or tuple(fields) != event_type._fields:
        return _decode_by_name(event_type, fields, types)
    values = list(fields.values())
    for place, name, decode_list in lists:
        values[place] = _field(event_type, name, decode_list, values[place])
    event: Event = tuple.__new__(event_type, values)
    return event


_checked: dict[tuple[type, tuple[type, ...]], list[tuple[int, str, Decoder]]] = {}
"""The event types and the types of all their fields that a decoded event had, with the fields that are lists: a decoder
of any other field accepts a value by its type alone. A journal has few such rows of types, and many events of each."""


def _decode_by_name(event_type: type[Any], fields: Mapping[str, Any], types: tuple[type, ...]) -> Event:
    """The event of fields in any order, of which some may have defaults."""
    name, decoders = event_type.__name__, _decoders(event_type)
    unknown = fields.keys() - decoders.keys()
    if unknown:
        raise BadEvent(f"{name} has no field {min(unknown)!r}")
    missing = decoders.keys() - fields.keys() - event_type._field_defaults.keys()
    if missing:
        raise BadEvent(f"{name} lacks the field {min(missing)!r}")
    event: Event = event_type(**{key: _field(event_type, key, decoders[key], value) for key, value in fields.items()})
    if tuple(fields) == event_type._fields:
        rows = enumerate(zip(decoders.items(), types, strict=True))
        _checked[event_type, types] = [
            (place, *item) for place, (item, kind) in rows if issubclass(kind, (list, tuple))
        ]
    return event


def _field(event_type: type[Any], name: str, decode_field: Decoder, value: Any) -> Any:
    try:
        return decode_field(value)
    except BadEvent as error:
        raise BadEvent(f"{event_type.__name__}.{name}: {error}") from None


def parse(text: str) -> Any:
    """The value of a JSON text, at a lower cost than `json.loads`; ValueError if it is malformed."""
    try:
        value, end = _raw_decode(text)
    except ValueError:
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


_raw_decode = json.JSONDecoder().raw_decode

_cache: dict[type, dict[str, Decoder]] = {}


def _decoders(event_type: type[Any]) -> dict[str, Decoder]:
    """The decoder of each field."""
    found = _cache.get(event_type)
    if found is None:
        found = _cache[event_type] = {name: decoder(t) for name, t in get_type_hints(event_type).items()}
    return found


def decoder(annotation: Any) -> Decoder:
    """A function from a plain value to a value of the annotated type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        (inner,) = (decoder(a) for a in arguments if a is not NoneType)
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return _list_of(decoder(arguments[0]))
        return _row_of(tuple, [decoder(a) for a in arguments])
    if hasattr(annotation, "_fields"):
        return _row_of(annotation._make, list(_decoders(annotation).values()))
    return _scalar(annotation)


def _list_of(item: Decoder) -> Decoder:
    def items(value: Any) -> Any:
        return tuple([item(v) for v in _sequence(value)])

    return items


def _row_of(make: Callable[[list[Any]], Any], items: list[Decoder]) -> Decoder:
    def row(value: Any) -> Any:
        values = _sequence(value)
        if len(values) != len(items):
            raise BadEvent(f"must be {len(items)} values, not {len(values)}")
        return make([item(v) for item, v in zip(items, values, strict=True)])

    return row


def _sequence(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise BadEvent(f"must be a list, not {value!r}")
    return value


def _scalar(expected: type) -> Decoder:
    """A decoder that only checks the type; a bool is not an int."""

    def same(value: Any) -> Any:
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise BadEvent(f"must be {expected.__name__}, not {value!r}")
        return value

    return same
