"""Cost of the codec for messages with records, in shareq and in kio.

kio encodes and decodes its entity; shareq encodes and decodes the whole frame, with its header, from and to its
message.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.log.batches import parse_batch
from shareq.log.records import encode_batch
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.wire.codec import writer
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import decode_request, decode_response, encode_request, encode_response
from tests.wire.strategies import twin

TOPIC_ID = TopicId("abcdefghijklmnopqrstuQ")
BATCH = parse_batch(encode_batch([(None, b"x" * 100, (), 1_700_000_000_000)] * 500))
SINGLE = parse_batch(encode_batch([(None, b"x" * 100, (), 1_700_000_000_000)]))
ACCEPTED = AcknowledgementBatch(first_offset=0, last_offset=499, acknowledge_types=(1,))


def produce(records: bytes) -> ProduceRequest:
    partition = ProduceRequest.Partition(index=0, records=records)
    return ProduceRequest(topics=(ProduceRequest.Topic(topic_id=TOPIC_ID, partitions=(partition,)),))


REQUESTS = [
    pytest.param(produce(BATCH.data), 13, id="Produce, 54 KB"),
    pytest.param(produce(SINGLE.data), 13, id="Produce, one record"),
    pytest.param(
        FetchRequest(
            topics=(
                FetchRequest.Topic(
                    topic_id=TOPIC_ID, partitions=(FetchRequest.Partition(partition=0, fetch_offset=7),)
                ),
            )
        ),
        16,
        id="Fetch",
    ),
    pytest.param(
        ShareFetchRequest(
            group_id="group",
            member_id=TOPIC_ID,
            share_session_epoch=3,
            topics=(
                ShareFetchRequest.Topic(
                    topic_id=TOPIC_ID,
                    partitions=(ShareFetchRequest.Partition(partition_index=0, acknowledgement_batches=(ACCEPTED,)),),
                ),
            ),
        ),
        1,
        id="ShareFetch with one acknowledgement batch",
    ),
    pytest.param(
        ShareAcknowledgeRequest(
            group_id="group",
            member_id=TOPIC_ID,
            share_session_epoch=3,
            topics=(
                ShareAcknowledgeRequest.Topic(
                    topic_id=TOPIC_ID,
                    partitions=(
                        ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=(ACCEPTED,)),
                    ),
                ),
            ),
        ),
        1,
        id="ShareAcknowledge",
    ),
]

RESPONSES = [
    pytest.param(
        0,
        13,
        ProduceResponse(
            responses=(
                ProduceResponse.Topic(
                    topic_id=TOPIC_ID, partitions=(ProduceResponse.Partition(index=0, base_offset=7),)
                ),
            )
        ),
        id="Produce",
    ),
    pytest.param(
        1,
        16,
        FetchResponse(
            responses=(
                FetchResponse.Topic(
                    topic_id=TOPIC_ID, partitions=(FetchResponse.Partition(partition_index=0, records=(BATCH,)),)
                ),
            )
        ),
        id="Fetch, 54 KB",
    ),
    pytest.param(
        78,
        1,
        ShareFetchResponse(
            acquisition_lock_timeout_ms=30000,
            responses=(
                ShareFetchResponse.Topic(
                    topic_id=TOPIC_ID,
                    partitions=(
                        ShareFetchResponse.Partition(
                            partition_index=0,
                            records=(BATCH,),
                            acquired_records=(AcquiredRecords(first_offset=0, last_offset=499, delivery_count=1),),
                        ),
                    ),
                ),
            ),
        ),
        id="ShareFetch, 54 KB",
    ),
    pytest.param(
        79,
        1,
        ShareAcknowledgeResponse(
            responses=(
                ShareAcknowledgeResponse.Topic(
                    topic_id=TOPIC_ID, partitions=(ShareAcknowledgeResponse.Partition(partition_index=0),)
                ),
            )
        ),
        id="ShareAcknowledge",
    ),
]

pytestmark = pytest.mark.bench


def written(message: Request | Response, api_key: int, version: int) -> bytes:
    parts: list[bytes] = []
    writer(type(message), api_key, version).write(parts.append, message)
    return b"".join(parts)


def kio_writes(entity: Any) -> Callable[[], bytes]:
    write = entity_writer(type(entity))

    def once() -> bytes:
        with io.BytesIO() as out:
            write(out, entity)
            return out.getvalue()

    return once


@pytest.mark.parametrize(("request_", "version"), REQUESTS)
class TestRequests:
    def test_read(self, benchmark: BenchmarkFixture, request_: Request, version: int) -> None:
        frame = encode_request(request_, version, 7, "rdkafka")[4:]
        assert benchmark(decode_request, frame)[1] == request_

    def test_read_by_kio(self, benchmark: BenchmarkFixture, request_: Request, version: int) -> None:
        entity = load_request_schema(request_.API_KEY, version)
        body = written(request_, request_.API_KEY, version)
        assert benchmark(entity_reader(entity), body, 0)[0] == twin(request_, entity)

    def test_write(self, benchmark: BenchmarkFixture, request_: Request, version: int) -> None:
        frame = benchmark(encode_request, request_, version, 7, "rdkafka")
        assert decode_request(frame[4:])[1] == request_

    def test_write_by_kio(self, benchmark: BenchmarkFixture, request_: Request, version: int) -> None:
        entity = twin(request_, load_request_schema(request_.API_KEY, version))
        assert benchmark(kio_writes(entity)) == written(request_, request_.API_KEY, version)


@pytest.mark.parametrize(("api_key", "version", "response"), RESPONSES)
class TestResponses:
    def test_write(self, benchmark: BenchmarkFixture, api_key: int, version: int, response: Response) -> None:
        frame = benchmark(encode_response, RequestHeader(api_key, version, 7), response)
        assert decode_response(api_key, version, frame[4:]) == (7, response)

    def test_write_by_kio(self, benchmark: BenchmarkFixture, api_key: int, version: int, response: Response) -> None:
        entity = twin(response, load_response_schema(api_key, version))
        assert benchmark(kio_writes(entity)) == written(response, api_key, version)

    def test_read(self, benchmark: BenchmarkFixture, api_key: int, version: int, response: Response) -> None:
        frame = encode_response(RequestHeader(api_key, version, 7), response)[4:]
        assert benchmark(decode_response, api_key, version, frame) == (7, response)

    def test_read_by_kio(self, benchmark: BenchmarkFixture, api_key: int, version: int, response: Response) -> None:
        entity = load_response_schema(api_key, version)
        body = written(response, api_key, version)
        assert benchmark(entity_reader(entity), body, 0)[0] == twin(response, entity)
