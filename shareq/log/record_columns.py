"""The largest timestamp of a batch without decoding its records one by one.

Neighbouring records of a batch mostly have the same size and differ only in their contents. Then the structural bytes
(lengths, attributes, header counts) form columns whose distance is the record size, and one slice compares a whole
column. This check is as strict as parsing every record: 500 records take 20 us. The codec decodes all other batches,
in 0.2 us a record. Source: Kafka's message format, "Record".
"""

from __future__ import annotations

from typing import NamedTuple

WORTH_A_LOOK = 32
"""Below this record count, decoding is faster."""

_MIN_RUN = 16
"""After the first two runs of equal records, the average run must be at least this long; else decoding is faster."""

_DELTAS_BELOW = (0, 1 << 6, 1 << 13, 1 << 20)
"""Non-negative numbers below these take one, two and three bytes, as zigzag varints."""

_MORE = 0x80
_CYCLE = 1 << 13
_LOW = bytes(range(0, 128, 2)) * 128
_MIDDLE = b"".join(bytes([byte]) * 64 for byte in range(128))
_LOW_MORE, _MIDDLE_MORE = (column.translate(bytes(i | _MORE for i in range(256))) for column in (_LOW, _MIDDLE))
"""The lowest and the second byte of the offset deltas 0..8191, after which they repeat; and the same with the
continuation bit."""

_FOLLOWED = bytes(range(_MORE, 256))
_EVEN = bytes(range(0, 256, 2))
_UP_TO = [bytes(range(byte + 1)) + bytes(range(_MORE, _MORE + byte + 1)) for byte in range(128)]
"""By 7-bit number: the bytes whose low seven bits are not larger, with and without the continuation bit."""

_BY_SIZE = bytes((*range(127, 0, -2), *range(0, 128, 2)))
"""All numbers of one byte, ascending: -64 to 63."""

_NOT_LARGER = [_BY_SIZE[: _BY_SIZE.index(value) + 1] for value in range(128)]
"""By one-byte number: the bytes of the numbers that are not larger."""


class _Layout(NamedTuple):
    """The layout of a record: its size, the columns of its structure, and the positions of its deltas and its key."""

    size: int
    columns: tuple[int, ...]
    timestamp_at: int
    offset_at: int
    key_at: int


def largest_timestamp_delta(data: bytes, at: int, count: int) -> int | None:
    """The largest timestamp delta of the `count` (> 0) records in `data` from `at` on; None if they must be decoded."""
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
    """The layout of the record at `start`; None if it is malformed or has headers."""
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
    """The number of records from `start` on whose structural bytes equal those of the first, at most `most`."""
    size = layout.size
    for column in layout.columns:
        first = start + column
        found = data[first : first + (most - 1) * size + 1 : size]
        if found.count(found[0]) < len(found):
            most = len(found) - len(found.lstrip(found[:1]))
    return most


def _in_order(data: bytes, start: int, layout: _Layout, delta: int, most: int) -> int:
    """The number of records, at most `most`, whose offset deltas count up from `delta`; 0 if one does not."""
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
    """The byte at `place` (0: the lowest) of `count` consecutive offset deltas from `delta` on, `width` bytes each."""
    if place == 2:
        blocks = range(delta // _CYCLE, (delta + count - 1) // _CYCLE + 1)
        column = b"".join(bytes([block]) * _CYCLE for block in blocks)
    else:
        more = place + 1 < width
        cycle = (_LOW_MORE if more else _LOW) if place == 0 else (_MIDDLE_MORE if more else _MIDDLE)
        column = cycle * ((delta % _CYCLE + count - 1) // _CYCLE + 1)
    return column[delta % _CYCLE : delta % _CYCLE + count]


def _largest_timestamp(data: bytes, start: int, layout: _Layout, count: int) -> int | None:
    """The largest timestamp delta; None if the deltas are too long or too unordered for a comparison by columns."""
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
    """The largest of these bytes, regardless of the continuation bit. Mostly it is the last one."""
    last = column[-1]
    while larger := column.translate(None, _UP_TO[last & 0x7F]):
        last = larger[-1]
    return last


def _largest_delta(column: bytes) -> int:
    """The largest of these one-byte numbers. Mostly it is the last one, since timestamps grow."""
    last = column[-1]
    while larger := column.translate(None, _NOT_LARGER[last]):
        last = larger[-1]
    return last >> 1 ^ -(last & 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most five bytes and its end. Raises IndexError if it is longer or cut off."""
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
