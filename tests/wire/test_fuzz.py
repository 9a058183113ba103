"""For any bytes the server closes the connection or responds correctly, and other connections continue.

The environment variable `SHAREQ_FUZZ` sets the number of mutated frames (20,000 in CI; `make fuzz` sends a million).
"""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import sys

import pytest

from shareq import Admin, Cluster
from shareq.model.messages.cluster import MetadataRequest
from shareq.wire.apis import API_BY_KEY
from shareq.wire.errors import MalformedFrame, UnsupportedVersion
from shareq.wire.frames import decode_response
from shareq.wire.server import Server
from tests.polling import PATIENCE_S
from tests.wire.chance import Requests, bodies, mutated
from tests.wire.raw import Raw

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
FRAMES = int(os.environ.get("SHAREQ_FUZZ") or (20_000 if IN_CI else 2_000))
ROUND = 5_000
"""Number of frames after which a new cluster replaces the old one: topics that random requests create are real."""

PIPELINED = 5
GROWTH_MB = 300
"""Upper bound of the memory growth over all rounds after the first 100 frames, in MB."""

NAMES = ("orders", "g", "member")


@pytest.mark.timeout(300 + FRAMES // 100)
def test_the_server_survives_mutated_frames(seed: int) -> None:
    rng = random.Random(seed)
    answered = round_of(rng, 100)
    before_mb = peak_mb()
    for start in range(0, FRAMES, ROUND):
        answered += round_of(rng, min(ROUND, FRAMES - start))
    assert peak_mb() - before_mb < GROWTH_MB
    assert answered > FRAMES // 10, "too few frames reached a broker"


def round_of(rng: random.Random, count: int) -> int:
    """Send `count` frames to a new cluster, PIPELINED per connection; returns the number of responses."""
    answered = 0
    with Cluster(brokers=2, seed=7, journal=False) as cluster:
        cluster.create_topic("orders", 2)
        Admin({"bootstrap.servers": cluster.bootstrap_servers}).alter_share_group_offsets("g", {"orders": 0}).check()
        requests = Requests(rng, NAMES, (cluster.image.topics["orders"].topic_id,))
        with Server(cluster) as server, Raw(server.ports[0]) as good:
            for _ in range(0, count, PIPELINED):
                sent = [mutated(requests.frame(i), rng) for i in range(PIPELINED)]
                answered += exchange(rng.choice(server.ports), sent)
                cluster.advance(rng.choice((0, 0, 10, 1000)))
                assert good.ask(MetadataRequest(topics=())).brokers
            assert list(server.failures) == []
    return answered


def peak_mb() -> float:
    """Largest memory use of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def exchange(port: int, sent: list[bytes]) -> int:
    """Send frames on a new connection, close its writing side and read the responses; returns their number."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as one:
        received = b""
        try:
            one.sendall(b"".join(sent))
            one.shutdown(socket.SHUT_WR)
            while more := one.recv(1 << 16):
                received += more
        except (ConnectionResetError, BrokenPipeError):
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
