"""A look at the records of a batch without decoding them one by one.

Batches are mostly written by one loop over like things: neighbouring records have the same size, and differ only in
what they carry. Then the bytes that give them their structure (lengths, attributes, header counts) stand in columns,
as far apart as a record is long, and a column is compared with one slice. What has been found equal so is as sure as
if every record had been parsed: 500 take 20 us. Other batches are left to the codec: 0.2 us for each record.
Source: Kafka's message format, "Record".
"""

from __future__ import annotations

from typing import NamedTuple

WORTH_A_LOOK = 32
"""Fewer records are sooner decoded."""

_MIN_RUN = 16
"""Runs of like records have to be so long on average, after the first two, to be worth it."""

_DELTAS_BELOW = (0, 1 << 6, 1 << 13, 1 << 20)
"""Non-negative numbers below these take one, two and three bytes, as zigzag varints."""

_MORE = 0x80
_CYCLE = 1 << 13
_LOW = bytes(range(0, 128, 2)) * 128
_MIDDLE = b"".join(bytes([byte]) * 64 for byte in range(128))
_LOW_MORE, _MIDDLE_MORE = (column.translate(bytes(i | _MORE for i in range(256))) for column in (_LOW, _MIDDLE))
"""The bytes of offset deltas 0, 1, 2, ... 8191, after which they come again: the lowest, and the one after it; and the
same where another byte follows."""

_FOLLOWED = bytes(range(_MORE, 256))
_EVEN = bytes(range(0, 256, 2))
_UP_TO = [bytes(range(byte + 1)) + bytes(range(_MORE, _MORE + byte + 1)) for byte in range(128)]
"""Of each number of seven bits, which bytes hold none that is larger, followed by another byte or not."""

_BY_SIZE = bytes((*range(127, 0, -2), *range(0, 128, 2)))
"""All numbers of one byte: -64 first, 63 last."""

_NOT_LARGER = [_BY_SIZE[: _BY_SIZE.index(value) + 1] for value in range(128)]
"""Of each number of one byte, which others are not larger."""


class _Layout(NamedTuple):
    """Where things are in a record: its size, the columns of its structure, and the two deltas."""

    size: int
    columns: tuple[int, ...]
    timestamp_at: int
    offset_at: int
    key_at: int


def largest_timestamp_delta(data: bytes, at: int, count: int) -> int | None:
    """The largest timestamp delta of the `count` (> 0) records that fill `data` from `at` on; None: decode them, to see
    what they are."""
    done = runs = 0
    largest = -64
    while done < count and done >= (runs - 2) * _MIN_RUN:
        layout = _layout(data, at)
        if layout is None:
            return None
        run = _like(data, at, layout, min(count - done, (len(data) - at) // layout.size))
        run = _in_order(data, at, layout, done, run)
        found = _largest_timestamp(data, at, layout, run) if run else None
        if found is None:
            return None
        largest = max(largest, found)
        at += run * layout.size
        done += run
        runs += 1
    return largest if done == count and at == len(data) else None


def _layout(data: bytes, start: int) -> _Layout | None:
    """Of the record at `start`; None where it is none, or has headers."""
    try:
        length, at = _varint(data, start)
        end = at + length
        timestamp_at = at + 1
        _, offset_at = _varint(data, timestamp_at)
        _, key_at = _varint(data, offset_at)
        key_length, key = _varint(data, key_at)
        value_at = key + max(key_length, 0)
        value_length, value = _varint(data, value_at)
        last = value + max(value_length, 0)
        well_formed = key_length >= -1 <= value_length and last + 1 == end <= len(data) and data[last] == 0
    except IndexError:
        return None
    if not well_formed or data[at]:  # attributes of a record are not used yet
        return None
    columns = (*range(start, timestamp_at), *range(key_at, key), *range(value_at, value), last)
    places = (timestamp_at - start, offset_at - start, key_at - start)
    return _Layout(end - start, tuple(c - start for c in columns), *places)


def _like(data: bytes, start: int, layout: _Layout, most: int) -> int:
    """How many records from `start` on have the same bytes in all columns of the structure."""
    size = layout.size
    for column in layout.columns:
        first = start + column
        found = data[first : first + (most - 1) * size + 1 : size]
        if found.count(found[0]) < len(found):
            most = len(found) - len(found.lstrip(found[:1]))
    return most


def _in_order(data: bytes, start: int, layout: _Layout, delta: int, most: int) -> int:
    """How many of the offset deltas count on from `delta`; 0 where one does not."""
    width = layout.key_at - layout.offset_at
    if width > 3 or not _DELTAS_BELOW[width - 1] <= delta < _DELTAS_BELOW[width]:
        return 0
    most = min(most, _DELTAS_BELOW[width] - delta)
    for place in range(width):
        first = start + layout.offset_at + place
        found = data[first : first + (most - 1) * layout.size + 1 : layout.size]
        if found != _digits(place, width, delta, most):
            return 0
    return most


def _digits(place: int, width: int, delta: int, count: int) -> bytes:
    """The byte at `place` (0: the lowest) of `count` offset deltas from `delta` on that take `width` bytes."""
    if place == 2:
        blocks = range(delta // _CYCLE, (delta + count - 1) // _CYCLE + 1)
        column = b"".join(bytes([block]) * _CYCLE for block in blocks)
    else:
        more = place + 1 < width
        cycle = (_LOW_MORE if more else _LOW) if place == 0 else (_MIDDLE_MORE if more else _MIDDLE)
        column = cycle * ((delta % _CYCLE + count - 1) // _CYCLE + 1)
    return column[delta % _CYCLE : delta % _CYCLE + count]


def _largest_timestamp(data: bytes, start: int, layout: _Layout, count: int) -> int | None:
    """The largest timestamp delta; None where they are too long to be compared by columns, or not ordered enough."""
    first, width = start + layout.timestamp_at, layout.offset_at - layout.timestamp_at
    columns = [data[at : at + (count - 1) * layout.size + 1 : layout.size] for at in range(first, first + width)]
    if not columns[-1].isascii():
        return None
    if width == 1:
        return _largest_delta(columns[0])
    low, high = columns[0], columns[1]
    if width > 2 or low.translate(None, _FOLLOWED) or low.translate(None, _EVEN):  # odd: before the first record
        return None
    top = _largest_byte(high)
    newest = high.find(top)
    if high.count(top) < count - newest:
        return None
    return (_largest_byte(low[newest:]) & 0x7F | top << 7) >> 1


def _largest_byte(column: bytes) -> int:
    """The largest of these bytes, all followed by another byte or none; the last one mostly is it."""
    last = column[-1]
    while larger := column.translate(None, _UP_TO[last & 0x7F]):
        last = larger[-1]
    return last


def _largest_delta(column: bytes) -> int:
    """The largest of these numbers of one byte each. Time goes on, so the last one is mostly it."""
    last = column[-1]
    while larger := column.translate(None, _NOT_LARGER[last]):
        last = larger[-1]
    return last >> 1 ^ -(last & 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most five bytes, and where it ends; IndexError where it does not."""
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    value = byte & 0x7F
    for i in range(1, 5):
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at + i + 1
    raise IndexError(at)
