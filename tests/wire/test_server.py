"""A served cluster over TCP: requests, responses, and the effect of a connection on others.

Numbers in ids are sections of shareq/wire/BEHAVIOUR.md.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from shareq import Admin, Cluster
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.events import ShareSessionOpened
from shareq.model.ids import TopicId
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.data import ListOffsetsRequest, ProduceRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest
from shareq.model.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from shareq.wire.frames import FrameReader
from shareq.wire.request_log import ServedRequest
from shareq.wire.server import Server
from tests.polling import PATIENCE_S
from tests.wire.raw import Raw, topic_id

SOFTWARE = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")
EVERYTHING = MetadataRequest(topics=None)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two brokers on a virtual clock, which does not advance by itself."""
    with Cluster(brokers=2, seed=7) as made:
        made.create_topic("orders", 2)
        Admin({"bootstrap.servers": made.bootstrap_servers}).alter_share_group_offsets("g", {"orders": 0}).check()
        yield made


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Server]:
    with Server(cluster) as made:
        yield made
        assert list(made.failures) == []


@pytest.fixture
def raw(server: Server) -> Iterator[Raw]:
    with Raw(server.ports[0]) as made:
        yield made


def produce(cluster: Cluster, *values: bytes, topic: str = "orders", acks: int = -1) -> ProduceRequest:
    records: list[Any] = [(None, value, [], cluster.now_ms) for value in values]
    part = ProduceRequest.Partition(index=0, records=encode_batch(records))
    id_ = topic_id(cluster, topic) if topic in cluster.image.topics else TopicId("abcdefghijklmnopqrstuQ")
    return ProduceRequest(acks=acks, topics=(ProduceRequest.Topic(topic_id=id_, partitions=(part,)),))


def share_fetch(cluster: Cluster, epoch: int, member_id: str = "member", **fields: Any) -> ShareFetchRequest:
    part = ShareFetchRequest.Partition(partition_index=0)
    topic = ShareFetchRequest.Topic(topic_id=topic_id(cluster, "orders"), partitions=(part,))
    return ShareFetchRequest(
        group_id="g", member_id=member_id, share_session_epoch=epoch, topics=(topic,) if epoch == 0 else (), **fields
    )


# ---- ApiVersions -----------------------------------------------------------------------------------------------------


def test_telemetry_is_not_offered(raw: Raw) -> None:
    """BEHAVIOUR.md, 2.13. All ranges: tests/wire/test_versions.py."""
    assert not {71, 72} & {key.api_key for key in raw.ask(SOFTWARE).api_keys}


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        pytest.param(3, {"metadata.version"}, id="2.2 v3 leaves out features with minimum 0"),
        pytest.param(4, {"metadata.version", "transaction.version", "group.version", "share.version"}, id="2.2 v4"),
    ],
)
def test_supported_and_finalized_features(raw: Raw, version: int, supported: set[str]) -> None:
    answer = raw.ask(SOFTWARE, version)
    names = {feature.name for feature in answer.supported_features}
    assert names >= supported
    assert all(feature.min_version > 0 for feature in answer.supported_features) == (version == 3)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert levels["metadata.version"] == 33
    assert levels["transaction.version"] == levels["share.version"] == 2
    assert levels["group.version"] == 1
    assert answer.finalized_features_epoch >= 0


def test_finalized_features_follow_the_cluster(raw: Raw, server: Server) -> None:
    before = raw.ask(SOFTWARE, 4)
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        admin.update_features({"share.version": 0}, downgrade=True)
        after = raw.ask(SOFTWARE, 4)
        admin.update_features({"share.version": 2})
    assert {feature.name for feature in before.finalized_features} - {
        feature.name for feature in after.finalized_features
    } == {"share.version"}
    assert after.finalized_features_epoch > before.finalized_features_epoch


def test_an_unknown_version_of_api_versions_has_a_response_in_version_0(raw: Raw) -> None:
    """The bytes of the response. BEHAVIOUR.md, 2.2, rule 1."""
    raw.socket.sendall(struct.pack(">ihhih", 11, 18, 99, 4711, -1) + b"\x00")
    assert raw._exactly(20) == bytes.fromhex("00000010 00001267 0023 00000001 0012 0000 0005")
    assert raw.ask(SOFTWARE, 4).error_code is Errors.NONE


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        pytest.param("librdkafka", "2.16.1", Errors.NONE, id="a client's name"),
        pytest.param("apache-kafka-java", "4.3.0-rc.1", Errors.NONE, id="inner '-' and '.'"),
        pytest.param("x", "1", Errors.NONE, id="one character"),
        pytest.param("", "1", Errors.INVALID_REQUEST, id="no name"),
        pytest.param("raw", "", Errors.INVALID_REQUEST, id="no version"),
        pytest.param("-raw", "1", Errors.INVALID_REQUEST, id="- at the front"),
        pytest.param("raw.", "1", Errors.INVALID_REQUEST, id=". at the end"),
        pytest.param("raw", "1 2", Errors.INVALID_REQUEST, id="a space"),
        pytest.param("räw", "1", Errors.INVALID_REQUEST, id="a non-ASCII letter"),
    ],
)
def test_invalid_software_names_are_an_invalid_request(raw: Raw, name: str, version: str, error: Errors) -> None:
    request_ = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    answer = raw.ask(request_, 3)
    assert answer.error_code is error
    assert bool(answer.api_keys) == (error is Errors.NONE)
    assert raw.ask(request_, 2).error_code is Errors.NONE, "the name is not part of earlier versions"


# ---- frames ----------------------------------------------------------------------------------------------------------


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


METADATA_HEADER = struct.pack(">hhih", 3, 12, 1, 3) + b"raw" + b"\x00"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", 0), id="2.1 size 0"),
        pytest.param(struct.pack(">i", -5), id="2.1 negative size"),
        pytest.param(struct.pack(">i", 104857601), id="2.1 size above socket.request.max.bytes"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(framed(b"\x00\x03\x00"), id="2.1 short header"),
        pytest.param(framed(struct.pack(">hhih", 9999, 0, 1, -1)), id="2.1 unknown key"),
        pytest.param(framed(struct.pack(">hhih", -1, 0, 1, -1)), id="negative key"),
        pytest.param(framed(struct.pack(">hhih", 3, 99, 1, -1) + b"\x00"), id="2.1 unsupported version"),
        pytest.param(framed(struct.pack(">hhih", 71, 0, 1, -1) + bytes(20)), id="2.13 telemetry"),
        pytest.param(framed(METADATA_HEADER), id="2.1 no body"),
        pytest.param(framed(METADATA_HEADER + b"\xff\xff\xff\xff\x0f"), id="2.1 an array longer than the frame"),
        pytest.param(framed(b"\xff" * 64), id="only ones"),
        pytest.param(framed(bytes(64)), id="zeros: Produce in version 0"),
    ],
)
def test_a_malformed_frame_closes_the_connection(server: Server, data: bytes) -> None:
    with Raw(server.ports[0]) as bad, Raw(server.ports[0]) as good:
        bad.socket.sendall(data)
        assert bad.closed_by_server()
        assert good.ask(EVERYTHING).brokers


def test_socket_request_max_bytes_limits_a_frame() -> None:
    with Cluster(brokers=1, config={"socket.request.max.bytes": 60}) as small, Server(small) as server:
        with Raw(server.ports[0], client_id="x" * 30) as raw:
            assert raw.ask(EVERYTHING).brokers
        with Raw(server.ports[0], client_id="x" * 60) as raw:
            raw.send(EVERYTHING)
            assert raw.closed_by_server()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(METADATA_HEADER + b"\x00\x01\x00\x00" + b"trailing", id="2.1 trailing bytes"),
        pytest.param(struct.pack(">hhih", 3, 12, 1, -1) + b"\x00\x00\x01\x00\x00", id="2.1 null client id"),
        pytest.param(METADATA_HEADER + b"\x00\x01\x00\x01\x63\x02hi", id="2.1 unknown tagged field"),
    ],
)
def test_frames_that_kafka_accepts_are_accepted(raw: Raw, body: bytes) -> None:
    raw._sent[1] = (3, 12)
    raw.socket.sendall(framed(body))
    assert raw.receive()[1].brokers


def test_requests_that_arrive_one_byte_at_a_time_are_answered(raw: Raw) -> None:
    raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in raw.frame(SOFTWARE) + raw.frame(EVERYTHING):
        raw.socket.sendall(bytes([byte]))
    assert [raw.receive()[0], raw.receive()[0]] == [1, 2]


BAD_FRAMES = [
    pytest.param(framed(b"\x00\x03\x00"), id="undecodable"),
    pytest.param(b"\xff\xff\xff\xff" + framed(b"anything"), id="invalid size"),
]


@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_requests_before_a_bad_frame_are_answered(raw: Raw, bad: bytes) -> None:
    raw.socket.sendall(raw.frame(SOFTWARE) + raw.frame(EVERYTHING) + bad)
    assert [raw.receive()[0], raw.receive()[0]] == [1, 2]
    assert raw.closed_by_server()


@pytest.mark.parametrize("bad", BAD_FRAMES)
def test_a_bad_frame_closes_after_the_responses_before_it(
    cluster: Cluster, server: Server, raw: Raw, bad: bytes
) -> None:
    raw.socket.sendall(raw.frame(share_fetch(cluster, 0, max_wait_ms=60_000)) + raw.frame(EVERYTHING) + bad)
    with Raw(server.ports[0]) as other:
        while not cluster.journal.select(ShareSessionOpened):
            other.ask(EVERYTHING)
        assert raw.silent
        cluster.advance(60_000)
    assert [raw.receive()[0], raw.receive()[0]] == [1, 2]
    assert raw.closed_by_server()


def test_an_incomplete_frame_blocks_no_other_connection(cluster: Cluster, server: Server, raw: Raw) -> None:
    raw.socket.sendall(raw.frame(EVERYTHING)[:-3])
    with Raw(server.ports[0]) as other:
        assert other.ask(EVERYTHING).brokers
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.closed_by_server()
        assert other.ask(EVERYTHING).brokers


# ---- order -----------------------------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(raw: Raw) -> None:
    requests = [SOFTWARE, EVERYTHING, FindCoordinatorRequest(coordinator_keys=("g",)), EVERYTHING] * 50
    raw.socket.sendall(b"".join(raw.frame(request) for request in requests))
    assert [raw.receive()[0] for _ in requests] == list(range(1, len(requests) + 1))


def test_a_waiting_request_blocks_its_own_connection_only(cluster: Cluster, server: Server, raw: Raw) -> None:
    """BEHAVIOUR.md, 2.1, rule 3. On a virtual clock the request waits until the test advances it."""
    raw.send(share_fetch(cluster, 0, max_wait_ms=60_000))
    raw.send(EVERYTHING)
    with Raw(server.ports[0]) as other:
        while not cluster.journal.select(ShareSessionOpened):
            other.ask(EVERYTHING)
        assert raw.silent
        cluster.advance(59_999)
        assert other.ask(EVERYTHING).brokers
        assert raw.silent
        cluster.advance(1)
    assert [raw.receive()[0], raw.receive()[0]] == [1, 2]


def test_a_request_of_another_connection_answers_a_waiting_fetch(cluster: Cluster, server: Server, raw: Raw) -> None:
    raw.send(share_fetch(cluster, 0, max_wait_ms=60_000))
    with Raw(server.ports[0]) as other:
        made = other.ask(produce(cluster, b"a", b"b")).responses[0].partitions[0]
        assert (made.error_code, made.base_offset) == (Errors.NONE, 0)
    acquired = raw.receive()[1].responses[0].partitions[0].acquired_records
    assert [(one.first_offset, one.last_offset, one.delivery_count) for one in acquired] == [(0, 1, 1)]


@pytest.mark.parametrize(
    ("group_id", "partition", "error", "start_offsets"),
    [
        pytest.param("g", 1, Errors.NONE, [0], id="a partition of the group"),
        pytest.param("g", 2, Errors.NONE, [-1], id="a missing partition"),
        pytest.param("g", -1, Errors.NONE, [-1], id="a negative partition"),
        pytest.param("never", 0, Errors.NONE, [-1], id="an unknown group"),
        pytest.param("", 0, Errors.INVALID_GROUP_ID, [], id="no group id"),
    ],
)
def test_invalid_share_group_offset_requests_have_a_response(
    server: Server, group_id: str, partition: int, error: Errors, start_offsets: list[int]
) -> None:
    """Found by fuzzing: the persister refuses invalid keys, and the request had no response."""
    describe = DescribeShareGroupOffsetsRequest
    topic = describe.Topic(topic_name="orders", partitions=(partition,))
    with Raw(server.ports[0]) as raw:
        (found,) = raw.ask(FindCoordinatorRequest(coordinator_keys=(group_id or "g",))).coordinators
    with Raw(server.ports[found.node_id]) as raw:
        (group,) = raw.ask(describe(groups=(describe.Group(group_id=group_id, topics=(topic,)),))).groups
    assert group.error_code is error
    assert [p.start_offset for t in group.topics for p in t.partitions] == start_offsets


@pytest.mark.parametrize(
    ("version", "lags"), [pytest.param(0, [-1, -1], id="v0 has no lag"), pytest.param(1, [1, 0], id="v1")]
)
def test_share_group_offsets_are_described_in_both_versions(
    cluster: Cluster, server: Server, version: int, lags: list[int]
) -> None:
    """Version 0 is version 1 without the lag, which a client then takes as unknown."""
    describe = DescribeShareGroupOffsetsRequest
    with Raw(server.ports[cluster.image.topics["orders"].partitions[0].leader]) as raw:
        assert raw.ask(produce(cluster, b"a")).responses[0].partitions[0].error_code is Errors.NONE
        (found,) = raw.ask(FindCoordinatorRequest(coordinator_keys=("g",))).coordinators
    with Raw(server.ports[found.node_id]) as raw:
        (group,) = raw.ask(describe(groups=(describe.Group(group_id="g"),)), version).groups
    (topic,) = group.topics
    assert [(p.partition_index, p.start_offset) for p in topic.partitions] == [(0, 0), (1, 0)]
    assert [p.lag for p in topic.partitions] == lags


@pytest.mark.parametrize("count", [10_003, 2_147_483_647])
def test_too_many_new_partitions_in_a_request_are_refused_by_policy(cluster: Cluster, raw: Raw, count: int) -> None:
    """A frame of thirty bytes must not use up the memory: Kafka's limit is 10,000 partitions."""
    create, grow = CreateTopicsRequest, CreatePartitionsRequest
    (made,) = raw.ask(create(topics=(create.Topic(name="huge", num_partitions=count),))).topics
    (grown,) = raw.ask(grow(topics=(grow.Topic(name="orders", count=count),))).results
    assert (made.error_code, grown.error_code) == (Errors.POLICY_VIOLATION, Errors.POLICY_VIOLATION)
    halves = tuple(create.Topic(name=name, num_partitions=5_001) for name in ("half", "other-half"))
    assert {one.error_code for one in raw.ask(create(topics=halves)).topics} == {Errors.POLICY_VIOLATION}
    assert len(cluster.image.topics["orders"].partitions) == 2


# ---- acks=0 ----------------------------------------------------------------------------------------------------------


def test_produce_with_acks_0_has_no_response(cluster: Cluster, raw: Raw) -> None:
    raw.send(produce(cluster, b"a", acks=0))
    raw.send(EVERYTHING)
    assert raw.receive()[0] == 2
    assert cluster.log("orders", 0).log_end_offset == 1


def test_an_error_of_a_produce_with_acks_0_closes_the_connection(cluster: Cluster, raw: Raw) -> None:
    """BEHAVIOUR.md, 2.1, rule 4."""
    raw.send(produce(cluster, b"a", topic="nowhere", acks=0))
    assert raw.closed_by_server()


# ---- slow peers ------------------------------------------------------------------------------------------------------


def test_a_peer_that_does_not_read_is_not_read_from(server: Server) -> None:
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    slow.connect(("127.0.0.1", server.ports[0]))
    slow.setblocking(False)
    raw = Raw.__new__(Raw)
    raw.client_id, raw._sent, raw._ids = "slow" * 250, {}, 0
    pending = b"".join(raw.frame(EVERYTHING) for _ in range(1000))
    sent = 0
    while select.select([], [slow], [], 0.5)[1]:
        try:
            sent += slow.send(pending[sent % len(pending) :])
        except BlockingIOError:
            continue
    with Raw(server.ports[0]) as other:
        assert other.ask(EVERYTHING).brokers
    # `list`, because other connections open and close meanwhile.
    (connection,) = [c for c in list(server.connections) if c.name == raw.client_id]
    assert connection._kept_bytes < 3 << 20
    slow.setblocking(True)
    slow.settimeout(PATIENCE_S)
    requests, answers, frames = sent // (len(pending) // 1000), 0, FrameReader()
    while answers < requests:
        data = slow.recv(1 << 20)
        assert data, "the server closed the connection"
        answers += len(frames.feed(data))
    assert answers == requests
    slow.close()


# ---- idle connections ------------------------------------------------------------------------------------------------


def test_idle_connections_are_closed_by_the_cluster_clock(cluster: Cluster, server: Server) -> None:
    with Raw(server.ports[0]) as idle, Raw(server.ports[1]) as busy, Raw(server.ports[0]) as half:
        half.socket.sendall(b"\x00\x00")
        assert idle.ask(EVERYTHING).brokers
        assert busy.ask(EVERYTHING).brokers
        cluster.advance(599_000)
        assert busy.ask(EVERYTHING).brokers
        cluster.advance(1_001)
        assert idle.closed_by_server()
        assert busy.ask(EVERYTHING).brokers
        cluster.advance(600_001)
        assert half.closed_by_server()


def test_a_connection_with_an_open_request_is_not_idle(cluster: Cluster, server: Server, raw: Raw) -> None:
    raw.send(share_fetch(cluster, 0, max_wait_ms=3_600_000))
    with Raw(server.ports[1]) as other:
        while not cluster.journal.select(ShareSessionOpened):
            other.ask(EVERYTHING)
    with Raw(server.ports[0]) as idle:
        assert idle.ask(EVERYTHING).brokers
        cluster.advance(600_001)
        assert idle.closed_by_server(), "the check for idle connections has run"
    cluster.advance(3_600_000)
    assert raw.receive()[0] == 1


# ---- unhandled errors ------------------------------------------------------------------------------------------------


def fail(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_an_exception_of_a_handler_closes_its_connection_only(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(brokers=2, clock=clock) as cluster, Server(cluster) as server:
        monkeypatch.setattr(cluster._brokers[0], "receive", fail)
        with Raw(server.ports[0]) as unlucky, Raw(server.ports[1]) as other:
            unlucky.send(EVERYTHING)
            assert unlucky.closed_by_server()
            assert other.ask(EVERYTHING).brokers
        assert [type(failure) for failure in server.failures] == [ZeroDivisionError]


def test_a_timer_that_raises_does_not_end_a_served_wall_clock() -> None:
    with Cluster(brokers=1, clock="wall") as cluster, Server(cluster) as server, Raw(server.ports[0]) as raw:
        cluster.loop.enter(lambda: cluster.loop.at(cluster.now_ms, lambda: 1 // 0))
        assert cluster.wait(lambda: bool(server.failures), PATIENCE_S)
        assert raw.ask(EVERYTHING).brokers


# ---- request log -----------------------------------------------------------------------------------------------------


def test_the_observer_receives_every_request(cluster: Cluster) -> None:
    seen: list[ServedRequest] = []
    with Server(cluster, observer=seen.append) as server, Raw(server.ports[1], client_id="till") as raw:
        raw.ask(SOFTWARE)
        raw.ask(ListOffsetsRequest(topics=(_offsets_of("nowhere"),)))
        raw.socket.sendall(framed(struct.pack(">hhih", 9999, 0, 1, -1)))
        assert raw.closed_by_server()
    requests = [(one.broker_id, one.client_id, one.api, one.version, one.answer) for one in seen]
    assert requests == [
        (1, "till", "ApiVersions", 5, "ok"),
        (1, "till", "ListOffsets", 11, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    assert " -> 1 till ApiVersions v5 " in str(seen[0])


def _offsets_of(topic: str) -> ListOffsetsRequest.Topic:
    return ListOffsetsRequest.Topic(
        name=topic, partitions=(ListOffsetsRequest.Partition(partition_index=0, timestamp=-1),)
    )


def test_repr_and_html_of_a_server(server: Server, raw: Raw) -> None:
    assert raw.ask(EVERYTHING).brokers
    html = server._repr_html_()
    assert server.bootstrap_servers in html
    assert "<pre>" in html
    assert f"{server.bootstrap_servers}, inproc://" in repr(server)
    assert "1 connections" in repr(server)


def test_the_line_of_a_request_has_no_control_characters() -> None:
    """A client chooses its id; a terminal would obey it."""
    request = ServedRequest(0, "h:1", 0, "x\x1b[2J\r\n\u202e\u00e9", "Metadata", 13, 1, 2, "ok", 0.5)
    assert str(request) == r"00:00:00.000 h:1 -> 0 x\x1b[2J\r\n\u202e\u00e9 Metadata v13 1 B: ok, 2 B, 0.5 ms".replace(
        r"\u00e9", "\u00e9"
    )
