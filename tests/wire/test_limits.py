"""No frame makes the server work for longer than its meaning deserves: strings, counts, tags and sizes are bounded."""

from __future__ import annotations

import struct

import pytest

from shareq.model.ids import TopicId
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataResponse
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareAcknowledgeRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.wire.apis import API_BY_KEY
from shareq.wire.codec.limits import MOST_BYTES_WITHOUT_RECORDS, MOST_ELEMENTS, USUAL_ELEMENTS
from shareq.wire.codec.primitives import MAX_STRING_BYTES, MAX_UNKNOWN_TAGS, write_uvarint
from shareq.wire.codec.reader_compiler import NUMBERS_PER_ELEMENT
from shareq.wire.errors import MalformedFrame, RequestHeader
from shareq.wire.frames import FrameReader, decode_request, decode_response, encode_request, encode_response

HEARTBEAT = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)


def body(request: object, version: int | None = None) -> bytes:
    """The frame of a request without its size, in the newest version."""
    key = request.API_KEY  # type: ignore[attr-defined]
    newest = API_BY_KEY[key].max_version if version is None else version
    return encode_request(request, newest, 7, None)[4:]  # type: ignore[arg-type]


def with_group(size: int) -> bytes:
    return body(ShareGroupHeartbeatRequest(group_id="g" * size, member_id="m", member_epoch=0))


def test_a_string_has_at_most_as_many_bytes_as_in_kafka() -> None:
    _, read = decode_request(with_group(MAX_STRING_BYTES))
    assert read.group_id == "g" * MAX_STRING_BYTES  # type: ignore[attr-defined]
    with pytest.raises(MalformedFrame, match="a string of 32768 bytes: must be at most 32767"):
        decode_request(with_group(MAX_STRING_BYTES + 1))


def tags(count: int) -> bytes:
    """Tagged fields that no version has, without contents."""
    return write_uvarint(count) + b"\x63\x00" * count


def test_a_header_has_few_tags() -> None:
    plain = body(HEARTBEAT)
    assert plain[10:11] == b"\0"
    few = plain[:10] + tags(MAX_UNKNOWN_TAGS) + plain[11:]
    assert decode_request(few) == decode_request(plain)
    with pytest.raises(MalformedFrame, match="more elements and tags"):
        decode_request(plain[:10] + tags(MAX_UNKNOWN_TAGS + 1) + plain[11:])


def test_tags_count_as_elements_and_are_not_stored() -> None:
    plain = body(HEARTBEAT)
    assert decode_request(plain[:-1] + tags(USUAL_ELEMENTS - 1)) == decode_request(plain)
    with pytest.raises(MalformedFrame, match="more elements and tags"):
        decode_request(plain[:-1] + tags(USUAL_ELEMENTS + 1))


def test_a_stated_number_of_tags_is_refused_before_they_are_looked_for() -> None:
    with pytest.raises(MalformedFrame, match="more elements and tags"):
        decode_request(body(HEARTBEAT)[:-1] + write_uvarint(20_000_000))


def test_the_elements_of_all_depths_are_counted_together() -> None:
    """A thousand topics of a hundred partitions are as many as a hundred thousand keys."""

    def acknowledging(topics: int, partitions: int) -> bytes:
        part = ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=())
        topic = ShareAcknowledgeRequest.Topic(topic_id=TopicId("A" * 22), partitions=(part,) * partitions)
        return body(
            ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=(topic,) * topics)
        )

    topics = USUAL_ELEMENTS // 100
    decode_request(acknowledging(topics, 99))
    with pytest.raises(MalformedFrame, match="more elements and tags"):
        decode_request(acknowledging(topics, 100))


def test_numbers_count_less_since_they_are_unpacked_together() -> None:
    def with_types(count: int) -> bytes:
        batch = AcknowledgementBatch(first_offset=0, last_offset=count - 1, acknowledge_types=(1,) * count)
        part = ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=(batch,))
        topic = ShareAcknowledgeRequest.Topic(topic_id=TopicId("A" * 22), partitions=(part,))
        return body(ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=(topic,)))

    decode_request(with_types((USUAL_ELEMENTS - 3) * NUMBERS_PER_ELEMENT))
    with pytest.raises(MalformedFrame, match="more elements and tags"):
        decode_request(with_types(USUAL_ELEMENTS * NUMBERS_PER_ELEMENT))


def test_a_request_for_coordinators_names_few_keys() -> None:
    most = MOST_ELEMENTS[FindCoordinatorRequest]
    decode_request(body(FindCoordinatorRequest(coordinator_keys=("k",) * most)))
    with pytest.raises(MalformedFrame, match="more elements and tags"):
        decode_request(body(FindCoordinatorRequest(coordinator_keys=("k",) * (most + 1))))


def test_a_response_may_describe_a_whole_cluster() -> None:
    topic = MetadataResponse.Topic(name="t", topic_id=TopicId("A" * 22))
    response = MetadataResponse(brokers=(), cluster_id="c", controller_id=0, topics=(topic,) * (USUAL_ELEMENTS + 1))
    frame = encode_response(RequestHeader(MetadataRequest.API_KEY, 12, 7), response)[4:]
    assert decode_response(MetadataRequest.API_KEY, 12, frame)[1] == response


# ---- the size of a frame ---------------------------------------------------------------------------------------------


def of(api_key: int, size: int) -> bytes:
    """The beginning of a frame."""
    return struct.pack(">ih", size, api_key)


@pytest.mark.parametrize("cut", [6, 4, 5, 1], ids="{} bytes first".format)
def test_a_request_without_records_is_refused_before_it_is_buffered(cut: int) -> None:
    reader = FrameReader(max_plain_bytes=MOST_BYTES_WITHOUT_RECORDS)
    frame = of(HEARTBEAT.API_KEY, MOST_BYTES_WITHOUT_RECORDS + 1)
    assert reader.feed(frame[:cut]) == []
    assert reader.feed(frame[cut:]) == []
    assert (
        str(reader.failure) == f"frame size {MOST_BYTES_WITHOUT_RECORDS + 1}: a request without records must be smaller"
    )


@pytest.mark.parametrize(
    ("api_key", "size"),
    [
        pytest.param(HEARTBEAT.API_KEY, MOST_BYTES_WITHOUT_RECORDS, id="the largest without records"),
        pytest.param(ProduceRequest.API_KEY, MOST_BYTES_WITHOUT_RECORDS + 1, id="a Produce may be larger"),
    ],
)
def test_requests_within_the_limits_are_read(api_key: int, size: int) -> None:
    reader = FrameReader(max_plain_bytes=MOST_BYTES_WITHOUT_RECORDS)
    head = of(api_key, size)
    assert reader.feed(head) == []
    (frame,) = reader.feed(bytes(size - 2))
    assert (len(frame), reader.failure) == (size, None)
