"""Messages and bytes: what we write is what kio writes, bit for bit, and what we read is what was written."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer

from shareq.model.messages.base import Request
from shareq.wire.apis import APIS
from shareq.wire.codec import reader, writer
from shareq.wire.codec.variants import VARIANTS, Variant
from shareq.wire.frames import (
    FrameReader,
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.wire.strategies import messages, twin


def every_message() -> list[Any]:
    """Each message of each version that we offer."""
    return [
        pytest.param(cls, api.key, version, id=f"{cls.__name__} v{version}")
        for api in APIS
        for version in range(api.min_version, api.max_version + 1)
        for cls in (api.request, api.response)
    ]


def entity_of(cls: type, api_key: int, version: int) -> Any:
    return (load_request_schema if issubclass(cls, Request) else load_response_schema)(api_key, version)


def as_it_is(message: Any) -> Any:
    return message


def through_kio(message: Any, entity: Any) -> bytes:
    with io.BytesIO() as out:
        entity_writer(entity)(out, twin(message, entity))
        return out.getvalue()


def written(cls: Any, api_key: int, version: int, message: Any) -> bytes:
    parts: list[bytes] = []
    writer(cls, api_key, version).write(parts.append, message)
    return b"".join(parts)


@pytest.mark.parametrize(("cls", "api_key", "version"), every_message())
@settings(max_examples=settings.default.max_examples // 3)
@given(data=st.data())
def test_same_bytes_as_kio(cls: Any, api_key: int, version: int, data: st.DataObject) -> None:
    entity = entity_of(cls, api_key, version)
    variant = VARIANTS.get((cls, version), Variant(cls))
    to_wire, from_wire = variant.to_wire or as_it_is, variant.from_wire or as_it_is
    message = from_wire(data.draw(messages(variant.cls, entity)))
    wire = to_wire(message)
    body = written(cls, api_key, version, message)
    assert body == through_kio(wire, entity)
    assert reader(cls, api_key, version).read(b"before" + body, 6) == (from_wire(wire), 6 + len(body))


@pytest.mark.parametrize(("cls", "api_key", "version"), every_message())
@settings(max_examples=settings.default.max_examples // 10)
@given(data=st.data())
def test_one_byte_at_a_time(cls: Any, api_key: int, version: int, data: st.DataObject) -> None:
    """With kio's header before it, the way it really comes: in pieces, unaligned with anything."""
    entity = entity_of(cls, api_key, version)
    variant = VARIANTS.get((cls, version), Variant(cls))
    message = (variant.from_wire or as_it_is)(data.draw(messages(variant.cls, entity)))
    body = written(cls, api_key, version, message)
    if issubclass(cls, Request):
        header = RequestHeader(api_key, version, 77, data.draw(st.none() | st.text(alphabet="aé", max_size=3)))
        framed = encode_request(message, version, header.correlation_id, header.client_id)
        frame = kio_header(entity, header) + body
        (received,) = [frame for byte in framed for frame in frames.feed(bytes([byte]))]
        assert decode_request(received) == (header, reader(cls, api_key, version).read(body, 0)[0])
    else:
        framed = encode_response(RequestHeader(api_key, version, 77), message)
        frame = kio_header(entity, RequestHeader(api_key, version, 77)) + body
    assert framed == struct.pack(">i", len(frame)) + frame
