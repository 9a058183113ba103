"""The limits of connections and of the bytes of requests. Numbers in ids are sections of shareq/wire/BEHAVIOUR.md."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from shareq import Admin, Cluster, NewTopic
from shareq.log.records import encode_batch
from shareq.model.configs import BrokerConfig
from shareq.model.connection_configs import CREATION_RATE, MAX_CONNECTIONS, MAX_PER_IP, PER_IP_OVERRIDES
from shareq.model.errors import ConfigException
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.wire.admission import LOOK_S, QUEUED_MAX_BYTES, SLOWEST_BYTES, SMALL_BYTES, Admission, RequestMemory
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, eventually
from tests.wire.raw import Raw

METADATA = MetadataRequest(topics=())
LARGE = 4 * SMALL_BYTES
HEAD = SMALL_BYTES // 2


class Peer:
    """A connection with an unfinished request of `size` bytes, of which `arrived_bytes` have arrived."""

    def __init__(self, memory: RequestMemory, size: int) -> None:
        self.memory, self.size = memory, size
        self.arrived_bytes = 0
        self.reads = self.idle = True
        self.aborted = False

    def arrive(self, count: int) -> None:
        self.arrived_bytes += count
        self.memory.hold(count)
        self.regulate()

    def regulate(self) -> None:
        self.reads = self.memory.may_read(self, self.size)

    def finish(self) -> None:
        """The request has arrived in full, and is answered."""
        held, self.arrived_bytes, self.size = self.arrived_bytes, 0, 0
        self.regulate()
        self.memory.hold(-held)

    def abort(self) -> None:
        self.aborted = True
        self.finish()


class Looks:
    """What is called after LOOK_S."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def later(self, delay_s: float, call: Callable[[], object]) -> None:
        assert delay_s == LOOK_S
        self.calls.append(call)

    def look(self) -> None:
        (call,), self.calls = self.calls, []
        call()


def peers(limit: int, *sizes: int) -> tuple[RequestMemory, list[Peer], Looks]:
    """Peers of whose requests half of a small one has arrived."""
    looks = Looks()
    memory = RequestMemory({QUEUED_MAX_BYTES: limit}.__getitem__, looks.later)
    made = [Peer(memory, size) for size in sizes]
    for one in made:
        one.arrive(HEAD)
    return memory, made, looks


def read(made: list[Peer]) -> list[bool]:
    return [one.reads for one in made]


def test_what_is_announced_and_has_not_arrived_takes_no_memory() -> None:
    memory, made, _ = peers(LARGE, *[100 * LARGE] * 3, LARGE)
    assert (all(read(made)), memory.held_bytes) == (True, 4 * HEAD)


def test_above_the_limit_the_smallest_large_request_arrives() -> None:
    memory, made, _ = peers(3 * HEAD, LARGE + 1, LARGE + 2, LARGE)
    for one in made:
        one.regulate()
    assert read(made) == [False, False, True]
    made[2].arrive(LARGE - HEAD)
    made[2].finish()
    assert (read(made[:2]), memory.held_bytes) == ([True, True], 2 * HEAD), "the memory is free again"
    made[1].arrive(2 * HEAD)
    assert read(made[:2]) == [True, False]
    memory.forget(made[0])
    assert made[1].reads, "it is alone"


def test_small_requests_are_not_held_back() -> None:
    _, made, _ = peers(0, LARGE, LARGE, SMALL_BYTES)
    assert read(made) == [True, False, True]


def test_minus_one_is_no_limit() -> None:
    _, made, _ = peers(-1, *[LARGE] * 10)
    assert all(read(made))


def test_one_that_sends_too_slowly_while_others_wait_is_closed() -> None:
    _, made, looks = peers(2 * HEAD, 3 * SLOWEST_BYTES, 4 * SLOWEST_BYTES)
    slow, waits = made
    slow.arrive(SLOWEST_BYTES)
    looks.look()
    assert not slow.aborted
    slow.arrive(SLOWEST_BYTES - 1)
    looks.look()
    assert (slow.aborted, waits.aborted, waits.reads) == (True, False, True)
    looks.look()
    assert (waits.aborted, looks.calls) == (False, []), "no other request waits"


def test_one_that_waits_for_an_earlier_response_does_not_hold_back_others() -> None:
    _, made, looks = peers(0, LARGE, LARGE + 1)
    made[0].idle = False
    looks.look()
    for one in made:
        one.regulate()
    assert ([one.aborted for one in made], read(made)) == ([False, False], [False, True])


def test_nobody_is_closed_while_none_waits() -> None:
    _, (first, second), looks = peers(0, LARGE, LARGE)
    second.finish()
    looks.look()
    assert (first.aborted, first.reads, looks.calls) == (False, True, [])


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
    """BEHAVIOUR.md, 2.1, rule 9. The second large request is not read until the first one is gone: it sends nothing
    more, while another one waits."""
    head = struct.pack(">ih", LARGE, ProduceRequest.API_KEY)
    with served(queued_max_request_bytes=SMALL_BYTES) as server:
        address = ("127.0.0.1", server.ports[0])
        first, second = (socket.create_connection(address, PATIENCE_S) for _ in range(2))
        with first, second:
            first.sendall(head + bytes(SMALL_BYTES))
            eventually(lambda: server.memory.held_bytes, len(head) + SMALL_BYTES)
            second.sendall(head)
            eventually(lambda: [c._reading for c in list(server.connections)].count(False), 1)
            with Raw(server.ports[0]) as small:
                assert small.ask(METADATA).brokers
            assert server.memory.held_bytes == 2 * len(head) + SMALL_BYTES
            assert not first.recv(1), "closed after a while"
            eventually(lambda: [c._reading for c in list(server.connections)], [True])
            assert server.memory.held_bytes == len(head)
        eventually(lambda: server.memory.held_bytes, 0)


def test_announcements_of_large_requests_hold_nobody_back() -> None:
    """Three peers announce more than the memory and send nothing of it; a large request of another one is served."""
    head = struct.pack(">ih", 100_000_000, ProduceRequest.API_KEY)
    batch = encode_batch([(None, bytes(2 * SMALL_BYTES), (), 0)])
    with served() as server, ExitStack() as stack:
        with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
            admin.create_topics([NewTopic("orders", 1)]).check()
        for _ in range(3):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[0]), PATIENCE_S))
            peer.sendall(head)
        eventually(lambda: server.memory.held_bytes, 3 * len(head))
        topic = ProduceRequest.Topic(name="orders", partitions=(ProduceRequest.Partition(index=0, records=batch),))
        with Raw(server.ports[0]) as other:
            (answered,) = other.ask(ProduceRequest(topics=(topic,)), 9).responses
            assert not answered.partitions[0].error_code
