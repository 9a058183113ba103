"""Several listeners of a server: addresses, security and principals by listener.

Numbers in ids are sections of shareq/wire/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from shareq import Admin, Cluster, ListenerSecurity, Producer, ShareConsumer
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException, Errors
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.describe import DescribeClusterRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.wire.security.listener_address import ListenerAddress, listener_addresses
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, QUICK, eventually
from tests.wire.certificates import PASSWORD
from tests.wire.raw import Raw
from tests.wire.secured import Vault

BOTH = ("PLAINTEXT://127.0.0.1:0", "SASL_SSL://localhost:0")
TWO_PLAIN = ("INSIDE://127.0.0.1:0", "OUTSIDE://localhost:0")
PLAIN = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return Vault(tmp_path_factory.mktemp("vault"))


@pytest.fixture
def security(vault: Vault) -> ListenerSecurity:
    return ListenerSecurity(tls_cert=vault.server.cert, tls_key=vault.server.key, users={"alice": PASSWORD})


@pytest.fixture
def two() -> Iterator[Server]:
    """Two brokers with two plain listeners, and the topic `orders` with a partition on each broker."""
    with Cluster(brokers=2, clock="wall", config=PLAIN) as cluster, Server(cluster, listeners=TWO_PLAIN) as server:
        cluster.create_topic("orders", 2, replication_factor=1)
        yield server
        assert list(server.failures) == []


def ports_of(servers: str) -> list[int]:
    return [int(server.rpartition(":")[2]) for server in servers.split(",")]


@pytest.mark.parametrize(("name", "host"), [("INSIDE", "127.0.0.1"), ("OUTSIDE", "localhost")])
def test_a_client_gets_the_addresses_of_its_listener(two: Server, name: str, host: str) -> None:
    """2.23: in each response that has addresses."""
    ports = ports_of(two.listeners[name])
    places = {(broker_id, host, port) for broker_id, port in enumerate(ports)}
    image = two.cluster.image
    orders = image.topics["orders"]
    wrong = next(index for index, partition in enumerate(orders.partitions) if partition.leader != 0)
    with Raw(ports[0]) as raw:
        shown = raw.ask(MetadataRequest(topics=None))
        assert {(one.node_id, one.host, one.port) for one in shown.brokers} == places
        shown = raw.ask(DescribeClusterRequest())
        assert {(one.broker_id, one.host, one.port) for one in shown.brokers} == places
        find = FindCoordinatorRequest(key_type=CoordinatorType.GROUP, coordinator_keys=("g", "h", "i", "j"))

        def found() -> Any:
            return raw.ask(find).coordinators

        eventually(lambda: {one.error_code for one in found()}, {Errors.NONE})
        assert {(one.node_id, one.host, one.port) for one in found()} <= places
        fetch = FetchRequest.Topic(
            topic_id=orders.topic_id, partitions=(FetchRequest.Partition(partition=wrong, fetch_offset=0),)
        )
        shown = raw.ask(FetchRequest(max_wait_ms=0, min_bytes=1, topics=(fetch,)))
        assert {(one.node_id, one.host, one.port) for one in shown.node_endpoints} == places - {(0, host, ports[0])}


def test_records_pass_by_each_listener_and_principals_are_those_of_the_listener(
    vault: Vault, security: ListenerSecurity
) -> None:
    """2.23: confluent-kafka's clients and ours, on a plaintext listener and on one with TLS and a login."""
    config = {**QUICK, "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    config["super.users"] = "User:alice"
    with (
        Cluster(brokers=1, clock="wall", config=config) as cluster,
        Server(cluster, listeners=BOTH, security=security) as server,
    ):
        cluster.create_topic("orders")
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        secured = {"bootstrap.servers": server.listeners["SASL_SSL"], **vault.client_config("SCRAM-SHA-256")}
        with Producer(secured) as producer:
            producer.produce("orders", b"hello")
            assert producer.flush(PATIENCE_S) == 0
        with ShareConsumer({**secured, "group.id": "g"}) as consumer:
            consumer.subscribe(["orders"])
            while not (polled := consumer.poll(PATIENCE_S)):
                pass
            assert [message.value() for message in polled] == [b"hello"]
        theirs = confluent_kafka.admin.AdminClient(secured)
        assert "orders" in theirs.list_topics(timeout=PATIENCE_S).topics
        with Admin({"bootstrap.servers": server.listeners["PLAINTEXT"]}) as anonymous:
            assert anonymous.list_topics() == {}, "User:ANONYMOUS may describe none"
        assert server.client_settings == ""
        address = server.listeners["SASL_SSL"]
        (more,) = server.more_listeners
        assert more.startswith(f"{address}: clients set security.protocol=sasl_ssl, sasl.mechanism: PLAIN")
        assert list(server.failures) == []


def test_a_broker_that_ends_closes_all_of_its_listeners(two: Server) -> None:
    ports = [ports_of(servers)[1] for servers in two.listeners.values()]
    with Raw(ports[0]) as inside, Raw(ports[1]) as outside:
        assert {len(raw.ask(MetadataRequest(topics=())).brokers) for raw in (inside, outside)} == {2}
        two.cluster.kill_broker(1)  # type: ignore[attr-defined]
        assert inside.closed_by_server()
        assert outside.closed_by_server()
    two.cluster.start_broker(1)  # type: ignore[attr-defined]
    for port in ports:
        eventually(lambda port=port: brokers_at(port), 2)  # type: ignore[misc]    # called at once


def brokers_at(port: int) -> int:
    """The brokers in the metadata; 0 while the port is closed."""
    with suppress(OSError), Raw(port) as raw:
        return len(raw.ask(MetadataRequest(topics=())).brokers)
    return 0


def test_the_connections_of_a_broker_are_counted_over_its_listeners() -> None:
    """2.1 rule 9: the place of a connection by one listener is given to one that waits at another."""
    config = {**PLAIN, "max.connections": 1}
    with (
        Cluster(brokers=1, clock="wall", config=config) as cluster,
        Server(cluster, listeners=TWO_PLAIN) as server,
    ):
        inside, outside = (ports_of(servers)[0] for servers in server.listeners.values())
        with Raw(inside) as first:
            assert first.ask(MetadataRequest(topics=())).brokers
            waiting = Raw(outside)
            sent = waiting.send(MetadataRequest(topics=()))
            assert first.ask(MetadataRequest(topics=())).brokers
            assert len(server.connections) == 1
        assert waiting.receive()[0] == sent
        waiting.close()


# ---- what cannot work ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "must have different names, one at least"),
        (["PLAINTEXT://127.0.0.1:0", "plaintext://127.0.0.1:0"], "must have different names"),
        (["127.0.0.1:9092"], "must be NAME://host:port"),
        (["SSL://:9092"], "must be NAME://host:port"),
        (["SSL://127.0.0.1"], "must be NAME://host:port"),
        (["SSL://127.0.0.1:x"], "must be NAME://host:port"),
        (["SSL://127.0.0.1:70000"], "must be NAME://host:port"),
        (["SSL://alice@127.0.0.1:1"], "must be NAME://host:port"),
        (["SSL://127.0.0.1:1/path"], "must be NAME://host:port"),
        (["INSIDE://127.0.0.1:1"], "listener.security.protocol.map has no protocol for INSIDE"),
    ],
)
def test_a_listener_of_another_form_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        listener_addresses(texts, BrokerConfig())


def test_names_have_the_protocols_of_the_map() -> None:
    config = BrokerConfig({"listener.security.protocol.map": " inside : plaintext, OUTSIDE:SASL_SSL"})
    inside, outside = listener_addresses(["INSIDE://[::1]:9092", "outside://kafka.example:0"], config)
    assert inside == ListenerAddress("INSIDE", "PLAINTEXT", "::1", 9092)
    assert outside == ListenerAddress("OUTSIDE", "SASL_SSL", "kafka.example", None)
    assert [(one.has_tls, one.has_login) for one in (inside, outside)] == [(False, False), (True, True)]
    for wrong in ("INSIDE", "INSIDE:TLS", ":SSL"):
        with pytest.raises(ConfigException, match="must be NAME:PROTOCOL"):
            listener_addresses([], BrokerConfig({"listener.security.protocol.map": wrong}))


@pytest.mark.parametrize(
    ("texts", "given", "message"),
    [
        (["SSL://127.0.0.1:0"], (), "listener SSL: SSL needs tls_cert"),
        (["SASL_PLAINTEXT://127.0.0.1:0"], ("tls",), "SASL_PLAINTEXT needs users"),
        (["PLAINTEXT://127.0.0.1:0"], ("tls",), "tls_cert is given, and no listener has TLS"),
        (["SSL://127.0.0.1:0"], ("tls", "users"), "users are given, and no listener has a login"),
        (["SSL://127.0.0.1:9092", "PLAINTEXT://127.0.0.1:9093"], ("tls",), "both want port 9093 of 127.0.0.1"),
    ],
)
def test_listeners_that_cannot_work_are_refused(
    vault: Vault, texts: list[str], given: tuple[str, ...], message: str
) -> None:
    tls = {"tls_cert": vault.server.cert, "tls_key": vault.server.key} if "tls" in given else {}
    users = {"alice": PASSWORD} if "users" in given else None
    with Cluster(brokers=2, clock="wall") as cluster, pytest.raises(ConfigException, match=message):
        cluster.serve(listeners=texts, security=ListenerSecurity(users=users, **tls))


def test_the_only_listener_has_the_name_of_its_protocol(security: ListenerSecurity) -> None:
    with Cluster(brokers=1, clock="wall") as cluster:
        for given, name in ((None, "PLAINTEXT"), (security, "SASL_SSL")):
            with Server(cluster, security=given) as server:
                assert server.listeners == {name: server.bootstrap_servers}


def test_listeners_exclude_a_host_and_ports() -> None:
    with Cluster(brokers=1, clock="wall") as cluster, pytest.raises(ConfigException, match="name the hosts and ports"):
        cluster.serve(ports=9092, listeners=["PLAINTEXT://127.0.0.1:0"])
