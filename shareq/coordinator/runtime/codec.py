"""Writes and reads the bytes of coordinator records: Kafka's non-flexible form for keys, its flexible form for values.

Source: Kafka's protocol guide, "Protocol Primitive Types" and KIP-482 (tagged fields).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.ids import TopicId, topic_id_from_bytes, topic_id_to_bytes

T = TypeVar("T")

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class Writer:
    """Appends fields to a buffer. `compact_*`, `array`, `int32s` and `tags` write flexible forms."""

    __slots__ = ("_out",)

    def __init__(self) -> None:
        self._out = bytearray()

    def finish(self) -> bytes:
        return bytes(self._out)

    def int8(self, value: int) -> Writer:
        self._out.append(value & 0xFF)
        return self

    def int16(self, value: int) -> Writer:
        self._out += _INT16.pack(value)
        return self

    def int32(self, value: int) -> Writer:
        self._out += _INT32.pack(value)
        return self

    def int64(self, value: int) -> Writer:
        self._out += _INT64.pack(value)
        return self

    def uvarint(self, value: int) -> Writer:
        while value > 0x7F:
            self._out.append(value & 0x7F | 0x80)
            value >>= 7
        self._out.append(value)
        return self

    def string(self, text: str) -> Writer:
        """The non-flexible form: an int16 length and UTF-8."""
        raw = text.encode()
        self.int16(len(raw))
        self._out += raw
        return self

    def nullable_string(self, text: str | None) -> Writer:
        return self.int16(-1) if text is None else self.string(text)

    def raw(self, raw: bytes) -> Writer:
        """Bytes without a length."""
        self._out += raw
        return self

    def sized(self, raw: bytes) -> Writer:
        """Bytes in the non-flexible form: an int32 length and the bytes."""
        self.int32(len(raw))
        self._out += raw
        return self

    def compact_string(self, text: str | None) -> Writer:
        if text is None:
            return self.uvarint(0)
        raw = text.encode()
        self.uvarint(len(raw) + 1)
        self._out += raw
        return self

    def uuid(self, topic_id: TopicId) -> Writer:
        self._out += topic_id_to_bytes(topic_id)
        return self

    def int32s(self, values: Sequence[int]) -> Writer:
        self.uvarint(len(values) + 1)
        self._out += struct.pack(f">{len(values)}i", *values)
        return self

    def array(self, items: Sequence[T], write: Callable[[Writer, T], object]) -> Writer:
        self.uvarint(len(items) + 1)
        for item in items:
            write(self, item)
        return self

    def tags(self, fields: Iterable[tuple[int, bytes]] = ()) -> Writer:
        """The tagged fields at the end of a flexible struct, in ascending order of tags."""
        present = sorted(fields)
        self.uvarint(len(present))
        for tag, raw in present:
            self.uvarint(tag).uvarint(len(raw))
            self._out += raw
        return self


class Reader:
    """Reads fields of a buffer in order. Raises UnreadableRecordError if the bytes end too early or are invalid."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise UnreadableRecordError(f"{size} bytes wanted at {self._at} of {len(self._data)}")
        raw = self._data[self._at : end]
        self._at = end
        return raw

    def peek(self, size: int) -> bytes:
        """The next bytes, at most `size`, without consuming them."""
        return self._data[self._at : self._at + size]

    def int8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def uvarint(self) -> int:
        byte = self.take(1)[0]
        value, shift = byte & 0x7F, 0
        while byte >= 0x80:
            shift += 7
            if shift > 28:
                raise UnreadableRecordError("a varint of more than 5 bytes")
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
        return value

    def _text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise UnreadableRecordError(str(error)) from error

    def string(self) -> str:
        return self._text(self.int16())

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size == -1 else self._text(size)

    def sized(self) -> bytes:
        return self.take(self.int32())

    def compact_sized(self) -> bytes:
        return self.take(self.uvarint() - 1)

    def compact_string(self) -> str:
        return self._text(self.uvarint() - 1)

    def nullable_compact_string(self) -> str | None:
        size = self.uvarint()
        return self._text(size - 1) if size else None

    def uuid(self) -> TopicId:
        return topic_id_from_bytes(self.take(16))

    def int32s(self) -> tuple[int, ...]:
        count = self.uvarint() - 1
        return struct.unpack(f">{max(count, 0)}i", self.take(4 * count))

    def plain_array(self, read: Callable[[Reader], T]) -> tuple[T, ...]:
        return tuple(read(self) for _ in range(self.int32()))

    def array(self, read: Callable[[Reader], T]) -> tuple[T, ...]:
        return tuple(read(self) for _ in range(self.uvarint() - 1))

    def tags(self) -> dict[int, bytes]:
        """All tagged fields, by tag; the caller ignores unknown tags."""
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}
