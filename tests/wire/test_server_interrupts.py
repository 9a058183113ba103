"""An interrupt at any step of starting or closing a server leaves no thread and no open port."""

from __future__ import annotations

import socket
import threading

import pytest

from shareq import Cluster
from shareq.wire.acceptor import bind
from shareq.wire.server import Server
from tests.client.interrupting import interrupted, places, steps_of


def free_ports(number: int) -> list[int]:
    sockets = [bind("127.0.0.1", 0) for _ in range(number)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def server_threads() -> set[threading.Thread]:
    """Running server threads; other tests may have some in the same process."""
    return {thread for thread in threading.enumerate() if thread.name == "shareq-server"}


def check_nothing_is_left(ports: list[int], others: set[threading.Thread]) -> None:
    assert server_threads() <= others
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)), "the port is open"


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_an_interrupted_start_leaves_nothing_open(clock: str) -> None:
    """After an interrupted start the cluster can be served again."""
    ports, others = free_ports(2), server_threads()
    with Cluster(brokers=2, clock=clock) as cluster:
        started: list[Server] = []

        def start() -> None:
            started.append(Server(cluster, ports=ports))

        steps = steps_of(start)
        started.pop().close()
        hits = lost = 0
        for at in places(steps):
            hits += interrupted(start, at)
            for server in started:
                server.close()
            started.clear()
            # The interrupt can come after the start of the server, before `started` has it.
            if cluster._server is not None and not cluster._server.closed:
                cluster._server.close()
                lost += 1
            check_nothing_is_left(ports, others)
        assert hits > 20
        assert lost < 3


def test_an_interrupted_close_closes_everything() -> None:
    """An interrupted close either completes or can be repeated."""
    ports, others = free_ports(2), server_threads()
    with Cluster(brokers=2) as cluster:
        server = Server(cluster, ports=ports)
        steps = steps_of(server.close)
        hits = 0
        for at in places(steps):
            server = Server(cluster, ports=ports)
            with socket.create_connection(("127.0.0.1", ports[0])):
                hits += interrupted(server.close, at)
                server.close()
            check_nothing_is_left(ports, others)
        assert hits > 20
