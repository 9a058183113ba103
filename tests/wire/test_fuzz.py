"""For any bytes the server closes the connection or responds correctly, and other connections continue.

The environment variables `SHAREQ_FUZZ` and `SHAREQ_FUZZ_SECURED` set the number of mutated frames: to a server in
plaintext (8,000 in CI), and to one with TLS and SASL, before and after the login (2,000 each). `make fuzz` sends a
million each.
"""

from __future__ import annotations

import random
import resource
import socket
import ssl
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from shareq import Admin, Cluster
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.cluster import MetadataRequest
from shareq.wire.apis import API_BY_KEY
from shareq.wire.errors import MalformedFrame, UnsupportedVersion
from shareq.wire.frames import decode_response, encode_request
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.server import Server
from tests.budgets import cases
from tests.wire.certificates import PASSWORD
from tests.wire.chance import Requests, bodies, mutated
from tests.wire.raw import Raw
from tests.wire.secured import Vault, log_in

FRAMES = cases(2_000, 8_000, "SHAREQ_FUZZ")
SECURED_FRAMES = cases(500, 2_000, "SHAREQ_FUZZ_SECURED")
"""Fewer: all but those in plaintext begin with a handshake of TLS, and half of them with a login."""

ROUND = 5_000
"""Number of frames after which a new cluster replaces the old one: topics that random requests create are real."""

PIPELINED = 5
GROWTH_MB = 300
"""Upper bound of the memory growth over all rounds after the first 100 frames, in MB."""

NAMES = ("orders", "g", "member")
GREETING = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
"""A request that is answered before the login. All others but those of the login end the connection."""


@pytest.mark.timeout(300 + FRAMES // 100)
def test_the_server_survives_mutated_frames(seed: int) -> None:
    rng = random.Random(seed)
    answered = round_of(rng, 100)
    before_mb = peak_mb()
    for start in range(0, FRAMES, ROUND):
        answered += round_of(rng, min(ROUND, FRAMES - start))
    assert peak_mb() - before_mb < GROWTH_MB
    assert answered > FRAMES // 10, "too few frames reached a broker"


@pytest.mark.timeout(300 + SECURED_FRAMES // 20)
@pytest.mark.parametrize("logs_in", [False, True], ids=["before the login", "after the login"])
def test_a_secured_server_survives_mutated_frames(vault: Vault, seed: int, logs_in: bool) -> None:
    rng = random.Random(seed)
    security = ListenerSecurity(tls_cert=vault.server.cert, tls_key=vault.server.key, users={"alice": PASSWORD})
    context = ssl.create_default_context(cafile=vault.authority.file)
    answered = 0
    for start in range(0, SECURED_FRAMES, ROUND):
        answered += round_of(rng, min(ROUND, SECURED_FRAMES - start), Way(security, context, logs_in=logs_in))
    assert answered > SECURED_FRAMES // (10 if logs_in else 50)


def test_a_server_survives_mutated_handshakes_of_tls(vault: Vault, seed: int) -> None:
    rng = random.Random(seed)
    hello = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    frame = hello.read()
    security = ListenerSecurity(tls_cert=vault.server.cert, tls_key=vault.server.key)
    with Cluster(brokers=1, seed=7) as cluster, Server(cluster, security=security) as server:
        for _ in range(100):
            sent = frame[:1] + mutated(frame[1:], rng)
            with Raw(server.ports[0]) as one, suppress(ConnectionError):
                one.socket.sendall(sent)
                one.socket.shutdown(socket.SHUT_WR)
                while one.socket.recv(1 << 16):
                    pass
        context = ssl.create_default_context(cafile=vault.authority.file)
        with Way(security, context).connect(server.ports[0]) as good:
            assert good.ask(MetadataRequest(topics=())).brokers
        assert list(server.failures) == []


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return Vault(tmp_path_factory.mktemp("vault"))


PLAINTEXT = ListenerSecurity()


@dataclass(frozen=True)
class Way:
    """How frames get to a server. `sessions`: those of TLS, by port; a handshake that resumes one costs a fraction."""

    security: ListenerSecurity = PLAINTEXT
    context: ssl.SSLContext | None = None
    logs_in: bool = False
    sessions: dict[int, ssl.SSLSession | None] = field(default_factory=dict)

    def connect(self, port: int) -> Raw:
        if self.context is not None and port not in self.sessions:
            with self._opened(port) as first:
                first.ask(GREETING)  # the server sends what resumes a session after the handshake
                assert isinstance(first.socket, ssl.SSLSocket)
                self.sessions[port] = first.socket.session
        raw = self._opened(port)
        if self.logs_in:
            log_in(raw)
        return raw

    def _opened(self, port: int) -> Raw:
        raw = Raw(port)
        if self.context is not None:
            raw.socket = self.context.wrap_socket(
                raw.socket, server_hostname="127.0.0.1", session=self.sessions.get(port)
            )
        return raw


PLAIN_WAY = Way()


def round_of(rng: random.Random, count: int, way: Way = PLAIN_WAY) -> int:
    """Send `count` frames to a new cluster, PIPELINED per connection; returns the number of responses."""
    answered = 0
    config = {"connection.failed.authentication.delay.ms": 0}
    with Cluster(brokers=2, seed=7, journal=False, config=config) as cluster:
        cluster.create_topic("orders", 2)
        Admin({"bootstrap.servers": cluster.bootstrap_servers}).alter_share_group_offsets("g", {"orders": 0}).check()
        requests = Requests(rng, NAMES, (cluster.image.topics["orders"].topic_id,))
        with Server(cluster, security=way.security) as server, way.connect(server.ports[0]) as good:
            if way.security.users and not way.logs_in:
                log_in(good)
            for _ in range(0, count, PIPELINED):
                frames = [requests.frame(i) for i in range(PIPELINED)]
                if way.security.users and not way.logs_in:
                    frames[0] = encode_request(GREETING, 3, 0, "raw")
                sent = [mutated(frame, rng) for frame in frames]
                with way.connect(rng.choice(server.ports)) as one:
                    answered += exchange(one.socket, sent)
                cluster.advance(rng.choice((0, 0, 10, 1000)))
                assert good.ask(MetadataRequest(topics=())).brokers
            assert list(server.failures) == []
    return answered


def peak_mb() -> float:
    """Largest memory use of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def exchange(one: socket.socket, sent: list[bytes]) -> int:
    """Send frames on a connection, close its writing side and read the responses; returns their number."""
    received = b""
    try:
        one.sendall(b"".join(sent))
        socket.socket.shutdown(one, socket.SHUT_WR)  # that of a socket with TLS would also end its reading
        while more := one.recv(1 << 16):
            received += more
    except (ConnectionError, ssl.SSLError):
        pass  # the server closed the connection before it had read all
    headers = iter([header(body) for body in bodies(b"".join(sent))])
    answers = list(bodies(received))
    for answer in answers:
        assert any(is_response_to(one, answer) for one in headers), (
            f"{answer.hex()} is a response to none of the requests"
        )
    return len(answers)


def is_response_to(request_header: tuple[int, ...], answer: bytes) -> bool:
    """True if the frame can be decoded as a response to the request.

    Damage can give two requests the same correlation id, and a Produce with acks=0 has no response.
    """
    key, version, correlation_id = request_header
    if header(answer, ">i")[0] != correlation_id:
        return False
    try:
        decode_response(key, version if is_supported(key, version) else 0, answer)
    except (MalformedFrame, UnsupportedVersion):
        return False
    return True


def header(body: bytes, fields: str = ">hhi") -> tuple[int, ...]:
    """API key, version and correlation id of a frame, whether damaged or not."""
    return struct.unpack_from(fields, body[:8].ljust(8, b"\0"))


def is_supported(key: int, version: int) -> bool:
    """True if the API table has this version; for others only ApiVersions has a response, in version 0."""
    api = API_BY_KEY.get(key)
    return api is not None and api.min_version <= version <= api.max_version
