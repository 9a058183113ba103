"""Logins over SASL, request by request, and what a peer without a login can do.

Numbers in ids are sections of shareq/wire/BEHAVIOUR.md.
"""

from __future__ import annotations

import socket
import ssl
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shareq import Cluster
from shareq.model.actor import ClientContext
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import AuthenticationFailed, ConfigChanged
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from shareq.wire.client.sasl_mechanisms import PlainClient, SaslClient, ScramClient
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.security.mechanisms import SCRAM
from shareq.wire.server import Server
from tests.polling import eventually
from tests.wire.certificates import PASSWORD
from tests.wire.raw import Raw
from tests.wire.secured import Vault

VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")
METADATA = MetadataRequest(topics=())
NAMES = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DELAY, REAUTH = "connection.failed.authentication.delay.ms", "connections.max.reauth.ms"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, seed=7, config={DELAY: 0}) as made:
        yield made


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Server]:
    """On a virtual clock, which does not advance by itself."""
    with Server(cluster, security=ListenerSecurity(users={"alice": PASSWORD, "bob": PASSWORD})) as made:
        yield made
        assert list(made.failures) == []


@pytest.fixture
def raw(server: Server) -> Iterator[Raw]:
    with Raw(server.ports[0]) as made:
        yield made


def handshake(name: str = "PLAIN") -> SaslHandshakeRequest:
    return SaslHandshakeRequest(mechanism=name)


def plain(user: str = "alice", password: str = PASSWORD) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())


def client_of(name: str, password: str = PASSWORD) -> SaslClient:
    return PlainClient("alice", password) if name == "PLAIN" else ScramClient(SCRAM[name], "alice", password)


def log_in(raw: Raw, name: str = "PLAIN", password: str = PASSWORD) -> Any:
    """The last response of a login."""
    assert raw.ask(handshake(name)).error_code is Errors.NONE
    client, response = client_of(name, password), None
    while (data := client.step(response.auth_bytes if response else None)) is not None:
        response = raw.ask(SaslAuthenticateRequest(auth_bytes=data))
        if response.error_code:
            break
    return response


# ---- the states of a login -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_login_opens_the_connection(raw: Raw, name: str) -> None:
    assert raw.ask(VERSIONS).error_code is Errors.NONE
    response = log_in(raw, name)
    assert (response.error_code, response.session_lifetime_ms) == (Errors.NONE, 0)
    assert raw.ask(METADATA).brokers


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_versions_of_the_login_are_answered(raw: Raw, version: int) -> None:
    assert raw.ask(handshake(), 1).mechanisms == NAMES
    assert raw.ask(plain(), version).error_code is Errors.NONE


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_after_version_0_of_the_handshake_the_bytes_have_no_header(raw: Raw, password: str) -> None:
    assert raw.ask(handshake(), 0).error_code is Errors.NONE
    data = f"\0alice\0{password}".encode()
    raw.socket.sendall(struct.pack(">i", len(data)) + data)
    if password == PASSWORD:
        assert raw.socket.recv(4) == struct.pack(">i", 0)
        assert raw.ask(METADATA).brokers
    else:
        assert raw.closed_by_server()


LEGAL: dict[str, list[Request]] = {
    "nothing": [],
    "versions": [VERSIONS],
    "handshake": [handshake()],
    "versions and handshake": [VERSIONS, handshake()],
}


@pytest.mark.parametrize(
    ("sent", "request_", "expected"),
    [
        pytest.param("nothing", METADATA, None, id="2.20 any other request before the handshake"),
        pytest.param("nothing", plain(), None, id="2.20 authenticate before the handshake"),
        pytest.param("versions", METADATA, None, id="2.20 any other request after ApiVersions"),
        pytest.param("versions", VERSIONS, None, id="2.20 ApiVersions twice"),
        pytest.param("handshake", METADATA, None, id="2.20 any other request after the handshake"),
        pytest.param("handshake", VERSIONS, None, id="2.20 ApiVersions after the handshake"),
        pytest.param("handshake", handshake(), Errors.ILLEGAL_SASL_STATE, id="2.20 the handshake twice"),
        pytest.param("versions and handshake", METADATA, None, id="2.20 any other request in a login"),
        pytest.param("nothing", handshake("GSSAPI"), Errors.UNSUPPORTED_SASL_MECHANISM, id="2.20 unknown mechanism"),
    ],
)
def test_a_request_out_of_turn_ends_the_connection(
    raw: Raw, cluster: Cluster, sent: str, request_: Request, expected: Errors | None
) -> None:
    for request in LEGAL[sent]:
        assert raw.ask(request).error_code is Errors.NONE
    raw.send(request_)
    if expected is not None:
        response = raw.receive()[1]
        assert response.error_code is expected
        if expected is Errors.UNSUPPORTED_SASL_MECHANISM:
            assert response.mechanisms == NAMES
    assert raw.closed_by_server()
    assert len(cluster.journal.select(AuthenticationFailed)) == 1


def test_a_request_that_is_not_allowed_yet_is_not_parsed(raw: Raw) -> None:
    """A frame that no parser would accept has the same end, and no exception is reported."""
    raw.socket.sendall(struct.pack(">ihhi", 60, MetadataRequest.API_KEY, 12, 7) + b"\xff" * 52)
    assert raw.closed_by_server()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_failed_login_says_the_same_of_all_users(server: Server, cluster: Cluster, name: str, user: str) -> None:
    with Raw(server.ports[0]) as raw:
        raw.ask(handshake(name))
        client = PlainClient(user, "wrong") if name == "PLAIN" else ScramClient(SCRAM[name], user, "wrong")
        first = client.step(None)
        assert first is not None
        response = raw.ask(SaslAuthenticateRequest(auth_bytes=first))
        if name != "PLAIN":
            final = client.step(response.auth_bytes)
            assert final is not None
            response = raw.ask(SaslAuthenticateRequest(auth_bytes=final))
        assert response.error_code is Errors.SASL_AUTHENTICATION_FAILED
        expected = (
            "Authentication failed: Invalid username or password"
            if name == "PLAIN"
            else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {name}"
        )
        assert response.error_message == expected
        assert raw.closed_by_server()
    (entry,) = cluster.journal.select(AuthenticationFailed)
    assert entry.event == AuthenticationFailed(0, "127.0.0.1", name, user, "Invalid username or password")


def test_the_answer_to_a_failed_login_is_late_and_other_clients_are_not() -> None:
    with (
        Cluster(brokers=1, seed=7, config={DELAY: 150}) as cluster,
        Server(cluster, security=ListenerSecurity(users={"alice": PASSWORD})) as server,
        Raw(server.ports[0]) as bad,
        Raw(server.ports[0]) as good,
    ):
        bad.ask(handshake())
        bad.send(plain(password="wrong"))
        bad.send(plain())  # a second attempt on the same connection is not looked at
        assert log_in(good).error_code is Errors.NONE
        assert bad.silent
        assert bad.receive()[1].error_code is Errors.SASL_AUTHENTICATION_FAILED
        assert bad.closed_by_server()


def test_the_principal_is_that_of_the_login(server: Server, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    call = server.network.call

    def spy(caller: Any, sent: Any, client: ClientContext) -> None:
        seen.append(client)
        call(caller, sent, client)

    monkeypatch.setattr(server.network, "call", spy)
    log_in(raw)
    raw.ask(METADATA)
    assert [client.principal for client in seen] == ["User:alice"]


@pytest.mark.parametrize("request_", [handshake(), plain()], ids=["handshake", "authenticate"])
def test_a_port_without_sasl_answers_that_none_is_due(cluster: Cluster, request_: Request) -> None:
    with Server(cluster) as server, Raw(server.ports[0]) as raw:
        assert raw.ask(request_).error_code is Errors.ILLEGAL_SASL_STATE
        assert raw.ask(METADATA).brokers


# ---- logging in again ------------------------------------------------------------------------------------------------


@pytest.fixture
def short(cluster: Cluster) -> Iterator[Raw]:
    """A login that is valid for 10 s, on a connection that is open."""
    cluster._runtime.controller.alter_broker_configs({REAUTH: "10000"})
    security = ListenerSecurity(users={"alice": PASSWORD, "bob": PASSWORD})
    with Server(cluster, security=security) as server, Raw(server.ports[0]) as raw:
        assert log_in(raw).session_lifetime_ms == 10_000
        yield raw


def test_a_login_that_ends_ends_the_connection(short: Raw, cluster: Cluster) -> None:
    cluster.advance(9_999)
    assert short.ask(METADATA).brokers
    cluster.advance(1)
    short.send(METADATA)
    assert short.closed_by_server()


def test_a_second_login_keeps_the_connection(short: Raw, cluster: Cluster) -> None:
    for _ in range(3):
        cluster.advance(9_000)
        assert log_in(short).session_lifetime_ms == 10_000
        assert short.ask(METADATA).brokers


@pytest.mark.parametrize(
    ("name", "user", "message"),
    [
        pytest.param("PLAIN", "bob", "Cannot change principals during re-authentication", id="2.20 another user"),
        pytest.param("SCRAM-SHA-256", "alice", "not supported for re-authentication", id="2.20 another mechanism"),
        pytest.param("PLAIN", "nobody", "Invalid username or password", id="2.20 a wrong login"),
    ],
)
def test_a_second_login_must_be_the_same(short: Raw, name: str, user: str, message: str) -> None:
    assert short.ask(handshake(name)).error_code is Errors.NONE
    response = short.ask(plain(user))
    assert response.error_code is Errors.SASL_AUTHENTICATION_FAILED
    assert message in response.error_message
    assert short.closed_by_server()


def test_a_third_login_within_a_second_is_refused(short: Raw) -> None:
    assert log_in(short).error_code is Errors.NONE
    assert short.ask(handshake()).error_code is Errors.ILLEGAL_SASL_STATE
    assert short.ask(METADATA).brokers


# ---- limits of peers without a login ---------------------------------------------------------------------------------


def test_a_large_frame_before_the_login_ends_the_connection(raw: Raw) -> None:
    raw.socket.sendall(struct.pack(">i", 524289))
    assert raw.closed_by_server()


def test_after_the_login_frames_may_be_large(raw: Raw) -> None:
    log_in(raw)
    topics = tuple(MetadataRequest.Topic(name=f"{n:0200}") for n in range(4000))
    assert raw.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False)).brokers


SMALL = struct.pack(">ihhih", 14, 0, 0, 0, 0) + bytes(4)
"""A frame with a request that is not allowed before the login."""


@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "TLS"])
@pytest.mark.parametrize(
    "data",
    [(struct.pack(">i", 524_288) + b"\0\x24" + bytes(524_286)) * 5, SMALL * 200_000],
    ids=["large frames", "many frames while the failure is held back"],
)
def test_a_peer_without_a_login_takes_less_than_a_mebibyte(data: bytes, tls: bool, tmp_path: Path) -> None:
    peers = 8
    vault = Vault(tmp_path)
    files = {"tls_cert": vault.server.cert, "tls_key": vault.server.key} if tls else {}
    with (
        Cluster(brokers=1, seed=7, config={DELAY: 60_000}) as cluster,
        Server(cluster, security=ListenerSecurity(users={"alice": PASSWORD}, **files)) as server,
    ):
        context = ssl.create_default_context(cafile=vault.authority.file) if tls else None
        assert taken_by(server, peers, data, context) < peers << 20


def taken_by(server: Server, peers: int, data: bytes, context: ssl.SSLContext | None) -> int:
    """The peak of the memory that is allocated while so many peers send these bytes, as far as the server takes
    them."""
    heard(server.ports[0], context)
    tracemalloc.start()
    try:
        with ExitStack() as stack:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            for _ in range(peers):
                raw = stack.enter_context(connected(server.ports[0], context))
                send_all_that_is_taken(raw.socket, data, lambda: heard(server.ports[0], context))
            return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_peer_that_ends_tls_while_it_is_not_read_from_is_forgotten(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    security = ListenerSecurity(tls_cert=vault.server.cert, tls_key=vault.server.key, users={"alice": PASSWORD})
    with Cluster(brokers=1, seed=7, config={DELAY: 100}) as cluster, Server(cluster, security=security) as server:
        with connected(server.ports[0], ssl.create_default_context(cafile=vault.authority.file)) as raw:
            raw.send(METADATA)
            raw.send(handshake())
            socket.socket.shutdown(raw.socket, socket.SHUT_WR)  # the end of TCP, without that of TLS
            assert raw.closed_by_server()
        eventually(lambda: len(cluster.journal.select(AuthenticationFailed)), 1)


def connected(port: int, context: ssl.SSLContext | None) -> Raw:
    raw = Raw(port)
    if context is not None:
        raw.socket = context.wrap_socket(raw.socket, server_hostname="127.0.0.1")
    return raw


def heard(port: int, context: ssl.SSLContext | None) -> None:
    """The server has read what arrived before this call."""
    with connected(port, context) as other:
        other.ask(VERSIONS)


def send_all_that_is_taken(peer: socket.socket, data: bytes, wait: Callable[[], None]) -> None:
    """Send until the server no longer reads."""
    peer.setblocking(False)
    sent, tries = 0, 0
    while sent < len(data) and tries < 3:
        try:
            sent += peer.send(data[sent : sent + (1 << 16)])
            tries = 0
        except (BlockingIOError, ssl.SSLWantWriteError):
            tries += 1
            wait()


# ---- the users of a server -------------------------------------------------------------------------------------------


def test_users_are_metadata_that_shows_no_secret(server: Server, cluster: Cluster) -> None:
    assert set(cluster.image.users) == {"alice", "bob"}
    assert PASSWORD not in repr(cluster.image)
    assert "salt" not in repr(cluster.image.users)
    events = [entry.event for entry in cluster.journal.select(ConfigChanged)]
    assert ConfigChanged("user:alice", "SCRAM-SHA-256", "iterations=4096") in events


@pytest.mark.parametrize(
    ("security", "config", "message"),
    [
        (ListenerSecurity(users={"alice": ""}), {}, "must have a name and a password"),
        (ListenerSecurity(tls_key="key.pem"), {}, "need tls_cert"),
        (ListenerSecurity(tls_cert="no-such-file.pem"), {}, "no-such-file.pem"),
        (ListenerSecurity(tls_cert=__file__), {}, "must be PEM"),
        (ListenerSecurity(), {"ssl.client.auth": "required"}, "needs tls_cert"),
        (ListenerSecurity(), {"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN is not one of: none"),
        (ListenerSecurity(users={"a": "b"}), {"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not one of: PLAIN, "),
        (ListenerSecurity(), {"ssl.principal.mapping.rules": "RULE"}, "is no rule"),
    ],
)
def test_security_that_cannot_work_is_an_error_at_the_start(
    security: ListenerSecurity, config: dict[str, object], message: str
) -> None:
    with Cluster(brokers=1, config=config) as cluster, pytest.raises(ConfigException, match=message):
        Server(cluster, security=security)


def test_named_mechanisms_alone_are_offered() -> None:
    with (
        Cluster(brokers=1, config={"sasl.enabled.mechanisms": "SCRAM-SHA-512"}) as cluster,
        Server(cluster, security=ListenerSecurity(users={"alice": PASSWORD})) as server,
        Raw(server.ports[0]) as raw,
    ):
        assert raw.ask(handshake()).mechanisms == ("SCRAM-SHA-512",)


def test_a_secured_process_on_a_backend_must_reach_other_secured_ones(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(cluster.front), "knows_secured_peers", False)
    with pytest.raises(ConfigException, match="needs peer_config"):
        Server(cluster, security=ListenerSecurity(users={"alice": PASSWORD}))
