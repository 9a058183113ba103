"""Compiles the function that writes one message in one version.

    def write(add, m, throttle_ms=0):
        add(pack1(0, m.error_code))
        ...

It passes the pieces to `add`, so that records are copied only once, when the frame is joined. Adjacent fields of fixed
size are packed at once. Structs of an inner array have a function of their own: where one array is in many elements one
after the other, as the configurations of equal topics, its bytes are made once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

from shareq.wire.codec import primitives
from shareq.wire.codec.function_source import FunctionSource
from shareq.wire.codec.shapes import LETTERS, Shape, WireField

_HELPERS = {
    "cannot_be_null": primitives.cannot_be_null,
    "cannot_travel": primitives.cannot_travel,
    "compact": primitives.compact,
    "int16": primitives.int16,
    "int32": primitives.int32,
    "pack_many": primitives.pack_many,
    "tag_section": primitives.tag_section,
    "uuid": primitives.uuid,
}


class Write(Protocol):
    """Calls `add` with the bytes of a message, piece by piece; `throttle_ms` is written in a response that has it."""

    def __call__(self, add: Callable[[bytes], None], message: Any, throttle_ms: int = 0, /) -> None: ...


def _has_batches(shape: Shape) -> bool:
    return any(
        field.is_batches or (field.shape is not None and _has_batches(field.shape))
        for field in (*shape.ordinary, *shape.tagged)
    )


def compile_writer(shape: Shape) -> Write:
    writing = _WriterCompiler(f"Write a {shape.name}.")
    writing.struct(shape, "m")
    writing.pack()
    return writing.source.function("write", _HELPERS)


class _WriterCompiler:
    """Each method adds lines that write a value, given by its expression."""

    def __init__(self, purpose: str) -> None:
        self.source = FunctionSource("def write(add, m, throttle_ms=0):", purpose)
        self._add = "add"
        self._run: list[tuple[str, str]] = []
        self._in_element = False

    def struct(self, shape: Shape, value: str) -> None:
        """Write the fields of a struct. The last ones of fixed size may remain, to be packed with the next fields."""
        for name, only in shape.must_travel.items():
            self.source.line(f"if {value}.{name} != {self.source.bind('only', only)}: raise cannot_travel({name!r})")
        for i, field in enumerate(shape.ordinary):
            if field.attribute is None:
                self._left_out(field, shape.flexible)
            else:
                self._field(
                    field, f"{value}[{i}]" if shape.cls is tuple else f"{value}.{field.attribute}", shape.flexible
                )
        if shape.flexible:
            self._tags([field for field in shape.tagged if field.attribute], value)

    def _field(self, field: WireField, value: str, flexible: bool) -> None:
        if field.name == "throttle_time":
            self._run.append((field.letter, f"throttle_ms or {value}"))
        elif field.letter:
            self._run.append((field.letter, f"uuid({value})" if field.kind == "uuid" else value))
        elif field.is_array or field.shape is None:
            self._sized(field, value, flexible)
        else:
            self._struct(field, value)

    def pack(self) -> None:
        """Add the line that packs the collected fields."""
        fixed = struct.Struct(">" + "".join(letter for letter, _ in self._run))
        values = ", ".join(value for _, value in self._run if value)
        if values:
            self._line(f"{self.source.bind('pack', fixed.pack)}({values})")
        elif self._run:
            self._line(repr(fixed.pack()))
        self._run.clear()

    def _line(self, piece: str) -> None:
        self.source.line(f"{self._add}({piece})")

    def _let(self, stem: str, value: str) -> str:
        variable = self.source.fresh(stem)
        self.source.line(f"{variable} = {value}")
        return variable

    # ---- fields that the message class lacks

    def _left_out(self, field: WireField, flexible: bool) -> None:
        """Collect constants like other fields of fixed size; zeros are padding."""
        if field.name == "throttle_time":
            self._run.append((field.letter, "throttle_ms"))
        elif field.letter:
            size = struct.calcsize(">" + field.letter)
            zero = field.kind == "uuid" or not field.default
            self._run.append((f"{size}x", "") if zero else (field.letter, repr(field.default)))
        elif field.is_array or field.shape is None:
            length = -1 if field.default is None else len(field.default)
            assert length <= 0, f"{field.name}: only null and empty are left out"
            self._run.append(("B", str(length + 1)) if flexible else (self._length_letter(field), str(length)))
        elif field.nullable:
            self._run.append(("b", "-1"))
        else:
            self.struct(field.shape, "")

    # ---- fields with a length

    def _sized(self, field: WireField, value: str, flexible: bool) -> None:
        self.pack()
        lengths = "compact" if flexible else {"h": "int16", "i": "int32"}[self._length_letter(field)]
        value = self._let("v", value)
        if not field.ours.takes_none:
            self._value(field, value, lengths, flexible)
            return
        with self.source.block(f"if {value} is None:"):
            if field.nullable:
                self._line(f"{lengths}[-1]")
            else:
                self.source.line(f"raise cannot_be_null({field.name!r})")
        with self.source.block("else:"):
            self._value(field, value, lengths, flexible)

    @staticmethod
    def _length_letter(field: WireField) -> str:
        """The letter of a length before flexible versions, which is short only for strings."""
        return "h" if field.kind == "string" and not field.is_array else "i"

    def _value(self, field: WireField, value: str, lengths: str, flexible: bool) -> None:
        if field.is_batches:
            self._batches(value, lengths)
        elif not field.is_array:
            value = self._let("v", f"{value}.encode()") if field.kind == "string" else value
            self._line(f"{lengths}[len({value})]")
            self._line(value)
        elif field.is_numbers:
            self._line(f"{lengths}[len({value})]")
            self._line(f"pack_many({LETTERS[field.kind]!r}, len({value}))(*{value})")
        else:
            self._line(f"{lengths}[len({value})]")
            if self._in_element and field.shape and not _has_batches(field.shape):
                self._shared(field, value, flexible)
            else:
                self._elements(field, value, flexible)

    def _elements(self, field: WireField, value: str, flexible: bool) -> None:
        element, outer, self._in_element = self.source.fresh("m"), self._in_element, True
        with self.source.block(f"for {element} in {value}:"):
            if field.shape:
                self.struct(field.shape, element)
            else:
                self._field(field.element, element, flexible)
            self.pack()
        self._in_element = outer

    def _shared(self, field: WireField, value: str, flexible: bool) -> None:
        """Write the elements of an array, or once more the bytes of the same array in the element before."""
        elements = _WriterCompiler(f"Write the {field.name}.")
        elements._elements(field, "m", flexible)
        write = self.source.bind("write", elements.source.function("write", _HELPERS))
        last, kept = self.source.fresh("last"), self.source.fresh("kept")
        self.source.begin(f"{last} = {kept} = None")
        with self.source.block(f"if {value} is not {last}:"):
            self.source.line(f"{write}({self._add}, {value})")
            self.source.line(f"{last}, {kept} = {value}, None")
        with self.source.block("else:"):
            with self.source.block(f"if {kept} is None:"):
                body = self._let("body", "[]")
                self.source.line(f"{write}({body}.append, {value})")
                self.source.line(f"{kept} = b''.join({body})")
            self._line(kept)

    def _batches(self, value: str, lengths: str) -> None:
        data = self._let("data", f"[batch.data for batch in {value}]")
        self._line(f"{lengths}[sum(map(len, {data}))]")
        piece = self.source.fresh("piece")
        with self.source.block(f"for {piece} in {data}:"):
            self._line(piece)

    def _struct(self, field: WireField, value: str) -> None:
        """Write a struct, a nullable one after a marker byte (KIP-893)."""
        assert field.shape is not None
        if not field.nullable:
            self.struct(field.shape, self._let("m", value))
            return
        self.pack()
        value = self._let("m", value)
        with self.source.block(f"if {value} is None:"):
            self._line(r"b'\xff'")
        with self.source.block("else:"):
            self._line(r"b'\x01'")
            self.struct(field.shape, value)
            self.pack()

    # ---- tagged fields

    def _tags(self, fields: list[WireField], value: str) -> None:
        """Write the tagged fields that do not have their defaults."""
        if not fields:
            self._run.append(("x", ""))
            return
        self.pack()
        tags = self._let("tags", "[]")
        for field in fields:
            variable = self._let("v", f"{value}.{field.attribute}")
            default = self.source.bind("default", field.default)
            with self.source.block(f"if {variable} is not {default} and {variable} != {default}:"):
                self._tagged(field, variable, tags)
        self._line(rf"tag_section({tags}) if {tags} else b'\0'")

    def _tagged(self, field: WireField, value: str, tags: str) -> None:
        """Collect the bytes of one tagged field separately, because their number precedes them."""
        body = self._let("body", "[]")
        outer, self._add = self._add, f"{body}.append"
        self._field(field, value, True)
        self.pack()
        self._add = outer
        self.source.line(f"{tags}.append(({field.tag}, {body}))")
