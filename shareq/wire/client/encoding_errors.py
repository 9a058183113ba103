"""The reason why a request cannot be encoded: the first field whose value does not fit its type in the protocol."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from shareq.model.messages.base import Request
from shareq.wire.codec.schema import schema
from shareq.wire.codec.shapes import Shape, WireField, shape_of
from shareq.wire.codec.variant import Variant
from shareq.wire.codec.variants import VARIANTS


def encoding_error(request: Request, version: int, error: Exception) -> str:
    """Called after encoding has failed, so that encoding itself does not check every field."""
    cls = type(request)
    variant = VARIANTS.get((cls, version), Variant(cls))
    field = None
    if variant.to_wire is None:  # otherwise another class is encoded, and the exception is the reason
        shape = shape_of(cls, schema(request.API_KEY, version, request=True))
        field = next(_misfits(shape, request, ""), None)
    return f"{cls.__name__} cannot be encoded: {field or f'{type(error).__name__}: {error}'}"


def _misfits(shape: Shape, value: object, path: str) -> Iterator[str]:
    for position, field in enumerate((*shape.ordinary, *shape.tagged)):
        if field.attribute is None:
            continue
        found = value[position] if isinstance(value, tuple) else getattr(value, field.attribute, None)
        where = f"{path}.{field.attribute}".lstrip(".")
        if found is None or not field.is_array:
            yield from _misfit(field, found, where)
        elif isinstance(found, (tuple, list)):
            for at, element in enumerate(found):
                yield from _misfit(field.element, element, f"{where}[{at}]")
        else:
            yield f"{where}={found!r:.100}: must be a tuple"


def _misfit(field: WireField, value: object, where: str) -> Iterator[str]:
    """The error of one value, if any."""
    if value is None:
        if not field.nullable:
            yield f"{where}=None: must not be null"
    elif field.shape is not None:
        yield from _misfits(field.shape, value, where)
    elif field.letter:
        yield from _number_misfit(field, value, where)
    elif field.kind == "string":
        try:
            value.encode()  # type: ignore[attr-defined]    # what is no str is to fail here
        except (AttributeError, UnicodeEncodeError) as why:
            yield f"{where}={value!r:.100}: must be text ({why})"


def _number_misfit(field: WireField, value: object, where: str) -> Iterator[str]:
    if field.kind == "uuid":
        return
    try:
        struct.pack(f">{field.letter}", value)
    except struct.error as why:
        yield f"{where}={value!r:.100}: must be {field.kind} ({why})"
