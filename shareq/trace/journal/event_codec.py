"""Events as plain values and back, driven by the annotations of their fields: a new event type needs no code here.

Plain values are those of JSON: numbers, text, true and false, null, lists. A tuple, including a named one, becomes a
list; a member of an enumeration becomes its value, which compares equal.
"""

from __future__ import annotations

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
    decoders = _decoders(event_type)
    unknown = fields.keys() - decoders.keys()
    if unknown:
        raise BadEvent(f"{type_name} has no field {min(unknown)!r}")
    missing = decoders.keys() - fields.keys() - event_type._field_defaults.keys()
    if missing:
        raise BadEvent(f"{type_name} lacks the field {min(missing)!r}")
    values = {}
    for name, value in fields.items():
        try:
            values[name] = decoders[name](value)
        except BadEvent as error:
            raise BadEvent(f"{type_name}.{name}: {error}") from None
    event: Event = event_type(**values)
    return event


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
