"""Replaces the addresses of brokers in encoded responses; every other byte stays as it is.

The response is not decoded and encoded again. A function that follows the layout of its version walks over the bytes
and lists the spans of host and port; these alone are replaced. So throttle times, unknown tagged fields and the
encoding of every other field survive. The tap replaces them (`shareq/proxy/BEHAVIOUR.md`, section 2), and a server with
several listeners.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from shareq.wire.address import Address
from shareq.wire.codec.primitives import skip_tags, uvarint, write_uvarint
from shareq.wire.codec.schema import schema
from shareq.wire.codec.shapes import Shape, WireField, shape_of
from shareq.wire.errors import MalformedFrame

APIS = frozenset({0, 1, 3, 10, 60, 78, 79})
"""The APIs whose responses carry addresses of brokers: Produce, Fetch, Metadata, FindCoordinator, DescribeCluster,
ShareFetch, ShareAcknowledge."""

Lookup = Callable[[int, Address], Address | None]
"""`lookup(node_id, address) -> the address in its place`, None to leave it."""

Frame = bytes | bytearray
"""A frame with its size before it."""

_HEADER_END = 8
"""The end of the size and the correlation id."""

_PORT = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_IDS = ("node_id", "broker_id")


class _Edit(NamedTuple):
    """The bytes [start, end) become `text`."""

    start: int
    end: int
    text: bytes


_Walk = Callable[[Frame, int, Lookup, list[_Edit]], int]
"""`walk(data, at, lookup, edits)` returns the end of a field, and adds the edits inside it."""


def carries_addresses(api_key: int, version: int) -> bool:
    """True if the response can carry addresses that `rewrite` finds."""
    return api_key in APIS and _walk_of(api_key, version) is not None


def rewrite(api_key: int, version: int, frame: Frame, lookup: Lookup) -> Frame:
    """A response frame with other addresses; the same object if none changes. MalformedFrame."""
    found = _walk_of(api_key, version) if api_key in APIS else None
    if found is None:
        return frame
    flexible, walk = found
    edits: list[_Edit] = []
    try:
        end = walk(frame, skip_tags(frame, _HEADER_END) if flexible else _HEADER_END, lookup, edits)
    except (IndexError, ValueError, struct.error) as problem:
        raise MalformedFrame(f"response of {len(frame)} bytes: {problem}") from problem
    if end > len(frame):
        raise MalformedFrame(f"response of {len(frame)} bytes ends at {end}")
    if not edits:
        return frame
    content = _apply(frame, _PORT.size, len(frame), edits)
    return _PORT.pack(len(content)) + content


def _apply(data: Frame, start: int, end: int, edits: list[_Edit]) -> bytes:
    parts: list[Frame] = []
    at = start
    for edit in edits:
        parts += data[at : edit.start], edit.text
        at = edit.end
    return b"".join([*parts, data[at:end]])


# ---- the walk over one version ---------------------------------------------------------------------------------------


@cache
def _walk_of(api_key: int, version: int) -> tuple[bool, _Walk] | None:
    """The walk over a version, and True if the version is flexible. None: no addresses, or an unknown version."""
    try:
        shape = shape_of(None, schema(api_key, version, request=False))
    except RuntimeError:  # kio's errors of its index: a version newer than its schemas
        return None
    return (shape.flexible, _struct(shape)) if has_address(shape) else None


def has_address(shape: Shape) -> bool:
    """True if the struct, or one inside it, is the address of a broker."""
    inner = (field.shape for field in (*shape.ordinary, *shape.tagged) if field.shape is not None)
    return _is_address(shape) or any(map(has_address, inner))


def _is_address(shape: Shape) -> bool:
    names = {field.name for field in shape.ordinary}
    return {"host", "port"} <= names and not names.isdisjoint(_IDS)


def _struct(shape: Shape) -> _Walk:
    tags = [_tags(shape)] if shape.flexible else []
    if _is_address(shape):
        return _address(shape, [_field(field, shape.flexible) for field in shape.ordinary] + tags)
    walks = [*_steps(shape.ordinary, shape.flexible), *tags]

    def walk(data: Frame, at: int, lookup: Lookup, edits: list[_Edit]) -> int:
        for step in walks:
            at = step(data, at, lookup, edits)
        return at

    return walk


def _steps(fields: Sequence[WireField], flexible: bool) -> Iterator[_Walk]:
    """The walks over fields; adjacent ones of fixed size are one step."""
    for is_fixed, group in groupby(fields, key=lambda field: bool(field.letter) and not field.is_array):
        if is_fixed:
            yield _fixed(sum(struct.calcsize(">" + field.letter) for field in group))
        else:
            yield from (_field(field, flexible) for field in group)


def _address(shape: Shape, walks: list[_Walk]) -> _Walk:
    """The walk over a struct with the fields node id, host and port."""
    names = [field.name for field in shape.ordinary]
    node = next(names.index(name) for name in _IDS if name in names)
    host, port, flexible = names.index("host"), names.index("port"), shape.flexible

    def walk(data: Frame, at: int, lookup: Lookup, edits: list[_Edit]) -> int:
        begins = []
        for step in walks:
            begins.append(at)
            at = step(data, at, lookup, edits)
        begins.append(at)
        (node_id,), (number,) = _PORT.unpack_from(data, begins[node]), _PORT.unpack_from(data, begins[port])
        size = _text_begin(data, begins[host], flexible)
        new = lookup(node_id, Address(data[size : begins[host + 1]].decode(), number))
        if new is not None:
            replaced = [
                _Edit(begins[host], begins[host + 1], _text(new.host, flexible)),
                _Edit(begins[port], begins[port + 1], _PORT.pack(new.port)),
            ]
            edits += sorted(replaced)
        return at

    return walk


def _text_begin(data: Frame, at: int, flexible: bool) -> int:
    return uvarint(data, at)[1] if flexible else at + _INT16.size


def _text(text: str, flexible: bool) -> bytes:
    encoded = text.encode()
    return (write_uvarint(len(encoded) + 1) if flexible else _INT16.pack(len(encoded))) + encoded


def _field(field: WireField, flexible: bool) -> _Walk:
    if field.is_array:
        return _array(field, flexible)
    if field.letter:
        return _fixed(struct.calcsize(">" + field.letter))
    if field.shape is not None:
        inner = _struct(field.shape)
        return _nullable(inner) if field.nullable else inner
    return _sized(1, "string" if field.kind == "string" else "bytes", flexible)


def _fixed(size: int) -> _Walk:
    return lambda _, at, __, ___: at + size


def _length(kind: str, flexible: bool) -> Callable[[Frame, int], tuple[int, int]]:
    """Reads a length, -1 for null, and its end."""
    if flexible:

        def compact(data: Frame, at: int) -> tuple[int, int]:
            value = data[at]
            if value < 0x80:  # one byte, as almost always
                return value - 1, at + 1
            value, at = uvarint(data, at)
            return value - 1, at

        return compact
    fixed = _INT16 if kind == "string" else _PORT
    return lambda data, at: (fixed.unpack_from(data, at)[0], at + fixed.size)


def _sized(unit: int, kind: str, flexible: bool) -> _Walk:
    """Text, bytes, or an array of elements of `unit` bytes."""
    length = _length(kind, flexible)

    def walk(data: Frame, at: int, _: Lookup, __: list[_Edit]) -> int:
        count, at = length(data, at)
        return at + max(count, 0) * unit

    return walk


def _array(field: WireField, flexible: bool) -> _Walk:
    element = field.element
    if element.letter:
        return _sized(struct.calcsize(">" + element.letter), "array", flexible)
    length, each = _length("array", flexible), _field(element, flexible)

    def walk(data: Frame, at: int, lookup: Lookup, edits: list[_Edit]) -> int:
        count, at = length(data, at)
        for _ in range(count):
            at = each(data, at, lookup, edits)
            if at > len(data):
                raise ValueError("an array ends beyond the frame")
        return at

    return walk


def _nullable(inner: _Walk) -> _Walk:
    """A nullable struct after its marker byte (KIP-893)."""
    return lambda data, at, lookup, edits: at + 1 if data[at] > 127 else inner(data, at + 1, lookup, edits)


def _tags(shape: Shape) -> _Walk:
    """The tagged fields. A field with addresses changes its size, which stands before it."""
    known = {
        field.tag: _field(field, True) for field in shape.tagged if field.shape is not None and has_address(field.shape)
    }

    def walk(data: Frame, at: int, lookup: Lookup, edits: list[_Edit]) -> int:
        if data[at] == 0:  # no field, as almost always
            return at + 1
        count, at = uvarint(data, at)
        for _ in range(count):
            tag, size_at = uvarint(data, at)
            size, begin = uvarint(data, size_at)
            at = begin + size
            inside: list[_Edit] = []
            if tag in known and known[tag](data, begin, lookup, inside) != at:
                raise ValueError(f"the tagged field {tag} of {shape.name} does not have its stated size")
            if inside:
                text = _apply(data, begin, at, inside)
                edits.append(_Edit(size_at, at, write_uvarint(len(text)) + text))
        return at

    return walk
