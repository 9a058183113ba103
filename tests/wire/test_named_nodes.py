"""The cluster and the node that a client names in ApiVersions (KIP-1242)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq import Cluster, KafkaException, Producer, ShareConsumer
from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import encode_response
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, QUICK, take
from tests.wire.named_nodes import FETCH, assert_nodes_are_checked
from tests.wire.raw import quiet_ports
from tests.wire.scripted import Client, ScriptedBroker, versions


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as made:
        yield made


def named(broker: ScriptedBroker) -> list[tuple[int, str | None, int]]:
    """The version of each ApiVersions request, its cluster and its node."""
    asked = broker.requests(ApiVersionsRequest)
    return [(one.header.api_version, one.request.cluster_id, one.request.node_id) for one in asked]


def test_connections_after_the_first_name_cluster_and_node(broker: ScriptedBroker) -> None:
    with Client(broker) as client:
        client.learn_brokers(broker)
        client.send(FETCH, broker.port)
        broker.wait_for(ApiVersionsRequest, 2)
    assert named(broker) == [(5, None, -1), (5, "c", broker.port)]


def test_no_node_is_named_where_the_check_is_disabled(broker: ScriptedBroker) -> None:
    with Client(broker, metadata_cluster_check_enable=False) as client:
        client.learn_brokers(broker)
        client.send(FETCH, broker.port)
        broker.wait_for(ApiVersionsRequest, 2)
    assert named(broker) == [(5, None, -1)] * 2


def test_no_node_is_named_to_a_broker_that_has_not_version_5(broker: ScriptedBroker) -> None:
    with Client(broker) as client:
        client.learn_brokers(broker)
        key = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)
        refusal = ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=(key,))
        older = encode_response(RequestHeader(18, 0, correlation_id=1), refusal)  # v0, which every client decodes
        broker.answers[ApiVersionsRequest] = lambda peer, request: older if request.cluster_id else versions()
        client.send(FETCH, broker.port)
        broker.wait_for(type(FETCH))
    assert named(broker) == [(5, None, -1), (5, "c", broker.port), (4, None, -1)]


def test_a_client_that_reached_another_node_bootstraps_again(broker: ScriptedBroker) -> None:
    with ScriptedBroker() as moved, Client(broker) as client:
        client.learn_brokers(broker, moved)
        refusal = ApiVersionsResponse(error_code=Errors.REBOOTSTRAP_REQUIRED)
        moved.answers[ApiVersionsRequest] = lambda peer, request: refusal if request.cluster_id else versions()
        refused = client.ask(FETCH, moved.port)
        assert refused.error is Errors.NETWORK_EXCEPTION
        assert f"is no longer broker {moved.port} at {moved.address}, or of another cluster" in refused.reason
        moved.wait(lambda: moved.peers[0].closed)
        unknown = client.ask(FETCH, broker.port)
        assert unknown.reason == f"the address of broker {broker.port} is unknown"
        now = MetadataResponse(brokers=(broker.node,), cluster_id="other", controller_id=-1)
        broker.answers[MetadataRequest] = lambda peer, request: now
        client.ask(MetadataRequest())
        client.send(FETCH, broker.port)
        broker.wait_for(ApiVersionsRequest, 2)
    assert named(broker) == [(5, None, -1), (5, "other", broker.port)]


def test_nodes_of_a_served_cluster_are_checked() -> None:
    with Cluster(brokers=2, clock="wall", config=QUICK) as cluster, cluster.serve() as server:
        assert_nodes_are_checked(server.bootstrap_servers)


def test_clients_go_on_with_another_cluster_at_the_same_address() -> None:
    """A server in memory that is started again has another cluster id."""
    ports = quiet_ports(1)
    producer: Producer | None = None
    for seed, value in ((1, "before"), (2, "after")):
        with (
            Cluster(brokers=1, seed=seed, clock="wall", config=QUICK) as cluster,
            Server(cluster, ports=ports) as server,
        ):
            cluster.create_topic("t", 1)
            cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
            if producer is None:
                conf = {"bootstrap.servers": server.bootstrap_servers}
                producer = Producer({**conf, "linger.ms": 0})
                consumer = ShareConsumer({**conf, "group.id": "g"})
                consumer.subscribe(["t"])
            producer.produce("t", value)
            assert producer.flush(PATIENCE_S) == 0
            assert [message.value() for message in take(consumer, 1)] == [value.encode()]
            connection: Any = consumer._connection
            assert connection._host.directory._cluster_id == cluster.image.cluster_id
    consumer.close()
    assert producer is not None
    producer.close()


@pytest.mark.parametrize("given", ["maybe", 7, None])
def test_the_check_is_true_or_false(given: object) -> None:
    with pytest.raises(KafkaException, match=r"metadata\.cluster\.check\.enable"):
        Producer({"bootstrap.servers": "127.0.0.1:1", "metadata.cluster.check.enable": given})
