"""The client's connection against scripted brokers: versions, frames, failures, timeouts, close."""

from __future__ import annotations

import gc
import multiprocessing
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from shareq.model.actor import Answer, Call
from shareq.model.errors import ClientFailedException, Errors, KafkaError, KafkaException
from shareq.model.ids import TopicId
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
)
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.offsets import OffsetCommitRequest
from shareq.model.messages.share_fetch import (
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from shareq.model.messages.topics import CreateTopicsRequest
from shareq.model.messages.transactions import EndTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest
from shareq.wire.client import broker_connection, client_host, io_thread
from shareq.wire.client.frame_socket import connect
from shareq.wire.client.socket_settings import SocketSettings
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import encode_response
from tests.polling import PATIENCE_S
from tests.wire.scripted import METADATA, Client, Peer, Received, ScriptedBroker, versions

METADATA_NOW = MetadataRequest()
FETCH = ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0)
HEARTBEAT = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
WRITE = ProduceRequest(topics=())
TRANSACTIONAL_WRITE = ProduceRequest(transactional_id="x", topics=())
END = EndTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, committed=True)


def offsets(topic: OffsetCommitRequest.Topic) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(transactional_id="x", group_id="g", producer_id=1, producer_epoch=0, topics=(topic,))


OFFSETS_BY_NAME = offsets(OffsetCommitRequest.Topic(name="t", partitions=()))
OFFSETS_BY_ID = offsets(OffsetCommitRequest.Topic(topic_id=TopicId("B" * 22), partitions=()))


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as scripted:
        yield scripted


@pytest.fixture
def other() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as scripted:
        yield scripted


@pytest.fixture
def client(broker: ScriptedBroker) -> Iterator[Client]:
    with Client(broker) as made:
        yield made


def silent(peer: Peer, request: Any) -> None:
    """A script that sends no response."""


# ---- versions --------------------------------------------------------------------------------------------------------


def api_versions_requested(broker: ScriptedBroker) -> list[int]:
    return [received.header.api_version for received in broker.requests(ApiVersionsRequest)]


def test_the_first_request_is_api_versions(broker: ScriptedBroker, client: Client) -> None:
    assert client.ask(METADATA_NOW) == Answer(1, METADATA)
    first, second = broker.received
    assert (first.header.api_key, first.header.api_version, first.header.client_id) == (18, 5, "probe")
    assert first.request.client_software_name == "shareq"
    assert (second.header.api_key, second.header.api_version) == (3, 13)


def listed(low: int, high: int) -> ApiVersionsResponse:
    key = ApiVersionsResponse.ApiVersion(api_key=18, min_version=low, max_version=high)
    return ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=(key,))


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(listed(0, 3), [5, 3], id="an older version is listed"),
        pytest.param(listed(0, 0), [5, 0], id="only version 0 is listed"),
        pytest.param(ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION), [5, 0], id="no version is listed"),
        pytest.param(listed(0, 9), [5, 4], id="versions above the refused one are listed"),
    ],
)
def test_api_versions_is_repeated_in_a_version_that_the_broker_supports(
    broker: ScriptedBroker, client: Client, refusal: ApiVersionsResponse, expected: list[int]
) -> None:
    def answer(peer: Peer, request: Any) -> bytes | ApiVersionsResponse:
        if len(api_versions_requested(broker)) + 1 == len(expected):
            return versions()
        return encode_response(RequestHeader(18, 0, correlation_id=1), refusal)  # v0, which every client decodes

    broker.answers[ApiVersionsRequest] = answer
    assert client.ask(METADATA_NOW).response == METADATA
    assert api_versions_requested(broker) == expected


def test_refused_api_versions_fail_the_request(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[ApiVersionsRequest] = lambda peer, request: ApiVersionsResponse(error_code=Errors.INVALID_REQUEST)
    answer = client.ask(METADATA_NOW)
    assert answer.error is Errors.NETWORK_EXCEPTION
    assert "ApiVersions was answered with INVALID_REQUEST" in answer.reason


@pytest.mark.parametrize(
    ("ranges", "request_", "version"),
    [
        pytest.param({}, METADATA_NOW, 13, id="both support the newest"),
        pytest.param({"Metadata": (0, 11)}, METADATA_NOW, 11, id="the broker is older"),
        pytest.param({"Metadata": (12, 99)}, METADATA_NOW, 13, id="the broker is newer"),
        pytest.param({"Metadata": (0, 10)}, METADATA_NOW, 10, id="the oldest that shareq supports"),
        pytest.param({}, TRANSACTIONAL_WRITE, 13, id="a transaction"),
        pytest.param({"Produce": (3, 12)}, TRANSACTIONAL_WRITE, 12, id="a transaction in the first version for it"),
        pytest.param({}, END, 5, id="the end of a transaction"),
        pytest.param({}, OFFSETS_BY_NAME, 5, id="offsets of a transaction, by names of topics"),
        pytest.param({}, OFFSETS_BY_ID, 6, id="offsets of a transaction, by ids of topics"),
    ],
)
def test_the_highest_common_version_is_used(
    broker: ScriptedBroker, client: Client, ranges: Any, request_: Any, version: int
) -> None:
    broker.answers[ApiVersionsRequest] = lambda peer, request: versions(**ranges)
    client.send(request_)
    assert broker.wait_for(type(request_))[0].header.api_version == version


@pytest.mark.parametrize(
    ("offer", "request_", "reason"),
    [
        pytest.param(
            versions(ShareFetch=None), FETCH, "does not support the API ShareFetch (78)", id="API not offered"
        ),
        pytest.param(
            versions(Metadata=(0, 9)), METADATA_NOW, "supports Metadata (3) 0 to 9; needed is 10", id="too old"
        ),
        pytest.param(versions(Metadata=(90, 91)), METADATA_NOW, "supports Metadata (3) 90 to 91", id="too new"),
        pytest.param(versions(Produce=(3, 11)), TRANSACTIONAL_WRITE, "needed is 12 to 13", id="transactions, Produce"),
        pytest.param(versions(EndTxn=(0, 4)), END, "needed is 5 to 5", id="transactions, EndTxn"),
        pytest.param(
            versions(transactions=1), END, "has transaction.version 1; transactions need 2", id="transactions, level"
        ),
        pytest.param(
            versions(transactions=1),
            InitProducerIdRequest(transactional_id="x"),
            "transactions need 2 (Kafka 4.0 or newer)",
            id="transactions, from the start",
        ),
        pytest.param(
            versions(ShareAcknowledge=(1, 1)),
            ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, is_renew_ack=True),
            "is_renew_ack is not part of this version",
            id="a field that the version lacks",
        ),
    ],
)
def test_error_names_the_api_that_the_broker_lacks(
    broker: ScriptedBroker, client: Client, offer: ApiVersionsResponse, request_: Any, reason: str
) -> None:
    client.learn_brokers(broker)
    broker.peers[0].hang_up()
    broker.wait(lambda: broker.peers[0].closed)
    broker.answers[ApiVersionsRequest] = lambda peer, request: offer
    answer = client.ask(request_, node=broker.port)
    assert (answer.response, answer.error) == (None, Errors.UNSUPPORTED_VERSION)
    assert f"broker {broker.port} at {broker.address}" in answer.reason
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(
            MetadataRequest(topics=(MetadataRequest.Topic(name="a"), MetadataRequest.Topic(name="b\udc80"))),
            "MetadataRequest cannot be encoded: topics[1].name='b\\udc80': must be text",
            id="a surrogate",
        ),
        pytest.param(
            CreateTopicsRequest(topics=(CreateTopicsRequest.Topic(name="t", configs=(("k", 5),)),)),  # type: ignore[arg-type]
            "CreateTopicsRequest cannot be encoded: topics[0].configs[0].value=5: must be text",
            id="a number for a string",
        ),
        pytest.param(
            CreateTopicsRequest(topics=(CreateTopicsRequest.Topic(name="t", num_partitions=2**31),)),
            "topics[0].num_partitions=2147483648: must be int32",
            id="above int32",
        ),
        pytest.param(
            FindCoordinatorRequest(key_type=CoordinatorType.GROUP, coordinator_keys=(None,)),  # type: ignore[arg-type]
            "FindCoordinatorRequest cannot be encoded: coordinator_keys[0]=None: must not be null",
            id="null for a string",
        ),
        pytest.param(
            MetadataRequest(topics=5),  # type: ignore[arg-type]
            "MetadataRequest cannot be encoded: topics=5: must be a tuple",
            id="a number for an array",
        ),
    ],
)
@pytest.mark.parametrize("connected", [False, True], ids=["not connected", "connected"])
def test_a_request_that_cannot_be_encoded_leaves_other_requests_alone(
    broker: ScriptedBroker, client: Client, request_: Any, reason: str, connected: bool
) -> None:
    if connected:
        client.learn_brokers(broker)
    bad, good = client.send(request_), client.send(METADATA_NOW)
    refused = client.answer(bad)
    assert (refused.response, refused.error) == (None, Errors.INVALID_REQUEST)
    assert reason in refused.reason
    assert client.answer(good).error is Errors.NONE
    assert len(broker.peers) == 1


def test_an_idempotent_producer_needs_no_transactions(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[ApiVersionsRequest] = lambda peer, request: versions(transactions=0)
    client.send(InitProducerIdRequest())
    broker.wait_for(InitProducerIdRequest)


# ---- frames ----------------------------------------------------------------------------------------------------------


def answer_to(received: Received, response: Any) -> bytes:
    return encode_response(received.header, response)


def test_responses_may_arrive_one_byte_at_a_time(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[MetadataRequest] = silent
    call = client.send(METADATA_NOW)
    (received,) = broker.wait_for(MetadataRequest)
    for byte in answer_to(received, METADATA):
        received.peer.send(bytes([byte]))
    assert client.answer(call).response == METADATA


def test_several_responses_may_arrive_at_once(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[MetadataRequest] = silent
    calls = [client.send(METADATA_NOW) for _ in range(3)]
    received = broker.wait_for(MetadataRequest, 3)
    received[0].peer.send(b"".join(answer_to(one, METADATA) for one in received))
    assert [client.answer(call).response for call in calls] == [METADATA] * 3


def test_requests_do_not_wait_for_each_other(broker: ScriptedBroker, client: Client) -> None:
    """Requests are pipelined, matched by correlation id, answered in order."""
    broker.answers[ListGroupsRequest] = broker.answers[MetadataRequest] = silent
    first, second = client.send(ListGroupsRequest()), client.send(METADATA_NOW)
    groups, metadata = broker.wait_for(ListGroupsRequest)[0], broker.wait_for(MetadataRequest)[0]
    assert metadata.header.correlation_id == groups.header.correlation_id + 1
    assert broker.peers == [groups.peer]
    groups.peer.send(answer_to(groups, ListGroupsResponse()) + answer_to(metadata, METADATA))
    assert client.answer(first).response == ListGroupsResponse()
    assert client.answer(second).response == METADATA


def test_a_large_response_is_received(broker: ScriptedBroker, client: Client) -> None:
    groups = tuple(
        ListGroupsResponse.Group(group_id=f"group {i}", protocol_type="share", group_state="Empty", group_type="share")
        for i in range(50_000)
    )
    broker.answers[ListGroupsRequest] = lambda peer, request: ListGroupsResponse(groups=groups)
    assert client.ask(ListGroupsRequest()).response == ListGroupsResponse(groups=groups)


def test_large_requests_to_a_slow_broker_are_sent_in_order(broker: ScriptedBroker, client: Client) -> None:
    """More bytes than the socket buffers hold: the rest is sent in order when there is room."""
    reading = threading.Event()

    def answer(peer: Peer, request: Any) -> Any:
        reading.wait(PATIENCE_S)
        return METADATA

    broker.answers[MetadataRequest] = answer
    names = tuple(MetadataRequest.Topic(name=f"{i:0200d}") for i in range(5000))
    calls = [client.send(MetadataRequest(topics=names)) for _ in range(20)]
    reading.set()
    assert all(client.answer(call).response == METADATA for call in calls)
    assert [received.request.topics for received in broker.requests(MetadataRequest)] == [names] * 20


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(
            lambda good: good[:4] + b"\0\0\0\x63" + good[8:], "correlation id 99", id="another correlation id"
        ),
        pytest.param(lambda good: b"\0\0\0\x06" + good[4:8] + b"\0\xff", "response of 6 bytes", id="truncated"),
        pytest.param(lambda good: b"\x7f\xff\xff\xff", "frame size 2147483647", id="above the limit"),
        pytest.param(lambda good: b"\0\0\0\0", "frame size 0", id="empty"),
        pytest.param(lambda good: b"HTTP/1.1 400 Bad\r\n", "frame size 1213486160", id="another protocol"),
    ],
)
def test_an_undecodable_response_closes_the_connection(
    broker: ScriptedBroker, client: Client, spoil: Any, reason: str
) -> None:
    broker.answers[MetadataRequest] = silent
    calls = [client.send(METADATA_NOW), client.send(METADATA_NOW)]
    received = broker.wait_for(MetadataRequest, 2)
    received[0].peer.send(spoil(answer_to(received[0], METADATA)))
    for call in calls:
        answer = client.answer(call)
        assert answer.error is Errors.NETWORK_EXCEPTION
        assert reason in answer.reason
    broker.wait(lambda: received[0].peer.closed)


def test_an_unexpected_response_closes_the_connection(broker: ScriptedBroker, client: Client) -> None:
    client.ask(METADATA_NOW)
    (peer,) = broker.peers
    peer.send(answer_to(broker.requests(MetadataRequest)[0], METADATA))
    broker.wait(lambda: peer.closed)
    assert client.ask(METADATA_NOW).response == METADATA
    assert len(broker.peers) == 2


def test_a_produce_without_acks_is_done_when_it_is_sent(broker: ScriptedBroker, client: Client) -> None:
    assert client.ask(ProduceRequest(acks=0, topics=())).error is Errors.NONE
    assert client.ask(METADATA_NOW).response == METADATA
    assert len(broker.requests(ProduceRequest)) == 1


# ---- broken connections ----------------------------------------------------------------------------------------------


def test_requests_in_flight_fail_when_the_connection_breaks(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[MetadataRequest] = silent
    calls = [client.send(METADATA_NOW) for _ in range(3)]
    received = broker.wait_for(MetadataRequest, 3)
    received[0].peer.send(answer_to(received[0], METADATA) + answer_to(received[1], METADATA)[:9])
    received[0].peer.hang_up()
    assert client.answer(calls[0]).response == METADATA
    for call in calls[1:]:
        answer = client.answer(call)
        assert answer.error is Errors.NETWORK_EXCEPTION
        assert broker.address in answer.reason


def test_responses_before_malformed_bytes_are_delivered(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[MetadataRequest] = silent
    good, bad = [client.send(METADATA_NOW) for _ in range(2)]
    received = broker.wait_for(MetadataRequest, 2)
    received[0].peer.send(answer_to(received[0], METADATA) + b"HTTP")
    assert client.answer(good).response == METADATA
    assert client.answer(bad).error is Errors.NETWORK_EXCEPTION
    assert f"frame size {int.from_bytes(b'HTTP', 'big')}" in client.answer(bad).reason


def test_a_broken_connection_is_reopened(broker: ScriptedBroker, client: Client) -> None:
    for count in (1, 2, 3):
        assert client.ask(METADATA_NOW).response == METADATA
        assert len(broker.peers) == count
        broker.peers[-1].hang_up()
        broker.wait(lambda: broker.peers[-1].closed)


def test_closing_an_unused_connection_fails_no_request(broker: ScriptedBroker, client: Client) -> None:
    client.ask(METADATA_NOW)
    before = dict(client.probe.answers)
    broker.peers[0].hang_up()
    broker.wait(lambda: broker.peers[0].closed)
    client.ask(METADATA_NOW)
    assert [answer.error for answer in client.probe.answers.values()] == [Errors.NONE] * 2
    assert before.items() <= client.probe.answers.items()


def test_an_unreachable_broker_fails_the_request() -> None:
    with ScriptedBroker(listening=False) as unreachable, Client(unreachable) as client:
        answer = client.ask(METADATA_NOW)
        assert answer.error is Errors.NETWORK_EXCEPTION
        assert f"broker at {unreachable.address} cannot be reached" in answer.reason


def test_an_unknown_host_fails_the_request() -> None:
    with Client("nowhere.invalid:9092", socket_connection_setup_timeout_ms=10_000) as client:
        answer = client.ask(METADATA_NOW)
        assert answer.error is Errors.NETWORK_EXCEPTION
        assert "broker at nowhere.invalid:9092 cannot be reached" in answer.reason


def test_a_host_name_is_resolved(broker: ScriptedBroker) -> None:
    with Client(f"localhost:{broker.port}") as client:
        assert client.ask(METADATA_NOW).response == METADATA


class Pauses:
    """A back-off that records the number of failures of each call and returns 1 ms."""

    def __init__(self) -> None:
        self.attempts: list[int] = []

    def delay_ms(self, attempts: int) -> int:
        self.attempts.append(attempts)
        return 1


def test_reconnect_attempts_back_off() -> None:
    """The connection itself waits, also if the client sends its next request immediately."""
    with ScriptedBroker(listening=False) as unreachable, Client(unreachable) as client:
        client.connection._host.backoff = pauses = Pauses()  # type: ignore[assignment]
        client.probe.on_answer = lambda answer: [Call(answer.id + 1, -1, METADATA_NOW)] if answer.error else []
        client.send(METADATA_NOW)
        client.connection.wait(lambda: len(client.probe.answers) >= 5, PATIENCE_S * 1000)
        assert pauses.attempts[:5] == [1, 2, 3, 4, 5]
        unreachable.listen()
        client.connection.wait(lambda: any(a.response for a in client.probe.answers.values()), PATIENCE_S * 1000)
        failures = len(pauses.attempts)
        unreachable.answers[MetadataRequest], client.probe.on_answer = silent, lambda answer: []
        call = Call(max(client.probe.answers) + 1, -1, METADATA_NOW)
        client.connection.run(lambda now_ms: [call])
        unreachable.wait_for(MetadataRequest, 2)[-1].peer.hang_up()
        assert client.answer(call.id).error is Errors.NETWORK_EXCEPTION
        assert pauses.attempts[failures:] == [1], "a successful connection resets the count"


class LongPauses(Pauses):
    """A back-off that is longer than the requests of the test can wait."""

    def delay_ms(self, attempts: int) -> int:
        super().delay_ms(attempts)
        return 300


def test_requests_that_cannot_wait_for_the_back_off_do_not_prolong_it() -> None:
    """Each is sent when the one before it has failed. The attempts to connect are made nevertheless."""
    with ScriptedBroker(listening=False) as unreachable, Client(unreachable) as client:
        client.connection._host.backoff = pauses = LongPauses()  # type: ignore[assignment]
        assert client.ask(METADATA_NOW).error is Errors.NETWORK_EXCEPTION
        client.probe.on_answer = lambda answer: [Call(answer.id + 1, -1, METADATA_NOW, 50)] if answer.error else []
        client.send(METADATA_NOW, timeout_ms=50)
        client.connection.wait(lambda: len(pauses.attempts) == 2, PATIENCE_S * 1000)
        unreachable.listen()
        client.connection.wait(lambda: any(a.response for a in client.probe.answers.values()), PATIENCE_S * 1000)
        assert any(answer.response for answer in client.probe.answers.values())


def test_an_attempt_to_connect_that_no_request_waits_for_counts() -> None:
    """The request has timed out before; the next one waits for a longer back-off."""
    with ScriptedBroker(listening=False) as unreachable, Client(unreachable) as client:
        client.connection._host.backoff = pauses = LongPauses()  # type: ignore[assignment]
        client.ask(METADATA_NOW)
        assert client.ask(METADATA_NOW, timeout_ms=50).error is Errors.REQUEST_TIMED_OUT
        client.connection.wait(lambda: len(pauses.attempts) == 2, PATIENCE_S * 1000)
        assert pauses.attempts == [1, 2]


def test_an_unreachable_bootstrap_server_is_replaced_by_the_next(broker: ScriptedBroker) -> None:
    with ScriptedBroker(listening=False) as unreachable, Client(unreachable, broker) as client:
        answers = [client.ask(METADATA_NOW) for _ in range(3)]
    assert [answer.response for answer in answers][-2:] == [METADATA] * 2


# ---- timeouts --------------------------------------------------------------------------------------------------------


def test_a_request_without_response_times_out(broker: ScriptedBroker, client: Client) -> None:
    """Later requests on the connection cannot be answered either, so the connection is closed, as in Java's clients."""
    broker.answers[MetadataRequest] = silent
    patient = client.send(METADATA_NOW)
    broker.wait_for(MetadataRequest)  # without an open connection there is none to close
    hasty = client.send(METADATA_NOW, timeout_ms=20)
    assert client.answer(hasty).error is Errors.REQUEST_TIMED_OUT
    assert client.answer(patient).error is Errors.NETWORK_EXCEPTION
    assert "does not answer in time" in client.answer(patient).reason
    broker.wait(lambda: broker.peers[0].closed)
    broker.answers[MetadataRequest] = lambda peer, request: METADATA
    assert client.ask(METADATA_NOW).response == METADATA


def test_api_versions_without_response_times_out(broker: ScriptedBroker, client: Client) -> None:
    broker.answers[ApiVersionsRequest] = silent
    assert client.ask(METADATA_NOW, timeout_ms=20).error is Errors.REQUEST_TIMED_OUT


def test_the_connection_setup_timeout_limits_api_versions(
    broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is short only when the connection is open: to connect takes as long as it takes."""
    broker.answers[ApiVersionsRequest] = silent
    with Client(broker) as client:

        async def connect_patiently(address: Any, settings: SocketSettings) -> Any:
            opened = await connect(address, settings)
            client.connection._host.settings = replace(settings, socket_connection_setup_timeout_ms=50)
            return opened

        monkeypatch.setattr(broker_connection, "connect", connect_patiently)
        answer = client.ask(METADATA_NOW)
    assert answer.error is Errors.NETWORK_EXCEPTION
    assert "does not answer in time" in answer.reason


def test_a_client_that_is_dropped_in_a_forked_process_stays_open_here(broker: ScriptedBroker, client: Client) -> None:
    assert client.ask(METADATA_NOW).response == METADATA
    host = client.connection._host
    here, host._process = host._process, -1
    host.forget()
    host._process = here
    assert client.ask(METADATA_NOW).response == METADATA
    assert len(broker.peers) == 1


@pytest.mark.parametrize(("longest", "pauses"), [(400, [100, 200, 400]), (150, [100, 150, 150])])
def test_reconnect_backoff_is_configurable(longest: int, pauses: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The delay doubles up to the maximum, with 20 % of jitter; no attempt is made before it has passed."""
    with (
        ScriptedBroker(listening=False) as unreachable,
        Client(unreachable, reconnect_backoff_ms=100, reconnect_backoff_max_ms=longest) as client,
    ):
        chosen: list[int] = []
        backoff = client.connection._host.backoff

        def noted(attempts: int) -> int:
            chosen.append(backoff.delay_ms(attempts))
            return chosen[-1]

        monkeypatch.setattr(client.connection._host, "backoff", SimpleNamespace(delay_ms=noted))
        before_ms = client.connection.now_ms()
        for _ in [0, *pauses]:
            assert client.ask(METADATA_NOW).error is Errors.NETWORK_EXCEPTION
        assert client.connection.now_ms() - before_ms >= sum(chosen[:-1])  # no attempt followed the last delay
    assert all(pause * 0.8 <= one <= pause * 1.2 for pause, one in zip(pauses, chosen[:-1], strict=True)), chosen


@pytest.mark.parametrize("chosen", [True, False])
def test_socket_options_are_set(broker: ScriptedBroker, chosen: bool) -> None:
    sizes = {"socket_send_buffer_bytes": 20_000, "socket_receive_buffer_bytes": 30_000} if chosen else {}
    conf: dict[str, Any] = {"socket_keepalive_enable": chosen, "socket_nagle_disable": not chosen, **sizes}
    with Client(broker, **conf) as client:
        assert client.ask(METADATA_NOW).response == METADATA
        (link,) = client.connection._host._links.values()
        assert link._frame_socket is not None
        one = link._frame_socket._socket
        assert isinstance(one, socket.socket)
        assert bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) == chosen
        assert bool(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) != chosen
        for option, size in ((socket.SO_SNDBUF, 20_000), (socket.SO_RCVBUF, 30_000)):
            assert (one.getsockopt(socket.SOL_SOCKET, option) in (size, 2 * size)) == chosen  # Linux doubles the size


def test_answered_requests_leave_no_timer(broker: ScriptedBroker, client: Client) -> None:
    """Requests that follow the first use its timer."""
    for _ in range(3):
        client.ask(METADATA_NOW, timeout_ms=200)
    late = client.send(METADATA_NOW)
    assert client.answer(late).response == METADATA
    broker.answers[ListGroupsRequest] = silent
    assert client.ask(ListGroupsRequest(), timeout_ms=250).error is Errors.REQUEST_TIMED_OUT


def test_ticks_arrive_between_calls_of_the_application(client: Client) -> None:
    client.wake_in(60_000)
    due_ms = client.wake_in(5)
    assert client.connection.wait(lambda: bool(client.probe.ticks), PATIENCE_S * 1000)
    assert client.probe.ticks[0] >= due_ms


def test_wait_ends_at_its_timeout(client: Client) -> None:
    before_ms = client.connection.now_ms()
    assert not client.connection.wait(lambda: False, 5)
    assert client.connection.now_ms() >= before_ms + 5
    assert client.connection.wait(lambda: True, 0)


# ---- choice of the node ----------------------------------------------------------------------------------------------


def test_node_addresses_are_taken_from_metadata(broker: ScriptedBroker, other: ScriptedBroker, client: Client) -> None:
    client.learn_brokers(broker, other)
    assert client.ask(METADATA_NOW, node=other.port).response == METADATA
    assert len(other.requests(MetadataRequest)) == 1


def test_node_addresses_are_taken_from_find_coordinator(
    broker: ScriptedBroker, other: ScriptedBroker, client: Client
) -> None:
    found = FindCoordinatorResponse.Coordinator(key="g", node_id=7, host="127.0.0.1", port=other.port)
    broker.answers[FindCoordinatorRequest] = lambda peer, request: FindCoordinatorResponse(coordinators=(found,))
    client.ask(FindCoordinatorRequest(coordinator_keys=("g",)))
    assert client.ask(METADATA_NOW, node=7).response == METADATA
    assert len(other.requests(MetadataRequest)) == 1


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        pytest.param(FETCH, ShareFetchResponse, id="ShareFetch"),
        pytest.param(
            ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1),
            ShareAcknowledgeResponse,
            id="ShareAcknowledge",
        ),
    ],
)
def test_node_addresses_are_taken_from_leader_endpoints(
    broker: ScriptedBroker, other: ScriptedBroker, client: Client, request_: Any, response: Any
) -> None:
    endpoint = NodeEndpoint(node_id=9, host="127.0.0.1", port=other.port)
    broker.answers[type(request_)] = lambda peer, request: response(node_endpoints=(endpoint,))
    client.ask(request_)
    assert client.ask(METADATA_NOW, node=9).response == METADATA
    assert len(other.requests(MetadataRequest)) == 1


def test_an_unknown_node_fails_the_request(client: Client) -> None:
    answer = client.ask(METADATA_NOW, node=5)
    assert answer.error is Errors.NETWORK_EXCEPTION
    assert answer.reason == "the address of broker 5 is unknown"


def test_any_node_prefers_a_connected_node(broker: ScriptedBroker, other: ScriptedBroker, client: Client) -> None:
    client.learn_brokers(broker, other)
    for _ in range(3):
        client.ask(METADATA_NOW)
    assert not other.peers


def test_any_node_prefers_the_least_busy_node(broker: ScriptedBroker, other: ScriptedBroker, client: Client) -> None:
    client.learn_brokers(broker, other)
    client.ask(METADATA_NOW, node=other.port)
    broker.answers[ListGroupsRequest] = silent
    client.send(ListGroupsRequest(), node=broker.port)
    client.ask(METADATA_NOW)
    assert len(other.requests(MetadataRequest)) == 2


def test_a_waiting_fetch_delays_no_other_request(broker: ScriptedBroker, client: Client) -> None:
    """A broker answers the requests of a connection in order, so fetches have a connection of their own."""
    broker.answers[ShareFetchRequest] = silent
    joined = ShareGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=5000)
    broker.answers[ShareGroupHeartbeatRequest] = lambda peer, request: joined
    client.send(FETCH)
    (fetch,) = broker.wait_for(ShareFetchRequest)
    assert client.ask(HEARTBEAT).response == joined
    (heartbeat,) = broker.requests(ShareGroupHeartbeatRequest)
    assert fetch.peer is not heartbeat.peer


# ---- closing ---------------------------------------------------------------------------------------------------------


def io_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "shareq-io"]


def test_clients_share_one_thread_that_ends_with_the_last(broker: ScriptedBroker) -> None:
    with Client(broker) as one, Client(broker) as two:
        one.ask(METADATA_NOW)
        two.ask(METADATA_NOW)
        assert len(io_threads()) == 1
    assert not io_threads()
    broker.wait(lambda: all(peer.closed for peer in broker.peers))


def test_close_fails_requests_in_flight(broker: ScriptedBroker) -> None:
    broker.answers[MetadataRequest] = silent
    client = Client(broker)
    client.send(METADATA_NOW)
    broker.wait_for(MetadataRequest)
    client.close()
    client.close()
    broker.wait(lambda: broker.peers[0].closed)
    assert not client.probe.answers
    with pytest.raises(KafkaException, match="client 'probe' is closed") as raised:
        client.send(METADATA_NOW)
    assert raised.value.error == KafkaError._TRANSPORT
    with pytest.raises(KafkaException, match="client 'probe' is closed"):
        client.connection.wait(lambda: False, 0)


def test_close_before_the_first_request_leaves_no_thread() -> None:
    Client("127.0.0.1:1").close()
    assert not io_threads()


def test_close_while_connecting_ends_the_thread(broker: ScriptedBroker) -> None:
    client = Client(broker)
    client.send(METADATA_NOW)
    client.close()
    assert not io_threads()


def test_close_sends_pending_bytes(broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without response that is larger than the socket buffers."""
    monkeypatch.setattr(client_host, "GOODBYE_S", PATIENCE_S)  # however slowly the broker reads
    client = Client(broker)
    records = bytes(20_000_000)
    partition = ProduceRequest.Partition(index=0, records=records)
    topic = ProduceRequest.Topic(topic_id=METADATA_ID, partitions=(partition,))
    client.ask(METADATA_NOW)
    client.send(ProduceRequest(acks=0, topics=(topic,)))
    client.close()
    assert broker.wait_for(ProduceRequest)[0].request.topics[0].partitions[0].records == records


METADATA_ID: Any = "u5R2UYql3HBN2u6GoPO5eg"


def test_close_gives_up_on_a_broker_that_does_not_read(broker: ScriptedBroker) -> None:
    reading = threading.Event()

    def read_later(peer: Peer, request: Any) -> None:
        reading.wait(PATIENCE_S)

    broker.answers[ListGroupsRequest] = read_later
    client = Client(broker)
    client.ask(METADATA_NOW)
    client.send(ListGroupsRequest())
    partition = ProduceRequest.Partition(index=0, records=bytes(50_000_000))
    topic = ProduceRequest.Topic(topic_id=METADATA_ID, partitions=(partition,))
    client.send(ProduceRequest(acks=0, topics=(topic,)))
    client.close()
    assert not io_threads()
    reading.set()


def test_wait_ends_when_another_thread_closes_the_client(broker: ScriptedBroker) -> None:
    client = Client(broker)
    inside = threading.Event()
    raised: list[str] = []

    def never() -> bool:
        inside.set()
        return False

    def wait() -> None:
        with pytest.raises(KafkaException) as caught:
            client.connection.wait(never, None)
        raised.append(caught.value.error.str())

    waiting = threading.Thread(target=wait)
    waiting.start()
    inside.wait(PATIENCE_S)
    client.close()
    waiting.join(PATIENCE_S)
    assert raised == ["client 'probe' is closed"]


def test_an_unreferenced_client_closes_its_connections(broker: ScriptedBroker) -> None:
    client = Client(broker)
    client.ask(METADATA_NOW)
    (peer,) = broker.peers
    del client
    gc.collect()
    broker.wait(lambda: peer.closed)
    assert not io_threads()


def test_an_unhandled_error_fails_waiting_calls(broker: ScriptedBroker, other: ScriptedBroker) -> None:
    def fail(answer: Answer) -> Any:
        raise ZeroDivisionError("a defect")

    with Client(broker) as client, Client(other) as neighbour:
        client.probe.on_answer = fail
        client.send(METADATA_NOW)
        text = "client 'probe' failed with an unhandled error: ZeroDivisionError"
        with pytest.raises(ClientFailedException, match=text) as raised:
            client.connection.wait(lambda: False, PATIENCE_S * 1000)
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        assert neighbour.ask(METADATA_NOW).response == METADATA


# ---- processes -------------------------------------------------------------------------------------------------------


def in_child(client: Client, address: str, results: Any) -> None:
    """In a forked child the parent's client fails; a client of its own works."""
    try:
        client.send(METADATA_NOW)
    except KafkaException as error:
        results.put(error.error.str())
    client.close()
    with Client(address) as own:
        results.put(own.ask(METADATA_NOW).error.name)


def test_a_forked_child_cannot_use_the_clients_of_its_parent(broker: ScriptedBroker) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with Client(broker) as client:
        client.ask(METADATA_NOW)
        child = context.Process(target=in_child, args=(client, broker.address, results))
        child.start()
        assert "created before a fork" in results.get(timeout=PATIENCE_S)
        assert results.get(timeout=PATIENCE_S) == "NONE"
        child.join(PATIENCE_S)
        assert child.exitcode == 0
        assert client.ask(METADATA_NOW).response == METADATA


def test_a_process_can_end_without_closing_its_clients(broker: ScriptedBroker) -> None:
    script = f"""
import shareq
consumer = shareq.ShareConsumer({{"bootstrap.servers": {broker.address!r}, "group.id": "g"}})
consumer.subscribe(["t"])
print(len(consumer.poll(0.05)))
"""
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    warnings = [line for line in done.stderr.splitlines() if not line.startswith("poll is empty: broker at")]
    assert (done.returncode, done.stdout, warnings) == (0, "0\n", [])


def test_the_thread_ends_with_the_interpreter() -> None:
    thread = io_thread.enter()
    io_thread._end()
    assert not io_threads()
    io_thread.leave(thread)  # leave() after the end of the thread has no effect
    thread.soon(print, "never")
