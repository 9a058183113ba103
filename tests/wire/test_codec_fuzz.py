"""For any bytes a reader returns a message or raises MalformedFrame."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shareq.wire.apis import APIS, EXPERIMENTS, TAP, Api
from shareq.wire.codec.schema import schema
from shareq.wire.codec.variant import Variant
from shareq.wire.codec.variants import VARIANTS
from shareq.wire.errors import MalformedFrame, RequestHeader, UnsupportedVersion
from shareq.wire.frames import decode_request, decode_response, encode_request, encode_response
from tests.budgets import cases
from tests.wire.strategies import messages

API_VERSIONS = [
    (api, version) for api in APIS + EXPERIMENTS + TAP for version in range(api.min_version, api.max_version + 1)
]
EXTREMES = (b"\0", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x80\0\0\0")


EXAMPLES = cases(50, 1_200)
"""Each with twenty mutations."""


def mutate(frame: bytes, rng: Random) -> bytes:
    """The frame with a few bytes changed, deleted, doubled or inserted."""
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(frame) + 1), rng.randint(1, 8)
        piece = rng.choice((rng.randbytes(size), rng.choice(EXTREMES), frame[at : at + size] * 2, b""))
        frame = frame[:at] + piece + frame[at + rng.choice((0, len(piece), size)) :]
    return frame


def drawn(data: st.DataObject, cls: Any, entity: Any, version: int) -> Any:
    variant = VARIANTS.get((cls, version), Variant(cls))
    message = data.draw(messages(variant.cls, entity))
    return variant.from_wire(message) if variant.from_wire else message


@settings(max_examples=EXAMPLES)
@given(api_version=st.sampled_from(API_VERSIONS), rng=st.randoms(use_true_random=False), data=st.data())
def test_mutated_requests_are_decoded_or_malformed(
    api_version: tuple[Api, int], rng: Random, data: st.DataObject
) -> None:
    api, version = api_version
    request = drawn(data, api.request, schema(api.key, version, request=True), version)
    frame = encode_request(request, version, 7, "me")[4:]
    for _ in range(20):
        try:
            header, read = decode_request(mutate(frame, rng))
        except (MalformedFrame, UnsupportedVersion):
            continue
        assert header.api_key == read.API_KEY


@settings(max_examples=EXAMPLES)
@given(api_version=st.sampled_from(API_VERSIONS), rng=st.randoms(use_true_random=False), data=st.data())
def test_mutated_responses_are_decoded_or_malformed(
    api_version: tuple[Api, int], rng: Random, data: st.DataObject
) -> None:
    api, version = api_version
    response = drawn(data, api.response, schema(api.key, version, request=False), version)
    frame = encode_response(RequestHeader(api.key, version, 7), response)[4:]
    for _ in range(20):
        try:
            _, read = decode_response(api.key, version, mutate(frame, rng))
        except MalformedFrame:
            continue
        assert type(read) is api.response


@given(api_version=st.sampled_from(API_VERSIONS), noise=st.binary(max_size=100))
def test_random_bytes_are_decoded_or_malformed(api_version: tuple[Api, int], noise: bytes) -> None:
    api, version = api_version
    head = api.key.to_bytes(2, "big") + version.to_bytes(2, "big")
    try:
        header, _ = decode_request(head + noise)
    except MalformedFrame:
        return
    assert (header.api_key, header.api_version) == (api.key, version)
