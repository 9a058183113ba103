"""The splitter: whatever the pieces that arrive, its own pieces are the stream."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.proxy.stream import Splitter, Way
from shareq.wire.errors import MalformedFrame

WAYS = list(Way)
BODIES = st.lists(st.tuples(st.sampled_from(WAYS), st.binary(max_size=40)), max_size=8)


def frame(way: Way, body: bytes) -> bytes:
    """A frame whose first byte after its size is the number of its way."""
    content = bytes([WAYS.index(way), 0, 0, 0]) + body
    return struct.pack(">i", len(content)) + content


@given(BODIES, st.lists(st.integers(1, 200), min_size=1))
def test_the_pieces_are_the_stream(bodies: list[tuple[Way, bytes]], sizes: list[int]) -> None:
    """BEHAVIOUR.md, 1.1: kept frames come whole, all other bytes come as they arrive; frames that are read come whole,
    too, after their bytes."""
    stream = b"".join(frame(way, body) for way, body in bodies)
    splitter = Splitter(4, lambda head: WAYS[head[0]])
    out, at, turn = b"", 0, 0
    whole: list[tuple[Way, bytes]] = []
    while at < len(stream):
        part = stream[at : at + sizes[turn % len(sizes)]]
        at, turn = at + len(part), turn + 1
        for way, data in splitter.feed(memoryview(part)):
            if way is not Way.READ:
                out += data
            if way is not Way.PASS:
                whole.append((way, bytes(data)))
                assert way is Way.KEEP or out.endswith(data)
    assert out == stream
    assert whole == [(way, frame(way, body)) for way, body in bodies if way is not Way.PASS]


@pytest.mark.parametrize("way", [Way.PASS, Way.READ])
def test_a_passing_frame_is_not_kept_back(way: Way) -> None:
    """BEHAVIOUR.md, 1.1: its bytes pass before the frame is complete; in one piece, without a copy."""
    splitter = Splitter(4, lambda _: way)
    begin = memoryview(struct.pack(">i", 1000) + b"headbody")
    (piece,) = splitter.feed(begin)
    assert isinstance(piece.data, memoryview)
    assert piece.data.obj is begin.obj
    assert piece == (Way.PASS, begin)


@pytest.mark.parametrize("size", [-1, 0, 3])
def test_an_impossible_size_is_malformed(size: int) -> None:
    """BEHAVIOUR.md, 1.5."""
    with pytest.raises(MalformedFrame, match=f"frame size {size}"):
        list(Splitter(4, lambda _: Way.KEEP).feed(memoryview(struct.pack(">i", size) + b"abcd")))


@pytest.mark.parametrize(
    ("arrived", "data", "badly"),
    [
        (b"", b"\0\0\0\3", True),
        (b"", b"\0\0\0\4", False),
        (b"", b"\0\0\0", False),
        (b"\0", b"\0\0\0\3", False),
        (b"\0\0\0\x09head", b"\0\0\0\3", False),
    ],
)
def test_an_impossible_size_is_seen_where_a_frame_begins(arrived: bytes, data: bytes, badly: bool) -> None:
    """BEHAVIOUR.md, 1.5."""
    splitter = Splitter(4, lambda _: Way.PASS)
    list(splitter.feed(memoryview(arrived)))
    assert splitter.begins_badly(memoryview(data)) is badly
