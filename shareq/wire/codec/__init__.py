"""Encoding and decoding of messages, for every version in the table of APIs.

kio's schema is the layout of a version, the dataclass of `shareq.model.messages` its content. `shapes` pairs the two;
`reader_compiler` and `writer_compiler` compile such a pair to straight-line code with `struct`: adjacent fields are
packed at once, without intermediate objects. A function is compiled when its version is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from shareq.model.messages.base import Request, Response
from shareq.wire.codec.limits import most_elements
from shareq.wire.codec.reader_compiler import compile_reader
from shareq.wire.codec.schema import schema
from shareq.wire.codec.shapes import Shape, shape_of
from shareq.wire.codec.variant import Variant
from shareq.wire.codec.variants import VARIANTS
from shareq.wire.codec.writer_compiler import Write, compile_writer

Message = Request | Response

Read = Callable[[bytes | bytearray, int], tuple[Any, int]]
"""`read(data, at) -> (message, end)`; raises the exceptions of slicing and unpacking: ValueError, IndexError,
struct.error."""


class MessageReader(NamedTuple):
    """`flexible`: True if the version has tagged fields, also in its header."""

    flexible: bool
    read: Read


class MessageWriter(NamedTuple):
    flexible: bool
    write: Write


def reader(cls: type[Message], api_key: int, version: int) -> MessageReader:
    """The reader of a message class. Callers keep it, because compiling takes milliseconds."""
    variant = VARIANTS.get((cls, version), Variant(cls))
    shape = _shape(cls, variant.cls, api_key, version)
    read = compile_reader(shape, most_elements(cls))
    if variant.from_wire is None:
        return MessageReader(shape.flexible, read)
    from_wire = variant.from_wire

    def read_variant(data: bytes | bytearray, at: int) -> tuple[Any, int]:
        wire, end = read(data, at)
        return from_wire(wire), end

    return MessageReader(shape.flexible, read_variant)


def writer(cls: type[Message], api_key: int, version: int) -> MessageWriter:
    """The writer of a message class. Callers keep it, because compiling takes milliseconds."""
    variant = VARIANTS.get((cls, version), Variant(cls))
    shape = _shape(cls, variant.cls, api_key, version)
    write = compile_writer(shape)
    if variant.to_wire is None:
        return MessageWriter(shape.flexible, write)
    to_wire = variant.to_wire
    return MessageWriter(shape.flexible, lambda add, message, throttle_ms=0: write(add, to_wire(message), throttle_ms))


def _shape(cls: type[Message], travels_as: type, api_key: int, version: int) -> Shape:
    return shape_of(travels_as, schema(api_key, version, request=issubclass(cls, Request)))
