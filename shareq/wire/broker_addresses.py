"""Replaces the addresses of brokers in encoded responses; every other byte stays as it is.

The response is not decoded and encoded again. A function that is compiled from the layout of its version walks over the
bytes and lists the spans of host and port; these alone are replaced. So throttle times, unknown tagged fields and the
encoding of every other field survive. The tap replaces them (`shareq/proxy/BEHAVIOUR.md`, section 2), and a server with
several listeners.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import NamedTuple

from shareq.wire.address import Address
from shareq.wire.codec.function_source import FunctionSource
from shareq.wire.codec.primitives import skip_tags, uvarint, write_uvarint
from shareq.wire.codec.schema import schema
from shareq.wire.codec.shapes import Shape, WireField, shape_of
from shareq.wire.errors import MalformedFrame, UnsupportedVersion

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
    walk = _walk_of(api_key, version) if api_key in APIS else None
    if walk is None:
        return frame
    edits: list[_Edit] = []
    try:
        end = walk(frame, _HEADER_END, lookup, edits)
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
def _walk_of(api_key: int, version: int) -> _Walk | None:
    """The walk over a version from the end of its correlation id. None: no addresses, or an unknown version."""
    try:
        shape = shape_of(None, schema(api_key, version, request=False))
    except UnsupportedVersion:
        return None
    if not has_address(shape):
        return None
    source = _source()
    if shape.flexible:
        _if_tags(source, f"{source.bind('skip', skip_tags)}(data, at)")
    _struct(source, shape)
    return _compiled(source)


def has_address(shape: Shape) -> bool:
    """True if the struct, or one inside it, is the address of a broker."""
    inner = (field.shape for field in (*shape.ordinary, *shape.tagged) if field.shape is not None)
    return _is_address(shape) or any(map(has_address, inner))


def _is_address(shape: Shape) -> bool:
    names = {field.name for field in shape.ordinary}
    return {"host", "port"} <= names and not names.isdisjoint(_IDS)


# ---- its source: responses wait for the walk, so it is one function --------------------------------------------------


def _source() -> FunctionSource:
    return FunctionSource("def walk(data, at, lookup, edits):", "The end of what begins at `at`.")


def _compiled(source: FunctionSource) -> _Walk:
    source.line("return at")
    helpers = {"address": _address_at, "uvarint": uvarint, "int16": _INT16.unpack_from, "int32": _PORT.unpack_from}
    return source.function("walk", helpers)


def _struct(source: FunctionSource, shape: Shape) -> None:
    if _is_address(shape):
        _address(source, shape)
        return
    for is_fixed, group in groupby(shape.ordinary, key=lambda field: bool(field.letter)):
        if is_fixed:
            source.line(f"at += {sum(map(_size, group))}")
        else:
            for field in group:
                _field(source, field, shape.flexible)
    if shape.flexible:
        _tags(source, shape)


def _address(source: FunctionSource, shape: Shape) -> None:
    begins = {}
    for field in shape.ordinary:
        begins[field.name] = source.fresh("begin")
        source.line(f"{begins[field.name]} = at")
        _field(source, field, shape.flexible)
        if field.name == "host":
            source.line("host_end = at")
    if shape.flexible:
        _tags(source, shape)
    node = next(begins[name] for name in _IDS if name in begins)
    places = f"({node}, {begins['host']}, host_end, {begins['port']})"
    source.line(f"address(data, {places}, {shape.flexible}, lookup, edits)")


def _size(field: WireField) -> int:
    return struct.calcsize(">" + field.letter)


def _field(source: FunctionSource, field: WireField, flexible: bool) -> None:
    if field.is_array:
        _array(source, field, flexible)
    elif field.letter:
        source.line(f"at += {_size(field)}")
    elif field.shape is None:
        _sized(source, 1, "int16" if field.kind == "string" else "int32", flexible)
    elif field.nullable:  # after its marker byte (KIP-893)
        source.line("at += 1")
        with source.block("if data[at - 1] < 128:"):
            _struct(source, field.shape)
    else:
        _struct(source, field.shape)


def _count(source: FunctionSource, kind: str, flexible: bool) -> str:
    """Read a length of this kind into a new variable: -1 for null."""
    count = source.fresh("count")
    if not flexible:
        source.line(f"({count},), at = {kind}(data, at), at + {2 if kind == 'int16' else 4}")
        return count
    source.line(f"{count}, at = data[at] - 1, at + 1")
    with source.block(f"if {count} > 126:"):  # more than one byte
        source.line(f"{count}, at = uvarint(data, at - 1)")
        source.line(f"{count} -= 1")
    return count


def _sized(source: FunctionSource, unit: int, kind: str, flexible: bool) -> None:
    """Text, bytes, or an array of elements of `unit` bytes."""
    count = _count(source, kind, flexible)
    with source.block(f"if {count} > 0:"):
        source.line(f"at += {unit} * {count}")


def _array(source: FunctionSource, field: WireField, flexible: bool) -> None:
    element = field.element
    if element.letter:
        _sized(source, _size(element), "int32", flexible)
        return
    with source.block(f"for _ in range({_count(source, 'int32', flexible)}):"):
        _field(source, element, flexible)
        with source.block("if at > len(data):"):
            source.line("raise ValueError('an array ends beyond the frame')")


def _tags(source: FunctionSource, shape: Shape) -> None:
    _if_tags(source, f"{source.bind('tags', _tagged(shape))}(data, at, lookup, edits)")


def _if_tags(source: FunctionSource, end: str) -> None:
    """The end of the tagged fields: of none, as almost always, or `end`."""
    source.line(f"at = {end} if data[at] else at + 1")


# ---- what it calls ---------------------------------------------------------------------------------------------------


def _address_at(
    data: Frame, places: tuple[int, int, int, int], flexible: bool, lookup: Lookup, edits: list[_Edit]
) -> None:
    """Add the edits of an address. `places`: where node id and host begin, host ends, and port begins."""
    node, host, host_end, port = places
    (node_id,), (number,) = _PORT.unpack_from(data, node), _PORT.unpack_from(data, port)
    text = uvarint(data, host)[1] if flexible else host + _INT16.size
    new = lookup(node_id, Address(data[text:host_end].decode(), number))
    if new is not None:
        edits += sorted([_Edit(host, host_end, _text(new.host, flexible)), _Edit(port, port + 4, _PORT.pack(new.port))])


def _text(text: str, flexible: bool) -> bytes:
    encoded = text.encode()
    return (write_uvarint(len(encoded) + 1) if flexible else _INT16.pack(len(encoded))) + encoded


def _tagged(shape: Shape) -> _Walk:
    """The walk over tagged fields. A field with addresses changes its size, which stands before it."""
    known = {}
    for field in shape.tagged:
        if field.shape is not None and has_address(field.shape):
            source = _source()
            _field(source, field, True)
            known[field.tag] = _compiled(source)

    def walk(data: Frame, at: int, lookup: Lookup, edits: list[_Edit]) -> int:
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
