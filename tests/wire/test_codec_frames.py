"""Frames and headers: recorded bytes, versions, malformed bytes, streams of frames."""

from __future__ import annotations

import re
import struct
import sys
import tracemalloc
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.extras import install_command
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Request
from shareq.model.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    SyncGroupResponse,
)
from shareq.model.messages.cluster import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import UNKNOWN_LEADER, FetchResponse
from shareq.model.messages.passed import PassedRequest, PassedResponse
from shareq.model.messages.share_fetch import (
    LeaderIdAndEpoch,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.model.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
)
from shareq.model.states import AcquireMode
from shareq.wire.apis import API_BY_KEY, APIS
from shareq.wire.errors import MalformedFrame, RequestHeader, UnsupportedVersion
from shareq.wire.frames import (
    FrameReader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    passed_response,
    response_pieces,
)
from tests.wire.strategies import BATCHES

TOPIC_ID = TopicId("abcdefghijklmnopqrstuQ")
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id=None)
SHARE_FETCH = ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0)


def body_of(frame: bytes) -> bytes:
    """The frame without its size field."""
    return frame[4:]


# ---- golden bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "version", "expected"),
    [
        pytest.param(ApiVersionsRequest(), 0, "0012 0000 00000007 0002 6d65", id="header v1, empty body"),
        pytest.param(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"),
            3,
            "0012 0003 00000007 0002 6d65 00 02 61 02 31 00",
            id="header v2: a tag byte after the client id",
        ),
        pytest.param(
            HEARTBEAT, 3, "000c 0003 00000007 0002 6d65 0001 67 00000003 0001 6d ffff", id="legacy strings, null: -1"
        ),
        pytest.param(
            HEARTBEAT, 4, "000c 0004 00000007 0002 6d65 00 02 67 00000003 02 6d 00 00", id="compact strings, null: 0"
        ),
        pytest.param(
            MetadataRequest(topics=None), 12, "0003 000c 00000007 0002 6d65 00 00 00 00 00", id="topics null: all"
        ),
        pytest.param(
            MetadataRequest(topics=()), 12, "0003 000c 00000007 0002 6d65 00 01 00 00 00", id="topics empty: none"
        ),
    ],
)
def test_requests_have_the_recorded_bytes(request_: Request, version: int, expected: str) -> None:
    frame = encode_request(request_, version, 7, "me")
    assert body_of(frame) == bytes.fromhex(expected)
    assert decode_request(body_of(frame)) == (RequestHeader(request_.API_KEY, version, 7, "me"), request_)


@pytest.mark.parametrize(
    ("api_key", "version", "response", "expected"),
    [
        pytest.param(
            18,
            0,
            ApiVersionsResponse(
                error_code=Errors.UNSUPPORTED_VERSION,
                api_keys=(ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4),),
            ),
            "0023 00000001 0012 0000 0004",
            id="ApiVersions v0: 2.2, the response to an unsupported version",
        ),
        pytest.param(18, 3, ApiVersionsResponse(), "0000 01 00000000 00", id="ApiVersions v3: no tags in its header"),
        pytest.param(12, 3, HeartbeatResponse(), "00000000 0000", id="inflexible: throttle time, error code"),
        pytest.param(12, 4, HeartbeatResponse(), "00 00000000 0000 00", id="flexible: a tag byte before and after"),
        pytest.param(
            78,
            1,
            ShareFetchResponse(
                responses=(
                    ShareFetchResponse.Topic(
                        topic_id=ZERO_TOPIC_ID, partitions=(ShareFetchResponse.Partition(partition_index=1),)
                    ),
                )
            ),
            "00 00000000 0000 00 00000000 02"
            + "00" * 16
            + "02 00000001 0000 00 0000 00 00000000 00000000 00 01 01 00 00 01 00",
            id="ShareFetch: no records are empty, not null",
        ),
    ],
)
def test_responses_have_the_recorded_bytes(api_key: int, version: int, response: Any, expected: str) -> None:
    frame = encode_response(RequestHeader(api_key, version, 7), response)
    assert body_of(frame) == bytes.fromhex("00000007" + expected)
    assert decode_response(api_key, version, body_of(frame)) == (7, response)


def test_a_tagged_field_that_has_its_default_is_not_written() -> None:
    def frame(leader: LeaderIdAndEpoch) -> bytes:
        partition = FetchResponse.Partition(partition_index=0, current_leader=leader)
        topic = FetchResponse.Topic(topic_id=TOPIC_ID, partitions=(partition,))
        return encode_response(RequestHeader(1, 16, 7), FetchResponse(responses=(topic,)))

    assert frame(LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)) == frame(UNKNOWN_LEADER)
    assert len(frame(LeaderIdAndEpoch(leader_id=-1, leader_epoch=0))) == len(frame(UNKNOWN_LEADER)) + 2 + 9


# ---- versions --------------------------------------------------------------------------------------------------------


def test_the_api_table_is_sorted_without_duplicates() -> None:
    keys = [api.key for api in APIS]
    assert all(a < b for a, b in pairwise(keys))
    assert [api for api in APIS if not 0 <= api.min_version <= api.max_version] == []
    assert API_BY_KEY[78].name == "ShareFetch"


@pytest.mark.parametrize("version", [-1, 6, 32767])
def test_api_versions_of_a_newer_client_is_decoded(version: int) -> None:
    """The response is in version 0, which the client decodes whatever version it requested."""
    frame = struct.pack(">hhihB", 18, version, 7, -1, 0) + b"any other bytes"
    header, request = decode_request(frame)
    assert (header, request) == (RequestHeader(18, version, 7, None), ApiVersionsRequest())
    refusal = ApiVersionsResponse(
        error_code=Errors.UNSUPPORTED_VERSION,
        api_keys=(ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4),),
    )
    response_frame = body_of(encode_response(header, refusal))
    assert response_frame == bytes.fromhex("00000007 0023 00000001 0012 0000 0004")
    assert decode_response(18, 4, response_frame) == (7, refusal)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        pytest.param(78, 0, id="below the lowest"),
        pytest.param(78, 3, id="above the highest"),
        pytest.param(4, 0, id="an API between brokers only"),
        pytest.param(-1, 0, id="negative API key"),
    ],
)
def test_apis_and_versions_outside_the_table_are_unsupported(api_key: int, version: int) -> None:
    header = RequestHeader(api_key, version, 7, "me")
    with pytest.raises(UnsupportedVersion) as refused:
        decode_request(struct.pack(">hhih", api_key, version, 7, 2) + b"me")
    assert refused.value.header == header
    with pytest.raises(UnsupportedVersion, match="is not supported"):
        decode_response(api_key, version, bytes(100))


def test_an_unsupported_version_is_not_encoded() -> None:
    with pytest.raises(UnsupportedVersion, match="ShareFetchRequest version 3"):
        encode_request(SHARE_FETCH, 3, 7, "me")


@pytest.mark.parametrize(
    ("request_", "version", "reason"),
    [
        pytest.param(
            ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=1, is_renew_ack=True),
            1,
            "is_renew_ack",
            id="lock renewal before version 2",
        ),
        pytest.param(
            ShareFetchRequest(
                group_id="g", member_id="m", share_session_epoch=1, share_acquire_mode=AcquireMode.RECORD_LIMIT
            ),
            1,
            "share_acquire_mode",
            id="record limit before version 2",
        ),
        pytest.param(
            ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, is_renew_ack=True),
            1,
            "is_renew_ack",
            id="renewing acknowledgement before version 2",
        ),
        pytest.param(
            DescribeConfigsRequest(resources=(), include_documentation=True),
            2,
            "include_documentation",
            id="documentation of configurations before version 3",
        ),
        pytest.param(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_regex=".*"),
            0,
            "subscribed_topic_regex",
            id="regular expression before version 1",
        ),
        pytest.param(
            LeaveGroupRequest(group_id="g", members=(LeaveGroupRequest.MemberIdentity(member_id="m"),)),
            2,
            "members",
            id="several members leave before version 3",
        ),
        pytest.param(
            FindCoordinatorRequest(coordinator_keys=("a", "b")), 3, "one coordinator", id="two keys before version 4"
        ),
        pytest.param(
            DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(topic_id=TOPIC_ID),)),
            5,
            "by name",
            id="deletion by id before version 6",
        ),
    ],
)
def test_a_field_that_a_version_lacks_cannot_be_encoded(request_: Request, version: int, reason: str) -> None:
    newest = API_BY_KEY[request_.API_KEY].max_version
    frame = encode_request(request_, newest, 7, None)
    assert decode_request(body_of(frame)) == (RequestHeader(request_.API_KEY, newest, 7, None), request_)
    with pytest.raises(UnsupportedVersion, match=reason):
        encode_request(request_, version, 7, None)


@pytest.mark.parametrize(
    ("request_", "version", "reason"),
    [
        pytest.param(
            MetadataRequest(include_cluster_authorized_operations=True),
            11,
            "include_cluster",
            id="cluster operations since DescribeCluster",
        ),
        pytest.param(LeaveGroupRequest(group_id="g", member_id="m"), 3, "member_id", id="one member since version 3"),
    ],
)
def test_a_field_that_newer_versions_removed_cannot_be_encoded(request_: Request, version: int, reason: str) -> None:
    frame = encode_request(request_, version - 1, 7, None)
    assert decode_request(body_of(frame)) == (RequestHeader(request_.API_KEY, version - 1, 7, None), request_)
    with pytest.raises(UnsupportedVersion, match=reason):
        encode_request(request_, version, 7, None)


def test_a_response_that_a_version_lacks_cannot_be_encoded() -> None:
    unknown = MetadataResponse.Topic(name=None, topic_id=TOPIC_ID, error_code=Errors.UNKNOWN_TOPIC_ID)
    response = MetadataResponse(brokers=(), cluster_id="c", controller_id=0, topics=(unknown,))
    assert decode_response(3, 12, body_of(encode_response(RequestHeader(3, 12, 7), response))) == (7, response)
    with pytest.raises(UnsupportedVersion, match="name must not be null"):
        encode_response(RequestHeader(3, 11, 7), response)


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_produce_topics_have_a_name_before_version_13_and_an_id_from_it_on(version: int) -> None:
    partition = ProduceRequest.Partition(index=0, records=b"records")
    topic = ProduceRequest.Topic(name="t", topic_id=TOPIC_ID, partitions=(partition,))
    _, read = decode_request(body_of(encode_request(ProduceRequest(topics=(topic,)), version, 7, None)))
    by_id = ProduceRequest.Topic(topic_id=TOPIC_ID, partitions=(partition,))
    by_name = ProduceRequest.Topic(name="t", topic_id=ZERO_TOPIC_ID, partitions=(partition,))
    assert read == ProduceRequest(topics=(by_id if version >= 13 else by_name,))


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_find_coordinator_has_one_coordinator_in_every_version(version: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=("g",), key_type=1)
    assert decode_request(body_of(encode_request(request, version, 7, None)))[1] == request
    found = FindCoordinatorResponse.Coordinator(key="g", node_id=2, host="h", port=9)
    response = FindCoordinatorResponse(coordinators=(found,))
    _, read = decode_response(10, version, body_of(encode_response(RequestHeader(10, version, 7), response)))
    assert isinstance(read, FindCoordinatorResponse)
    assert [(c.node_id, c.host, c.port) for c in read.coordinators] == [(2, "h", 9)]
    assert [c.key for c in read.coordinators] == ["g" if version >= 4 else ""]


@pytest.mark.parametrize(("version", "shown"), [(3, ["share.version"]), (4, ["kraft.version", "share.version"])])
def test_features_with_minimum_0_are_encoded_since_version_4(version: int, shown: list[str]) -> None:
    feature = ApiVersionsResponse.SupportedFeatureKey
    response = ApiVersionsResponse(
        supported_features=(
            feature(name="kraft.version", min_version=0, max_version=1),
            feature(name="share.version", min_version=1, max_version=1),
        )
    )
    _, read = decode_response(18, version, body_of(encode_response(RequestHeader(18, version, 7), response)))
    assert isinstance(read, ApiVersionsResponse)
    assert [feature.name for feature in read.supported_features] == shown


# ---- deviations that a reader accepts --------------------------------------------------------------------------------


def test_text_that_is_not_utf8_is_read_as_in_java() -> None:
    """Clients in C, Go and .NET may send any bytes as a group id or client id."""
    group, client = "gé", "clé"
    frame = body_of(
        encode_request(ShareGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=0), 1, 7, client)
    )
    header, request = decode_request(frame.replace("é".encode(), b"\xff\xfe"))
    assert header.client_id == "cl\ufffd\ufffd"
    assert isinstance(request, ShareGroupHeartbeatRequest)
    assert request.group_id == "g\ufffd\ufffd"


def test_trailing_bytes_are_accepted() -> None:
    frame = body_of(encode_request(SHARE_FETCH, 2, 7, "me"))
    assert decode_request(frame + b"more") == decode_request(frame)


@pytest.mark.parametrize(
    "tags", [b"\x01\x63\x03abc", b"\x02\x63\x00\x64\x01x", b"\x01\xff\xff\xff\xff\x07\x01x"], ids=["one", "two", "high"]
)
def test_unknown_tagged_fields_are_accepted(tags: bytes) -> None:
    plain = body_of(encode_request(SHARE_FETCH, 2, 7, None))
    assert plain[10:11] == plain[-1:] == b"\0"
    tagged = plain[:10] + tags + plain[11:-1] + tags
    assert decode_request(tagged) == decode_request(plain)


def test_an_unknown_error_code_is_an_unknown_server_error() -> None:
    frame = struct.pack(">i", 7) + bytes(4) + struct.pack(">h", 9999)
    assert decode_response(12, 3, frame) == (7, HeartbeatResponse(error_code=Errors.UNKNOWN_SERVER_ERROR))


def test_null_records_are_none() -> None:
    partition = ShareFetchResponse.Partition(partition_index=0, records=BATCHES[:1])
    topic = ShareFetchResponse.Topic(topic_id=TOPIC_ID, partitions=(partition,))
    frame = body_of(encode_response(RequestHeader(78, 1, 7), ShareFetchResponse(responses=(topic,))))
    data = BATCHES[0].data
    assert frame.count(bytes([len(data) + 1]) + data) == 1
    _, read = decode_response(78, 1, frame.replace(bytes([len(data) + 1]) + data, b"\0"))
    assert isinstance(read, ShareFetchResponse)
    assert read.responses[0].partitions[0].records == ()


def test_a_truncated_batch_is_left_out() -> None:
    """A broker may truncate the last batch at its limit of bytes."""
    whole, cut = BATCHES[1], BATCHES[2].data[:-1]
    partition = FetchResponse.Partition(partition_index=0, records=(whole._replace(data=whole.data + cut),))
    response = FetchResponse(responses=(FetchResponse.Topic(topic_id=TOPIC_ID, partitions=(partition,)),))
    _, read = decode_response(1, 16, body_of(encode_response(RequestHeader(1, 16, 7), response)))
    assert isinstance(read, FetchResponse)
    assert read.responses[0].partitions[0].records == (whole,)


# ---- malformed frames ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="empty frame"),
        pytest.param("004e 0001 000000", id="a short header"),
        pytest.param("004e 0001 00000007 0009 6d65", id="a client id beyond the frame"),
        pytest.param("004e 0001 00000007 0002 ffff 00", id="a client id that is not UTF-8"),
        pytest.param("004c 0001 00000007 ffff 00 00 0000000000 00 00 00", id="null for the group id"),
        pytest.param("004e 0001 00000007 ffff 00 05 6d65", id="a string beyond the frame"),
        pytest.param("004e 0001 00000007 ffff ff", id="missing tags"),
        pytest.param("004e 0001 00000007 ffff 00 00 00" + "00" * 24 + "ffffffff0f", id="2^32 topics without bytes"),
        pytest.param("000b 0005 00000007 ffff 0000 00000000 00000000 0000 ffff 0000 7fffffff", id="2^31 protocols"),
        pytest.param("000c 0003 00000007 ffff 0001 67 00000003 0001 6d", id="a body that ends early"),
    ],
)
def test_a_malformed_request_raises_malformed_frame(body: str) -> None:
    with pytest.raises(MalformedFrame):
        decode_request(bytes.fromhex(body))


@pytest.mark.parametrize("size", [0, 8, 10, 100])
def test_a_tagged_field_of_the_wrong_size_is_malformed(size: int) -> None:
    leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    partition = FetchResponse.Partition(partition_index=0, current_leader=leader)
    response = FetchResponse(responses=(FetchResponse.Topic(topic_id=TOPIC_ID, partitions=(partition,)),))
    frame = body_of(encode_response(RequestHeader(1, 16, 7), response))
    assert decode_response(1, 16, frame) == (7, response)
    tag = bytes.fromhex("01 01 09 00000001 00000002 00")
    assert frame.count(tag) == 1
    with pytest.raises(MalformedFrame):
        decode_response(1, 16, frame.replace(tag, tag[:2] + bytes([size]) + tag[3:]))


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        pytest.param(
            ShareGroupHeartbeatRequest(
                group_id="g", member_id="m", member_epoch=1, rack_id="r", subscribed_topic_names=("a", "b")
            ),
            1,
            id="flexible, a tag byte at the end",
        ),
        pytest.param(
            HeartbeatRequest(group_id="g", generation_id=3, member_id="m", group_instance_id="the end"),
            3,
            id="inflexible, a string at the end",
        ),
    ],
)
def test_every_prefix_of_a_request_is_malformed(request_: Request, version: int) -> None:
    frame = body_of(encode_request(request_, version, 7, "me"))
    for end in range(len(frame)):
        with pytest.raises(MalformedFrame):
            decode_request(frame[:end])


def test_a_batch_with_an_unknown_magic_is_malformed() -> None:
    """The consumer checks the CRC; a batch with an unknown magic is refused here."""
    batch = BATCHES[1]
    old = batch._replace(data=batch.data[:16] + b"\x01" + batch.data[17:])
    partition = FetchResponse.Partition(partition_index=0, records=(old,))
    response = FetchResponse(responses=(FetchResponse.Topic(topic_id=TOPIC_ID, partitions=(partition,)),))
    with pytest.raises(MalformedFrame, match="magic is 1"):
        decode_response(1, 16, body_of(encode_response(RequestHeader(1, 16, 7), response)))


def test_a_varint_has_at_most_five_bytes() -> None:
    with pytest.raises(MalformedFrame, match="a varint of more than 5 bytes"):
        decode_request(bytes.fromhex("004e 0001 00000007 ffff 00 ffffffffff 01"))


def test_every_prefix_of_a_response_is_malformed() -> None:
    response = SyncGroupResponse(assignment=b"to the very end")
    frame = body_of(encode_response(RequestHeader(14, 3, 7), response))
    assert decode_response(14, 3, frame) == (7, response)
    for end in range(len(frame)):
        with pytest.raises(MalformedFrame):
            decode_response(14, 3, frame[:end])


# ---- a stream of frames ----------------------------------------------------------------------------------------------


def created(count: int, *, shared: bool) -> CreateTopicsResponse:
    """The response of topics with thirty configurations each, which are the same object or equal ones."""

    def configs() -> tuple[CreateTopicsResponse.Config, ...]:
        return tuple(CreateTopicsResponse.Config(name=f"config.{i}", value="1", config_source=5) for i in range(30))

    same = configs()
    made = CreateTopicsResponse.Topic
    topics = (made(name=f"topic-{i}", configs=same if shared else configs()) for i in range(count))
    return CreateTopicsResponse(topics=tuple(topics))


def test_what_many_elements_share_is_encoded_once() -> None:
    """Ten thousand new topics have the same configurations, and their response took a second."""
    header = RequestHeader(CreateTopicsRequest.API_KEY, 7, 1, None)
    pieces = response_pieces(header, created(1000, shared=True))
    assert b"".join(pieces) == b"".join(response_pieces(header, created(1000, shared=False)))
    assert len(pieces) < 15 * 1000


@pytest.mark.parametrize("order", ["aab", "aba", "abba", "aaba", "bbb"])
def test_an_array_is_encoded_where_it_stands(order: str) -> None:
    header = RequestHeader(CreateTopicsRequest.API_KEY, 7, 1, None)
    same: dict[str, CreateTopicsResponse.Topic] = {}
    equal: list[CreateTopicsResponse.Topic] = []
    for name in order:
        configs = (CreateTopicsResponse.Config(name=name, value="1"),)
        equal.append(CreateTopicsResponse.Topic(name="topic", configs=configs))
        same.setdefault(name, equal[-1])
    shared = CreateTopicsResponse(topics=tuple(same[name] for name in order))
    assert encode_response(header, shared) == encode_response(header, CreateTopicsResponse(topics=tuple(equal)))


@given(
    frames=st.lists(st.binary(min_size=1, max_size=20), max_size=6),
    cuts=st.sets(st.integers(0, 150)),
    rest=st.binary(max_size=3),
)
def test_frames_are_decoded_from_pieces_of_any_size(frames: list[bytes], cuts: set[int], rest: bytes) -> None:
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames) + rest
    bounds = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    reader = FrameReader()
    assert [frame for a, b in pairwise(bounds) for frame in reader.feed(stream[a:b])] == frames


@pytest.mark.parametrize(
    ("size", "allowed"),
    [
        pytest.param(-(1 << 31), False, id="the lowest"),
        pytest.param(-1, False, id="negative"),
        pytest.param(0, False, id="zero"),
        pytest.param(1, True, id="one byte"),
        pytest.param(100, True, id="the largest accepted"),
        pytest.param(101, False, id="one byte above it"),
        pytest.param((1 << 31) - 1, False, id="the highest"),
    ],
)
def test_a_frame_size_is_checked_before_the_frame_is_buffered(size: int, allowed: bool) -> None:
    reader = FrameReader(max_bytes=100)
    head = struct.pack(">i", size)
    assert reader.feed(head[:3]) == []
    if allowed:
        assert reader.feed(head[3:]) == []
        assert reader.feed(bytes(size)) == [bytes(size)]
        assert reader.failure is None
    else:
        assert reader.feed(head[3:]) == []
        assert str(reader.failure) == f"frame size {size}: must be 1..100"


@given(
    frames=st.lists(st.binary(min_size=1, max_size=20), max_size=12),
    rest=st.binary(max_size=3),
    most=st.integers(1, 5),
    cut=st.integers(0, 100),
)
def test_only_so_many_frames_are_split_at_once(frames: list[bytes], rest: bytes, most: int, cut: int) -> None:
    """The work of one `feed` is bounded however small the frames are; what is left waits as bytes."""
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames) + rest
    reader = FrameReader()
    found = [reader.feed(stream[:cut], most), reader.feed(stream[cut:], most)]
    while reader.unsplit_bytes:
        found.append(reader.feed(b"", most))
    assert [frame for some in found for frame in some] == frames
    assert max(map(len, found)) <= most


def test_bytes_after_the_end_do_not_wait_to_be_split() -> None:
    reader = FrameReader()
    assert (reader.feed(b"\0\0\0\1a" * 9, 3), reader.unsplit_bytes) == ([b"a"] * 3, 30)
    reader.end()
    assert (reader.unsplit_bytes, reader.feed(b"", 3)) == (0, [])


def test_frames_before_an_invalid_size_are_decoded() -> None:
    reader = FrameReader()
    assert reader.feed(b"\0\0\0\2ab\0\0\0\1c\0\0\0\0\0\0\0\1d") == [b"ab", b"c"]
    assert str(reader.failure) == "frame size 0: must be 1..104857600"
    assert reader.feed(b"\0\0\0\1e") == [], "after an invalid size no later frame can be found"


def test_an_announced_frame_size_allocates_no_memory() -> None:
    """Memory follows the received bytes, not the announced size."""
    reader = FrameReader()
    tracemalloc.start()
    try:
        assert reader.feed(struct.pack(">i", 100_000_000)) == []
        assert reader.feed(bytes(1000)) == []
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max(current, peak) < 20_000


def test_error_without_kio_has_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "kio"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kio", None)
    for name in ("newer_schemas", "schema"):
        monkeypatch.delitem(sys.modules, f"shareq.wire.codec.{name}")
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("kafka"))):
        import_module("shareq.wire.codec.schema")


# ---- APIs that are not in the table ---------------------------------------------------------------------------------

UNKNOWN_API = 88
FRAME = bytes.fromhex("0058 0003 00000007 0002 6d65 00 beef")


def test_a_request_of_an_unknown_api_passes_as_bytes_if_it_may() -> None:
    with pytest.raises(UnsupportedVersion, match="API 88 version 3"):
        decode_request(FRAME)
    header, read = decode_request(FRAME, {UNKNOWN_API})
    assert header == RequestHeader(UNKNOWN_API, 3, 7, "me")
    assert read == PassedRequest(api_key=UNKNOWN_API, api_version=3, frame=FRAME)
    sent = body_of(encode_request(read, 3, 1234, "another"))
    assert sent == FRAME[:4] + (1234).to_bytes(4, "big") + FRAME[8:]


def test_its_response_gets_the_correlation_id_of_the_client() -> None:
    correlation_id, response = passed_response(b"\0\0\x04\xd2" + b"body")
    assert (correlation_id, response) == (1234, PassedResponse(frame=b"\0\0\x04\xd2" + b"body"))
    assert body_of(encode_response(RequestHeader(UNKNOWN_API, 3, 7), response)) == b"\0\0\0\x07" + b"body"
    with pytest.raises(MalformedFrame, match="response of 3 bytes"):
        passed_response(b"\0\0\x04")


def test_a_known_api_never_passes_as_bytes() -> None:
    frame = body_of(encode_request(HEARTBEAT, 4, 7, "me"))
    assert decode_request(frame, {HEARTBEAT.API_KEY})[1] == HEARTBEAT
