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


OWN = b"\0\7"
OTHER = b"\0\1"


def request(api_key: bytes, body: bytes = b"") -> bytes:
    content = api_key + b"\0\0" + body
    return struct.pack(">i", len(content)) + content


@pytest.mark.parametrize(
    ("arrived", "data", "passes"),
    [
        pytest.param(b"", request(OTHER), True, id="a request"),
        pytest.param(b"", request(OTHER, b"body") + request(OTHER), True, id="two requests"),
        pytest.param(b"", request(OTHER, b"body")[:-2], True, id="a part of a request"),
        pytest.param(b"", request(OWN), False, id="one of the API"),
        pytest.param(b"", request(OTHER) + request(OWN), False, id="one of the API behind another"),
        pytest.param(b"", request(OTHER) + request(OTHER)[:7], False, id="the begin of a head"),
        pytest.param(request(OTHER)[:3], request(OTHER)[3:], False, id="the rest of a head"),
        pytest.param(request(OTHER, b"1234")[:9], b"234", True, id="the rest of a request"),
        pytest.param(request(OTHER, b"1234")[:9], b"234" + request(OWN), False, id="the rest, and one of the API"),
        pytest.param(request(OWN, b"1234")[:9], b"23", False, id="a part of one of the API"),
        pytest.param(b"", b"\0\0\0\3" + OTHER + b"\0\0", False, id="an impossible size"),
    ],
)
def test_bytes_pass_before_they_are_split_if_none_is_of_the_api(arrived: bytes, data: bytes, passes: bool) -> None:
    """BEHAVIOUR.md, 1.1, 1.5 and 5.1."""
    splitter = Splitter(4, lambda head: Way.KEEP if head[:2] == OWN else Way.PASS)
    list(splitter.feed(memoryview(arrived)))
    assert splitter.passes(memoryview(data), OWN[1]) is passes


@given(
    st.lists(st.tuples(st.sampled_from([OWN, OTHER]), st.binary(max_size=30)), max_size=8),
    st.lists(st.integers(1, 60), min_size=1),
)
def test_what_passes_before_it_is_split_is_what_the_pieces_are(
    requests: list[tuple[bytes, bytes]], sizes: list[int]
) -> None:
    """Each byte of another API passes once, in order, whatever pieces arrive."""
    stream = b"".join(request(*one) for one in requests)
    splitter = Splitter(4, lambda head: Way.KEEP if head[:2] == OWN else Way.READ)
    out, kept, at, turn = b"", [], 0, 0
    while at < len(stream):
        part = memoryview(stream[at : at + sizes[turn % len(sizes)]])
        at, turn = at + len(part), turn + 1
        if whole := splitter.passes(part, OWN[1]):
            out += part
        for way, piece in splitter.feed(part):
            if way is Way.PASS and not whole:
                out += piece
            elif way is Way.KEEP:
                kept.append(bytes(piece))
    assert out == b"".join(request(*one) for one in requests if one[0] == OTHER)
    assert kept == [request(*one) for one in requests if one[0] == OWN]
