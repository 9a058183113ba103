"""The codec: encoded bytes equal kio's bytes, and decoding returns the encoded message."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer
from kio.static.protocol import Payload

from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.base import Request
from shareq.wire.apis import APIS, EXPERIMENTS, TAP
from shareq.wire.codec import reader, writer
from shareq.wire.codec.schema import schema
from shareq.wire.codec.variant import Variant
from shareq.wire.codec.variants import VARIANTS
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import (
    FrameReader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.budgets import cases
from tests.wire.strategies import element_of, hints_of, inner, messages, our_name, twin

EVERY_MESSAGE = [
    pytest.param(cls, api.key, version, id=f"{cls.__name__} v{version}")
    for api in APIS + EXPERIMENTS + TAP
    for version in range(api.min_version, api.max_version + 1)
    for cls in (api.request, api.response)
]

LEFT_OUT = {
    "ApiVersionsResponse": {"zk_migration_ready"},  # Kafka 4 has no ZooKeeper
    "DescribeLogDirsResponse.Result": {"is_cordoned"},
    "FetchRequest": {"cluster_id", "replica_id", "replica_state"},  # used by replicas only
    "FetchRequest.Partition": {"high_watermark", "log_start_offset", "replica_directory_id"},
    "FetchResponse.Partition": {"diverging_epoch", "preferred_read_replica", "snapshot_id"},  # for replicas and racks
    "ListOffsetsRequest": {"replica_id", "timeout"},
    "OffsetForLeaderEpochRequest": {"replica_id"},
}
"""Fields of Kafka's schema that shareq's messages leave out, besides `throttle_time`, which the server writes."""

BETWEEN_BROKERS = {
    "ReadShareGroupStateResponse.Partition": {"staged_batches"},
    "WriteShareGroupStateRequest.Partition": {"producer_id", "producer_epoch"},
}
"""Fields of an experiment: between the brokers of one process."""

reader_of, writer_of = cache(reader), cache(writer)
"""Compiled once for all examples: compiling takes longer than an example."""


def entity_of(cls: type, api_key: int, version: int) -> Any:
    return schema(api_key, version, request=issubclass(cls, Request))


def variant_of(cls: type, version: int) -> Variant:
    return VARIANTS.get((cls, version), Variant(cls))


def kio_bytes(entity: Payload) -> bytes:
    with io.BytesIO() as out:
        entity_writer(type(entity))(out, entity)
        return out.getvalue()


def written(cls: Any, api_key: int, version: int, message: Any) -> bytes:
    parts: list[bytes] = []
    writer_of(cls, api_key, version).write(parts.append, message)
    return b"".join(parts)


@pytest.mark.parametrize(("cls", "api_key", "version"), EVERY_MESSAGE)
@settings(max_examples=cases(2, 25))
@given(data=st.data())
def test_encoded_bytes_are_those_of_kio(cls: Any, api_key: int, version: int, data: st.DataObject) -> None:
    """The frame has a header as kio writes it."""
    entity, variant = entity_of(cls, api_key, version), variant_of(cls, version)
    message = data.draw(messages(variant.cls, entity))
    if variant.from_wire:
        message = variant.from_wire(message)
    wire = variant.to_wire(message) if variant.to_wire else message
    body = written(cls, api_key, version, message)
    assert body == kio_bytes(twin(wire, entity))
    expected = variant.from_wire(wire) if variant.from_wire else wire
    assert reader_of(cls, api_key, version).read(b"before" + body, 6) == (expected, 6 + len(body))
    header = RequestHeader(api_key, version, 77, data.draw(st.none() | st.just("") | st.just("Zoë")))
    _assert_framed(header, entity, message, expected)


def _assert_framed(header: RequestHeader, entity: Any, message: Any, read: Any) -> None:
    api_key, version, is_request = header.api_key, header.api_version, isinstance(message, Request)
    if is_request:
        framed = encode_request(message, version, header.correlation_id, header.client_id)
        headed = kio_bytes(
            entity.__header_schema__(
                request_api_key=api_key, request_api_version=version, correlation_id=77, client_id=header.client_id
            )
        )
    else:
        framed = encode_response(RequestHeader(api_key, version, 77), message)
        headed = kio_bytes(entity.__header_schema__(correlation_id=77))
    (frame,) = FrameReader().feed(framed)
    assert frame.startswith(headed)
    if is_request:
        assert decode_request(frame) == (header, read)
    elif api_key != ApiVersionsRequest.API_KEY or getattr(read, "error_code", None) is not Errors.UNSUPPORTED_VERSION:
        assert decode_response(api_key, version, frame) == (77, read)  # this error is always encoded in version 0


def test_every_field_of_a_schema_is_read_or_listed_as_left_out() -> None:
    """Each field is used in some version or listed here, so a misspelt field fails."""
    ours, travelling = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    left_out = defaultdict[str, set[str]](set)

    def walk(cls: Any, entity: Any) -> None:
        name = getattr(cls, "__qualname__", str(cls))
        hints = hints_of(cls, entity)
        ours[name] |= hints.keys()
        for field in fields(entity):
            attribute = our_name(field, hints)
            theirs, *_ = element_of(field)
            if attribute is None:
                left_out[name].add(field.name)
                continue
            travelling[name].add(attribute)
            if is_dataclass(theirs):
                walk(inner(hints[attribute])[0], theirs)

    for api in APIS + EXPERIMENTS + TAP:
        for version in range(api.min_version, api.max_version + 1):
            for cls in (api.request, api.response):
                walk(variant_of(cls, version).cls, entity_of(cls, api.key, version))
    unthrottled = {name: names - {"throttle_time"} for name, names in left_out.items()}
    assert {name: names for name, names in unthrottled.items() if names} == LEFT_OUT
    assert {name: ours[name] - travelling[name] for name in ours if ours[name] - travelling[name]} == BETWEEN_BROKERS
