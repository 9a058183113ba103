"""The splitter: whatever the pieces that arrive, its own pieces are the stream."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.proxy.stream import Splitter
from shareq.wire.errors import MalformedFrame

BODIES = st.lists(st.tuples(st.booleans(), st.binary(max_size=40)), max_size=8)


def frame(keep: bool, body: bytes) -> bytes:
    """A frame whose first byte after its size says whether it is to be kept whole."""
    content = bytes([keep, 0, 0, 0]) + body
    return struct.pack(">i", len(content)) + content


@given(BODIES, st.lists(st.integers(1, 30), min_size=1))
def test_the_pieces_are_the_stream(bodies: list[tuple[bool, bytes]], sizes: list[int]) -> None:
    """BEHAVIOUR.md, 1.1: kept frames come whole, once; all other bytes come as they arrive."""
    stream = b"".join(frame(keep, body) for keep, body in bodies)
    splitter = Splitter(4, lambda head: bool(head[0]))
    out, whole, at, turn = b"", [], 0, 0
    while at < len(stream):
        part = stream[at : at + sizes[turn % len(sizes)]]
        at, turn = at + len(part), turn + 1
        for piece in splitter.feed(memoryview(part)):
            if piece.whole:
                whole.append(piece.data)
            out += (struct.pack(">i", len(piece.data)) if piece.whole else b"") + piece.data
    assert out == stream
    assert whole == [frame(keep, body)[4:] for keep, body in bodies if keep]


def test_a_passing_frame_is_not_kept_back() -> None:
    """BEHAVIOUR.md, 1.1: its bytes pass before the frame is complete."""
    splitter = Splitter(4, lambda _: False)
    begin = struct.pack(">i", 1000) + b"headbody"
    assert b"".join(piece.data for piece in splitter.feed(memoryview(begin))) == begin


@pytest.mark.parametrize("size", [-1, 0, 3])
def test_an_impossible_size_is_malformed(size: int) -> None:
    """BEHAVIOUR.md, 1.5."""
    with pytest.raises(MalformedFrame, match=f"frame size {size}"):
        list(Splitter(4, lambda _: True).feed(memoryview(struct.pack(">i", size) + b"abcd")))
