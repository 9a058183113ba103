"""Splits a stream into the bytes that pass as they arrive, and the frames that are read or rewritten. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from enum import Enum, auto
from typing import NamedTuple

from shareq.wire.errors import MalformedFrame

SIZE = struct.Struct(">i")
_SIZE_AND_KEY = struct.Struct(">ih")
Buffer = bytes | bytearray | memoryview

WHOLE_BYTES = 1 << 27
"""Larger frames pass as they arrive, unread."""


class Way(Enum):
    """What happens to a frame."""

    PASS = auto()
    """It passes as it arrives."""
    READ = auto()
    """It passes as it arrives, and is copied."""
    KEEP = auto()
    """It is kept until it is complete."""


class Piece(NamedTuple):
    """PASS: any part of the stream; a view of the fed bytes where possible. READ, KEEP: a whole frame, with its size
    before it. The bytes of a frame that is READ have passed before."""

    way: Way
    data: memoryview | bytearray


class Splitter:
    """`choose(head)` is called with the first `head` bytes of each frame after its size."""

    def __init__(self, head: int, choose: Callable[[Buffer], Way]) -> None:
        self._head_bytes = SIZE.size + head
        self._choose = choose
        self._head = bytearray()
        self._frame = bytearray()
        self._way = Way.PASS
        self._left = 0

    def feed(self, data: memoryview) -> Iterator[Piece]:
        """The pieces that are now complete; those that pass or are kept are the stream. MalformedFrame for an
        impossible size."""
        at = 0
        while at < len(data):
            end = self._end_of_whole(data, at)
            if not end:
                at = yield from self._part(data, at)
                continue
            if self._way is not Way.KEEP:
                yield Piece(Way.PASS, data[at:end])
            if self._way is not Way.PASS:
                yield Piece(self._way, bytearray(data[at:end]))
            at = end

    def passes(self, data: memoryview, api_key: int) -> bool:
        """True if none of these bytes, which are of requests, belongs to a frame of this API or has to wait for others:
        then all of them may pass before `feed` splits them."""
        if self._head or (self._left and self._way is Way.KEEP):
            return False
        at = self._left
        while at < len(data):
            if at + self._head_bytes > len(data):
                return False
            size, key = _SIZE_AND_KEY.unpack_from(data, at)
            if size < self._head_bytes - SIZE.size or key == api_key:
                return False
            at += SIZE.size + size
        return True

    def _end_of_whole(self, data: memoryview, at: int) -> int:
        """The end of the frame that begins here if all of it has arrived at once, as small ones do; else 0."""
        head_end = at + self._head_bytes
        if self._left or self._head or head_end > len(data):
            return 0
        end: int = at + SIZE.size + SIZE.unpack_from(data, at)[0]
        if not head_end <= end <= len(data):
            return 0
        self._way = self._choose(data[at + SIZE.size : head_end])
        return end

    def _part(self, data: memoryview, at: int) -> Generator[Piece, None, int]:
        """What has arrived of one frame; returns its end."""
        start = at
        if not self._left:
            carried = len(self._head)
            at = min(at + self._head_bytes - carried, len(data))
            self._head += data[start:at]
            if len(self._head) < self._head_bytes:
                return at
            head = self._begin()
            if carried:
                start = at
                if self._way is not Way.KEEP:
                    yield Piece(Way.PASS, head)
        at = self._body(data, at)
        if self._way is not Way.KEEP and at > start:
            yield Piece(Way.PASS, data[start:at])
        if self._way is not Way.PASS and not self._left:
            frame, self._frame = self._frame, bytearray()
            yield Piece(self._way, frame)
        return at

    def _begin(self) -> bytearray:
        """The head of a frame is complete."""
        head, self._head = self._head, bytearray()
        (size,) = SIZE.unpack_from(head)
        self._left = SIZE.size + size - len(head)
        if self._left < 0:
            raise MalformedFrame(f"frame size {size}: must be at least {len(head) - SIZE.size}")
        chosen = self._choose(head[SIZE.size :])
        self._way = chosen if size <= WHOLE_BYTES else Way.PASS
        if self._way is not Way.PASS:
            self._frame += head
        return head

    def _body(self, data: memoryview, at: int) -> int:
        """Take what there is of the frame, and return its end."""
        end = min(at + self._left, len(data))
        self._left -= end - at
        if self._way is not Way.PASS:
            self._frame += data[at:end]
        return end
