"""Compiles the function that reads one message in one version.

    def read(data, at):
        v1, n2, = unpack3(data, at); at += 3
        ...
        return HeartbeatResponse(error_code=errors[v1], ...), at

Adjacent fields of fixed size, and a length or tag count after them, are unpacked at once. The next read, or the caller,
which compares the end with the frame's, detects a field that ends beyond the frame; an array grows with the available
bytes, whatever its stated number of elements. The elements and tags of a whole message are bounded, too: `left` counts
what it may still have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import MISSING
from typing import Any

from shareq.wire.codec import primitives
from shareq.wire.codec.function_source import FunctionSource
from shareq.wire.codec.shapes import LETTERS, Shape, WireField

_HELPERS = {
    "batches": primitives.batches,
    "errors": primitives.errors,
    "illegal_null": primitives.illegal_null,
    "many": primitives.many,
    "pass_tags": primitives.pass_tags,
    "read_tags": primitives.read_tags,
    "string_length": primitives.string_length,
    "too_many": primitives.too_many,
    "topic_id": primitives.topic_id,
    "uvarint": primitives.uvarint,
    "wrong_size": primitives.wrong_size,
}


NUMBERS_PER_ELEMENT = 8
"""So many numbers of an array count as one element: they are unpacked together."""


def compile_reader(shape: Shape, most_elements: int) -> Callable[[bytes | bytearray, int], tuple[Any, int]]:
    """The reader of a message with at most `most_elements` array elements and tags, at all depths together."""
    reading = _ReaderCompiler(shape)
    reading.source.line(f"left = {most_elements}")
    value = reading.struct(shape)
    reading.source.line(f"return {value}, at")
    return reading.source.function("read", _HELPERS)


class _ReaderCompiler:
    """Each method adds lines that read a value, and returns the expression of the value."""

    def __init__(self, whole: Shape) -> None:
        self.source = FunctionSource("def read(data, at):", f"Read a {whole.name}.")
        self._run: list[tuple[str, str]] = []

    def struct(self, shape: Shape) -> str:
        values = {field.attribute: self._field(field, shape.flexible) for field in shape.ordinary}
        if shape.flexible:
            values |= self._tags(shape)
        self._unpack()
        values.pop(None, None)
        if shape.cls is None:
            return "None"
        if shape.cls is tuple:
            return f"({', '.join(values.values())},)"
        for name, value in shape.absent.items():
            values[name] = self.source.bind("absent", value)
        made = ", ".join(f"{name}={value}" for name, value in values.items())
        return f"{self.source.bind(shape.cls.__name__, shape.cls)}({made})"

    def _field(self, field: WireField, flexible: bool) -> str:
        if field.letter:
            return self._fixed(field)
        if field.is_array:
            return self._sized(field, flexible, self._numbers if field.is_numbers else self._elements)
        if field.shape is not None:
            return self._nullable_struct(field) if field.nullable else self.struct(field.shape)
        return self._sized(field, flexible, self._text if field.kind == "string" else self._bytes)

    # ---- fixed sizes

    def _fixed(self, field: WireField) -> str:
        if field.attribute is None:
            self._run.append((f"{struct.calcsize('>' + field.letter)}x", ""))
            return ""
        variable = self._next(field.letter, "v")
        if field.kind == "uuid":
            return f"topic_id({variable})"
        return f"errors[{variable}]" if field.is_error else variable

    def _next(self, letter: str, stem: str) -> str:
        variable = self.source.fresh(stem)
        self._run.append((letter, variable))
        return variable

    def _unpack(self) -> None:
        """Add the line that unpacks the collected fields."""
        letters = "".join(letter for letter, _ in self._run)
        targets = ", ".join(variable for _, variable in self._run if variable)
        if letters == "B":
            self.source.line(f"{targets} = data[at]; at += 1")
        elif letters:
            fixed = struct.Struct(">" + letters)
            unpack = f"{self.source.bind('unpack', fixed.unpack_from)}(data, at); at += {fixed.size}"
            self.source.line(f"{targets}, = {unpack}" if targets else unpack)
        self._run.clear()

    # ---- fields with a length

    def _sized(self, field: WireField, flexible: bool, read: Callable[[WireField, bool, str, str], None]) -> str:
        """Read the length, -1 for null; then `read(field, flexible, length, target)` adds the lines for the rest."""
        target = self.source.fresh("v")
        length = self._length(field, flexible)
        if field.on_null is MISSING:
            self.source.line(f"if {length} < 0: raise illegal_null({field.name!r})")
            read(field, flexible, length, target)
            return target
        with self.source.block(f"if {length} < 0:"):
            self.source.line(f"{target} = {field.on_null!r}")
        with self.source.block("else:"):
            read(field, flexible, length, target)
        return target

    def _length(self, field: WireField, flexible: bool) -> str:
        if not flexible:
            length = self._next("h" if field.kind == "string" and not field.is_array else "i", "n")
            self._unpack()
            return length
        length = self._next("B", "n")
        self._unpack()
        read = "string_length" if field.kind == "string" and not field.is_array else "uvarint"
        self.source.line(f"if {length} > 127: {length}, at = {read}(data, at - 1)")
        self.source.line(f"{length} -= 1")
        return length

    def _text(self, _: WireField, __: bool, length: str, target: str) -> None:
        """As in Java, U+FFFD replaces what is no UTF-8: clients in other languages may send any bytes."""
        self.source.line(f"{target} = data[at:at + {length}].decode(errors='replace'); at += {length}")

    def _bytes(self, field: WireField, _: bool, length: str, target: str) -> None:
        value = f"batches(data, at, at + {length})" if field.is_batches else f"data[at:at + {length}]"
        self.source.line(f"{target} = {value}; at += {length}")

    def _numbers(self, field: WireField, _: bool, length: str, target: str) -> None:
        letter = LETTERS[field.kind]
        self._count(f"{length} // {NUMBERS_PER_ELEMENT}")
        self.source.line(
            f"{target} = many({letter!r}, {length})(data, at); at += {length} * {struct.calcsize('>' + letter)}"
        )

    def _elements(self, field: WireField, flexible: bool, length: str, target: str) -> None:
        self._count(length)
        items = self.source.fresh("items")
        self.source.line(f"{items} = []")
        with self.source.block(f"for _ in range({length}):"):
            element = self.struct(field.shape) if field.shape else self._field(field.element, flexible)
            self._unpack()
            self.source.line(f"{items}.append({element})")
        self.source.line(f"{target} = tuple({items})")

    def _count(self, elements: str) -> None:
        self.source.line(f"left -= {elements}")
        self.source.line("if left < 0: raise too_many()")

    def _nullable_struct(self, field: WireField) -> str:
        """Read a nullable struct after its marker byte (KIP-893)."""
        assert field.shape is not None
        marker = self._next("b", "n")
        self._unpack()
        target = self.source.fresh("v")
        with self.source.block(f"if {marker} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.source.line(f"{target} = {self.struct(field.shape)}")
        return target

    # ---- tagged fields

    def _tags(self, shape: Shape) -> dict[str | None, str]:
        known = [field for field in shape.tagged if field.attribute]
        count = self._next("B", "tags")
        self._unpack()
        if not known:
            self.source.line(f"if {count}: at, left = pass_tags(data, at - 1, left)")
            return {}
        found, end = self.source.fresh("found"), self.source.fresh("end")
        values = {}
        for field in known:
            values[field.attribute] = target = self.source.fresh("v")
            self.source.line(f"{target} = {self.source.bind('default', field.default)}")
        with self.source.block(f"if {count}:"):
            tags = self.source.bind("known", frozenset(field.tag for field in known))
            self.source.line(f"{found}, {end}, left = read_tags(data, at - 1, {tags}, left)")
            for field in known:
                with self.source.block(f"if {field.tag} in {found}:"):
                    self._tagged(field, found, values[field.attribute])
            self.source.line(f"at = {end}")
        return values

    def _tagged(self, field: WireField, found: str, target: str) -> None:
        stop = self.source.fresh("stop")
        self.source.line(f"at, {stop} = {found}[{field.tag}]")
        value = self._field(field, True)
        self._unpack()
        self.source.line(f"{target} = {value}")
        self.source.line(f"if at != {stop}: raise wrong_size({field.name!r})")
