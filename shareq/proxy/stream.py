"""Splits a stream of frames into pieces: frames that are kept whole, and bytes that pass as they arrive. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from shareq.wire.errors import MalformedFrame

_SIZE = struct.Struct(">i")
WHOLE_BYTES = 1 << 27
"""Larger frames pass as they arrive, unread."""


class Piece(NamedTuple):
    """`whole`: the bytes are one frame without its size, else any part of the stream."""

    whole: bool
    data: bytes


class Splitter:
    """`choose(head)` is called with the first `head` bytes of each frame after its size: True keeps the frame whole."""

    def __init__(self, head: int, choose: Callable[[bytes], bool]) -> None:
        self._head = _SIZE.size + head
        self._choose = choose
        self._held = bytearray()
        self._collecting = 0
        self._passing = 0

    def feed(self, data: memoryview) -> Iterator[Piece]:
        """The pieces that are now complete; together they are the stream. MalformedFrame for an impossible size."""
        at = 0
        while at < len(data):
            if self._passing:
                part = data[at : at + self._passing]
                self._passing -= len(part)
                at += len(part)
                yield Piece(False, bytes(part))
                continue
            part = data[at : at + (self._collecting or self._head) - len(self._held)]
            self._held += part
            at += len(part)
            if self._collecting and len(self._held) == self._collecting:
                yield self._take(whole=True)
            elif not self._collecting and len(self._held) == self._head:
                yield from self._begin()

    def _begin(self) -> Iterator[Piece]:
        """The head of a frame is complete."""
        (size,) = _SIZE.unpack_from(self._held)
        if size < self._head - _SIZE.size:
            raise MalformedFrame(f"frame size {size}: must be at least {self._head - _SIZE.size}")
        if self._choose(bytes(self._held[_SIZE.size :])) and size <= WHOLE_BYTES:
            self._collecting = _SIZE.size + size
            if len(self._held) == self._collecting:
                yield self._take(whole=True)
        else:
            self._passing = _SIZE.size + size - len(self._held)
            yield self._take(whole=False)

    def _take(self, *, whole: bool) -> Piece:
        data = bytes(self._held[_SIZE.size :] if whole else self._held)
        self._held.clear()
        self._collecting = 0
        return Piece(whole, data)
