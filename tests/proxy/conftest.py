"""A tap in front of a socket of the test, or of the `cluster` of its module."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from shareq import Cluster
from shareq.proxy import Tap, tap
from tests.polling import PATIENCE_S
from tests.proxy.sockets import Pair, Upstream
from tests.proxy.stage import address


@pytest.fixture
def upstream() -> Iterator[tuple[Upstream, Tap]]:
    broker = Upstream()
    with broker.door, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(broker.answer_metadata)
        with tap(f"127.0.0.1:{broker.port}") as made:
            answered.result()
            yield broker, made


@pytest.fixture
def pair(upstream: tuple[Upstream, Tap]) -> Iterator[Pair]:
    """A client's socket to the tap, and the broker's end of the connection behind it."""
    broker, made = upstream
    with socket.create_connection(("127.0.0.1", int(made.bootstrap_servers.rpartition(":")[2]))) as client:
        client.settimeout(PATIENCE_S)
        with broker.accept() as opened:
            yield client, opened


@pytest.fixture
def tapped(cluster: Cluster) -> Iterator[Tap]:
    with tap(address(cluster), interval_ms=50) as made:
        yield made
        assert not made.failures
