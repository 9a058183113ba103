"""A served cluster: ports, brokers that stop and start, broken connections, clocks, clients in process and over TCP."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq import Admin, Cluster, ConfigException, IllegalStateException, Producer, ShareConsumer
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.events import RecordsChanged, ShareSessionClosed, ShareSessionOpened
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.wire.server import Server
from tests.polling import PATIENCE_S
from tests.wire.raw import Raw, quiet_ports, topic_id

EVERYTHING = MetadataRequest(topics=None)
LONG_MS = 3_600_000
"""For waits that an event must end before their time: 6 minutes of real time on a clock of factor 10."""


@pytest.fixture(params=["virtual", 10.0], ids=["virtual", "scaled"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with make_cluster(request.param, lock_ms=LONG_MS) as made:
        yield made


def make_cluster(clock: str | float, lock_ms: int = 30_000) -> Cluster:
    """Three brokers, a topic of three partitions, and an initialized group. Idle connections stay open."""
    config = {
        "connections.max.idle.ms": 24 * LONG_MS,
        "group.share.record.lock.duration.ms": lock_ms,
        "group.share.max.record.lock.duration.ms": LONG_MS,
    }
    made = Cluster(brokers=3, seed=7, clock=clock, config=config)
    made.create_topic("orders", 3)
    Admin({"bootstrap.servers": made.bootstrap_servers}).alter_share_group_offsets("g", {"orders": 0}).check()
    return made


def leader(cluster: Cluster, partition: int = 0) -> int:
    return cluster.image.topics["orders"].partitions[partition].leader


def produce(cluster: Cluster, *values: bytes, partition: int = 0) -> ProduceRequest:
    records: list[Any] = [(None, value, [], cluster.now_ms) for value in values]
    part = ProduceRequest.Partition(index=partition, records=encode_batch(records))
    return ProduceRequest(topics=(ProduceRequest.Topic(topic_id=topic_id(cluster, "orders"), partitions=(part,)),))


def share_fetch(cluster: Cluster, epoch: int = 0, member_id: str = "member", **fields: Any) -> ShareFetchRequest:
    part = ShareFetchRequest.Partition(partition_index=0)
    topic = ShareFetchRequest.Topic(topic_id=topic_id(cluster, "orders"), partitions=(part,))
    return ShareFetchRequest(
        group_id="g", member_id=member_id, share_session_epoch=epoch, topics=(topic,) if epoch == 0 else (), **fields
    )


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    """(first offset, last offset, delivery count) of the records acquired from the only partition."""
    (topic,) = answer.responses
    (part,) = topic.partitions
    assert part.error_code is Errors.NONE
    return [(one.first_offset, one.last_offset, one.delivery_count) for one in part.acquired_records]


def refuses(port: int) -> bool:
    """True if the port is closed. If a connection is still accepted, wait until the server closes it."""
    try:
        with Raw(port) as late:
            assert late.closed_by_server()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the connection was pending when the port closed
        return False
    return False


def wait_for_event(cluster: Cluster, server: Server, event: type, times: int = 1) -> None:
    """Wait until the journal has `times` events of the type: a request on another connection may be in flight."""
    with Raw(server.ports[next(iter(cluster.brokers_alive))]) as other:
        while len(cluster.journal.select(event)) < times:
            other.ask(EVERYTHING)


def connect(port: int) -> Raw:
    """Connect to a port that is about to open."""
    while True:
        try:
            return Raw(port)
        except ConnectionRefusedError:
            continue


# ---- serving ---------------------------------------------------------------------------------------------------------


def test_metadata_has_the_addresses_of_the_ports(cluster: Cluster) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server:
        assert isinstance(server, Server)
        with Raw(server.ports[1]) as raw:
            shown = {broker.node_id: (broker.host, broker.port) for broker in raw.ask(EVERYTHING).brokers}
            assert shown == dict(enumerate(("127.0.0.1", port) for port in server.ports))
            found = raw.ask(FindCoordinatorRequest(coordinator_keys=("g",))).coordinators[0]
            assert (found.host, found.port) == shown[found.node_id]
    assert server.bootstrap_servers == ",".join(f"127.0.0.1:{port}" for port in server.ports)
    assert all(refuses(port) for port in server.ports)


def test_a_cluster_has_one_server_at_a_time(cluster: Cluster) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server:
        with pytest.raises(IllegalStateException, match=f"is served at {server.bootstrap_servers} already"):
            Server(cluster)
        assert isinstance(server, Server)
        ports = server.ports
    server.close()
    with Server(cluster, ports=ports) as again, Raw(ports[2]) as raw:
        assert again.bootstrap_servers == server.bootstrap_servers
        assert raw.ask(EVERYTHING).brokers


def test_closing_the_cluster_closes_its_server(cluster: Cluster) -> None:
    server = Server(cluster, ports=quiet_ports(3))
    assert isinstance(server, Server)
    with Raw(server.ports[0]) as raw:
        assert raw.ask(EVERYTHING).brokers
        cluster.close()
        assert raw.closed_by_server()
    assert server.closed
    assert refuses(server.ports[0])
    with pytest.raises(IllegalStateException, match="is closed"):
        Server(cluster)


def test_error_names_a_port_in_use(cluster: Cluster) -> None:
    (port,) = quiet_ports(1)
    message = f"port {port} on 127.0.0.1 is in use by another program: stop that"
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ConfigException, match=message):
        Server(cluster, ports=[0, port, 0])
    with Server(cluster, ports=[0, port, 0]) as server:
        assert isinstance(server, Server)
        assert server.ports[1] == port


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"ports": 0}, r"ports=0: the first of 3 ports must be 1\.\.65533", id="port 0 for all"),
        pytest.param({"ports": 65534}, r"ports=65534: the first of 3 ports must be", id="last port above 65535"),
        pytest.param({"ports": True}, r"ports=True", id="bool for a number"),
        pytest.param({"ports": [1, 2]}, r"must be 3, one for each broker", id="too few"),
        pytest.param({"ports": [0, 70000, 0]}, r"70000 must be 0\.\.65535", id="above 65535"),
        pytest.param({"ports": [0, "x", 0]}, r"'x' must be", id="text for a number"),
        pytest.param({"ports": [0, 4711, 4711]}, r"must differ, one for each broker", id="duplicate ports"),
        *(
            pytest.param({"host": host}, r"clients connect to this name", id=f"wildcard {host!r}")
            for host in ("0.0.0.0", "0", "0x0", "00.0", "::", "::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0", "", "*")
        ),
        pytest.param(
            {"host": "no.such.host.invalid"}, r"host='no\.such\.host\.invalid': cannot be resolved", id="unknown host"
        ),
        pytest.param(
            {"host": "192.0.2.1"},
            r"host='192\.0\.2\.1': not an address of this machine",
            id="address of another machine",
        ),
    ],
)
def test_invalid_addresses_are_refused(arguments: dict[str, Any], message: str) -> None:
    with Cluster(brokers=3, clock="wall") as cluster, pytest.raises(ConfigException, match=message):
        cluster.serve(**arguments)


# ---- brokers that stop and start -------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [Cluster.kill_broker, Cluster.stop_broker], ids=["killed", "stopped"])
def test_a_port_closes_and_reopens_with_its_broker(cluster: Cluster, end: Callable[[Cluster, int], None]) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server, Raw(server.ports[0]) as zero, Raw(server.ports[1]) as one:
        lost = leader(cluster)
        mine, other = (zero, one) if lost == 0 else (one, zero)
        with Raw(server.ports[lost]) as waiting:
            waiting.send(share_fetch(cluster, max_wait_ms=LONG_MS))
            assert mine.ask(EVERYTHING).brokers
            end(cluster, lost)
            assert mine.closed_by_server() == (lost in (0, 1))
            while not waiting.closed_by_server():
                continue  # a stopped broker may send a response first
        while not refuses(server.ports[lost]):
            continue
        seen = other.ask(EVERYTHING)
        assert lost not in {broker.node_id for broker in seen.brokers}
        assert leader(cluster) not in (lost, -1)
        with Raw(server.ports[leader(cluster)]) as moved:
            assert moved.ask(produce(cluster, b"a")).responses[0].partitions[0].error_code is Errors.NONE
        cluster.start_broker(lost)
        with connect(server.ports[lost]) as back:
            assert len(back.ask(EVERYTHING).brokers) == 3
        assert not server.failures


def test_a_port_taken_while_its_broker_is_down_opens_when_it_is_released(cluster: Cluster) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server:
        cluster.kill_broker(2)
        while not refuses(server.ports[2]):
            continue
        with socket.create_server(("127.0.0.1", server.ports[2])) as thief:
            cluster.start_broker(2)
            thief.settimeout(0)
            with Raw(server.ports[0]) as other:
                assert len(other.ask(EVERYTHING).brokers) == 3
        with connect(server.ports[2]) as back:
            assert len(back.ask(EVERYTHING).brokers) == 3


def test_the_port_of_a_stopped_broker_opens_when_it_starts(cluster: Cluster) -> None:
    cluster.kill_broker(1)
    with Server(cluster, ports=quiet_ports(3)) as server:
        assert refuses(server.ports[1])
        cluster.start_broker(1)
        with connect(server.ports[1]) as back:
            assert len(back.ask(EVERYTHING).brokers) == 3


def test_not_leader_response_has_the_leader_and_its_address(cluster: Cluster) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server:
        other = next(b for b in cluster.brokers_alive if b != leader(cluster))
        with Raw(server.ports[other]) as raw:
            answer = raw.ask(share_fetch(cluster))
        (part,) = answer.responses[0].partitions
        assert part.error_code is Errors.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader.leader_id == leader(cluster)
        endpoints = {(node.node_id, node.host, node.port) for node in answer.node_endpoints}
        assert (leader(cluster), "127.0.0.1", server.ports[leader(cluster)]) in endpoints


# ---- broken connections ----------------------------------------------------------------------------------------------


def test_a_closed_connection_releases_its_locks(cluster: Cluster) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server:
        port = server.ports[leader(cluster)]
        with Raw(port) as first, Raw(port) as second:
            first.ask(produce(cluster, b"a", b"b"))
            assert acquired(first.ask(share_fetch(cluster, member_id="first"))) == [(0, 1, 1)]
            second.send(share_fetch(cluster, member_id="second", max_wait_ms=LONG_MS))
            wait_for_event(cluster, server, ShareSessionOpened, 2)
            first.close()
            assert acquired(second.receive()[1]) == [(0, 1, 2)]
        closed = cluster.journal.select(ShareSessionClosed)[0].event
        assert isinstance(closed, ShareSessionClosed)
        assert closed.member_id == "first"


def test_a_connection_that_breaks_during_a_fetch_leaves_no_session(cluster: Cluster) -> None:
    with Server(cluster, ports=quiet_ports(3)) as server:
        port = server.ports[leader(cluster)]
        with Raw(port) as other:
            with Raw(port) as waiting:
                waiting.send(share_fetch(cluster, member_id="gone", max_wait_ms=LONG_MS))
                wait_for_event(cluster, server, ShareSessionOpened)
            wait_for_event(cluster, server, ShareSessionClosed)
            other.ask(produce(cluster, b"a"))
            assert acquired(other.ask(share_fetch(cluster, member_id="other"))) == [(0, 0, 1)]


# ---- clocks ----------------------------------------------------------------------------------------------------------


def test_advancing_a_virtual_clock_expires_a_lock() -> None:
    """A lock of 30 s expires on a virtual clock exactly when the test has advanced it by 30 s."""
    with make_cluster("virtual") as cluster, Server(cluster, ports=quiet_ports(3)) as server:
        port = server.ports[leader(cluster)]
        with Raw(port) as first, Raw(port) as second:
            first.ask(produce(cluster, b"a"))
            assert acquired(first.ask(share_fetch(cluster, member_id="first"))) == [(0, 0, 1)]
            second.send(share_fetch(cluster, member_id="second", max_wait_ms=LONG_MS))
            wait_for_event(cluster, server, ShareSessionOpened, 2)
            cluster.advance(29_999)
            assert first.ask(EVERYTHING).brokers
            assert second.silent
            cluster.advance(1)
            assert acquired(second.receive()[1]) == [(0, 0, 2)]


def test_a_scaled_clock_advances_without_calls() -> None:
    """A minute of waiting takes 0.6 s. The request is a plain Fetch, because a share fetch needs coordinators, whose
    timeouts of seconds are milliseconds on this clock and expire on a busy machine.
    """
    with Cluster(brokers=1, clock=100.0, config={"connections.max.idle.ms": 24 * LONG_MS}) as cluster:
        cluster.create_topic("orders")
        part = FetchRequest.Partition(partition=0, fetch_offset=0)
        topic = FetchRequest.Topic(topic_id=topic_id(cluster, "orders"), partitions=(part,))
        with Server(cluster, ports=quiet_ports(1)) as server, Raw(server.ports[0]) as raw:
            before_ms = cluster.now_ms
            answer = raw.ask(FetchRequest(topics=(topic,), max_wait_ms=60_000))
            assert cluster.now_ms - before_ms >= 60_000
        (found,) = answer.responses[0].partitions
        assert (found.error_code, found.records) == (Errors.NONE, ())


# ---- clients in process and over TCP ---------------------------------------------------------------------------------


def test_clients_in_process_and_over_tcp_share_a_group() -> None:
    with make_cluster("wall") as cluster, Server(cluster, ports=quiet_ports(3)) as server:
        with Raw(server.ports[leader(cluster)]) as raw:
            inside = Producer({"bootstrap.servers": cluster.bootstrap_servers})
            inside.produce("orders", b"from within", partition=0)
            inside.flush()
            raw.ask(produce(cluster, b"from without"))
            assert acquired(raw.ask(share_fetch(cluster, max_records=1, share_acquire_mode=1))) == [(0, 0, 1)]
            with ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}) as consumer:
                consumer.subscribe(["orders"])
                (message,) = consumer.poll(PATIENCE_S)
                assert message.value() == b"from without"
                raw.close()
                assert [one.value() for one in consumer.poll(PATIENCE_S)] == [b"from within"]
        changes = [entry.event for entry in cluster.journal.select(RecordsChanged)]
        assert "member" in {one.member_id for one in changes if isinstance(one, RecordsChanged)}, "the member over TCP"
