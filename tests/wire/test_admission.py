"""The limits of connections and of the bytes of requests. Numbers in ids are sections of shareq/wire/BEHAVIOUR.md."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from shareq import Admin, Cluster
from shareq.model.configs import BrokerConfig
from shareq.model.connection_configs import CREATION_RATE, MAX_CONNECTIONS, MAX_PER_IP, PER_IP_OVERRIDES
from shareq.model.errors import ConfigException
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.wire.admission import QUEUED_MAX_BYTES, SMALL_BYTES, Admission, RequestMemory
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, eventually
from tests.wire.raw import Raw

METADATA = MetadataRequest(topics=())
LARGE = 4 * SMALL_BYTES


class Peer:
    """A connection that may begin a request or not."""

    def __init__(self, memory: RequestMemory, size: int) -> None:
        self.memory, self.size, self.reads = memory, size, False

    def regulate(self) -> None:
        self.reads = self.memory.begins(self, self.size)


def peers(limit: int, *sizes: int) -> tuple[RequestMemory, list[Peer]]:
    memory = RequestMemory({QUEUED_MAX_BYTES: limit}.__getitem__)
    made = [Peer(memory, size) for size in sizes]
    for one in made:
        one.regulate()
    return memory, made


def test_large_requests_begin_one_after_the_other_above_the_limit() -> None:
    memory, (first, last, waits, waits_too) = peers(LARGE + 1, LARGE, LARGE, LARGE, LARGE)
    assert (first.reads, last.reads, waits.reads, waits_too.reads) == (True, True, False, False)
    memory.hold(-LARGE)
    assert (waits.reads, waits_too.reads, memory.held_bytes) == (True, False, 2 * LARGE)
    memory.hold(-2 * LARGE)
    assert (waits_too.reads, memory.held_bytes) == (True, LARGE)


def test_small_requests_are_not_held_back() -> None:
    _, (large, small) = peers(0, LARGE, SMALL_BYTES)
    assert (large.reads, small.reads) == (False, True)


def test_minus_one_is_no_limit() -> None:
    _, made = peers(-1, *[LARGE] * 10)
    assert all(one.reads for one in made)


def test_a_lost_connection_does_not_wait() -> None:
    memory, (_, lost, waits) = peers(1, LARGE, LARGE, LARGE)
    memory.forget(lost)
    memory.hold(-LARGE)
    assert (lost.reads, waits.reads, memory.held_bytes) == (False, True, LARGE)


def test_new_connections_come_at_a_rate() -> None:
    """A second's worth may come at once; then each waits for its part of a second."""
    admission = Admission({CREATION_RATE: 4}.__getitem__)
    assert [admission.pause_s(10.0) for _ in range(5)] == [0, 0, 0, 0, 0.25]
    assert admission.pause_s(10.125) == pytest.approx(0.125)
    assert [admission.pause_s(10.25), admission.pause_s(10.25)] == [0, pytest.approx(0.25)]
    assert [admission.pause_s(99.0) for _ in range(5)] == [0, 0, 0, 0, 0.25]


def test_a_caller_that_waits_for_a_place_is_called_once() -> None:
    """A full listener asks again each second."""
    admission = Admission({MAX_CONNECTIONS: 1, MAX_PER_IP: 1, PER_IP_OVERRIDES: ""}.__getitem__)
    assert admission.enter("10.0.0.1")
    assert admission.is_full
    called: list[str] = []
    for name in ("one", "other"):
        call = partial(called.append, name)
        for _ in range(3):
            admission.when_free(call)
    admission.leave("10.0.0.1")
    admission.enter("10.0.0.1")
    admission.leave("10.0.0.1")
    assert called == ["one", "other"]


def test_without_a_rate_none_comes() -> None:
    assert Admission({CREATION_RATE: 0}.__getitem__).pause_s(1.0) == float("inf")


def test_an_address_has_its_own_limit() -> None:
    limits = {MAX_PER_IP: 1, PER_IP_OVERRIDES: "10.0.0.1:2, [::0:1]:0"}
    admission = Admission(limits.__getitem__)
    assert [admission.enter("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert [admission.enter("10.0.0.2"), admission.enter("10.0.0.2"), admission.enter("::1")] == [True, False, False]


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:", "10.0.0.1:-1", "example.com:5", ":5", "10.0.0.1:5;"])
def test_limits_of_addresses_in_another_form_are_refused(text: str) -> None:
    with pytest.raises(ConfigException, match="must be an address and a number"):
        BrokerConfig({PER_IP_OVERRIDES: text})


# ---- a server --------------------------------------------------------------------------------------------------------


@contextmanager
def served(**config: int) -> Iterator[Server]:
    configs = {key.replace("_", "."): value for key, value in config.items()}
    with Cluster(brokers=1, seed=7, config=configs) as cluster, Server(cluster) as server:
        yield server
        assert list(server.failures) == []


def test_an_address_has_a_limit_of_connections() -> None:
    """BEHAVIOUR.md, 2.1, rule 9."""
    with served(max_connections_per_ip=2) as server:
        with Raw(server.ports[0]) as first, Raw(server.ports[0]) as second:
            assert first.ask(METADATA).brokers
            assert second.ask(METADATA).brokers
            with Raw(server.ports[0]) as refused:
                assert refused.closed_by_server()
            assert first.ask(METADATA).brokers
        eventually(lambda: len(server.connections), 0)
        with Raw(server.ports[0]) as later:
            assert later.ask(METADATA).brokers


def test_connections_above_the_rate_wait() -> None:
    """BEHAVIOUR.md, 2.1, rule 9. The rate may be changed meanwhile."""
    with (
        served() as server,
        Admin({"bootstrap.servers": server.cluster.bootstrap_servers}) as admin,
        Raw(server.ports[0]) as first,
    ):
        assert first.ask(METADATA).brokers
        admin.incremental_alter_configs("broker", "", {CREATION_RATE: 0})
        with Raw(server.ports[0]) as second:
            sent = second.send(METADATA)
            assert first.ask(METADATA).brokers
            assert len(server.connections) == 1
            admin.incremental_alter_configs("broker", "", {CREATION_RATE: 10})
            assert second.receive()[0] == sent


def test_a_connection_above_the_limit_waits_for_its_place() -> None:
    """BEHAVIOUR.md, 2.1, rule 9."""
    with served(max_connections=1) as server:
        with Raw(server.ports[0]) as first:
            assert first.ask(METADATA).brokers
            waiting = Raw(server.ports[0])
            sent = waiting.send(METADATA)
            assert first.ask(METADATA).brokers
            assert len(server.connections) == 1
        assert waiting.receive()[0] == sent
        waiting.close()


def test_large_requests_of_many_connections_share_a_memory() -> None:
    """BEHAVIOUR.md, 2.1, rule 9. The second large request is not read until the first one is gone."""
    head = struct.pack(">ih", LARGE, ProduceRequest.API_KEY)
    with served(queued_max_request_bytes=LARGE) as server:
        address = ("127.0.0.1", server.ports[0])
        first, second = (socket.create_connection(address, PATIENCE_S) for _ in range(2))
        with first, second:
            first.sendall(head + bytes(SMALL_BYTES))
            eventually(lambda: server.memory.held_bytes, LARGE + 4)
            second.sendall(head)
            eventually(lambda: [c._reading for c in list(server.connections)].count(False), 1)
            with Raw(server.ports[0]) as small:
                assert small.ask(METADATA).brokers
            assert server.memory.held_bytes == LARGE + 4
            first.close()
            eventually(lambda: [c._reading for c in list(server.connections)], [True])
            assert server.memory.held_bytes == LARGE + 4, "now of the second one"
        eventually(lambda: server.memory.held_bytes, 0)
