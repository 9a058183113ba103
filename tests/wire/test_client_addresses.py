"""Addresses of brokers: bootstrap servers, and node addresses from responses."""

from __future__ import annotations

from typing import Any

import pytest

from shareq import Admin, Producer, ShareConsumer
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.cluster import FindCoordinatorResponse, MetadataResponse
from shareq.model.messages.share_fetch import NodeEndpoint, ShareAcknowledgeResponse, ShareFetchResponse
from shareq.wire.address import Address
from shareq.wire.client.addresses import BrokerDirectory, parse_bootstrap_servers

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        pytest.param("a:9092", [("a", 9092)], id="one"),
        pytest.param("a:9092,b:9093", [("a", 9092), ("b", 9093)], id="several"),
        pytest.param(" a:9092 , ,b:9093,", [("a", 9092), ("b", 9093)], id="blanks and empty entries"),
        pytest.param("a:9092,a:9092", [("a", 9092)], id="duplicates"),
        pytest.param("127.0.0.1:1", [("127.0.0.1", 1)], id="a number, the smallest port"),
        pytest.param("PLAINTEXT://a:9092", [("a", 9092)], id="as test containers print it"),
        pytest.param("a:1,plaintext://b:2/ , Plaintext://[::1]:3/x", [("a", 1), ("b", 2), ("::1", 3)], id="in a list"),
        pytest.param("[::1]:65535", [("::1", 65535)], id="IPv6, the largest port"),
    ],
)
def test_bootstrap_servers_are_parsed(servers: str, addresses: list[tuple[str, int]]) -> None:
    assert list(parse_bootstrap_servers(servers)) == addresses
    assert list(parse_bootstrap_servers(servers, "plaintext")) == addresses


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        pytest.param(",", "must name at least one server", id="empty"),
        pytest.param("a", "'a' is not host:port", id="no port"),
        pytest.param(":9092", "':9092' is not host:port", id="no host"),
        pytest.param("::1:9092", "needs brackets", id="IPv6 without brackets"),
        pytest.param("a:", "must have a port in 1..65535", id="empty port"),
        pytest.param("a:0", "must have a port in 1..65535", id="port 0"),
        pytest.param("a:65536", "must have a port in 1..65535", id="port too large"),
        pytest.param("a:http", "must have a port in 1..65535", id="port by name"),
        pytest.param("good:1,a:-1", "'a:-1' must have a port", id="second entry invalid"),
        pytest.param("http://a:1", "'http://a:1' must be host:port, inproc://name, or of one of", id="no protocol"),
        pytest.param(
            "b:1,inproc://a",
            "'inproc://a' is an address within this process",
            id="a list with a cluster of this process",
        ),
        pytest.param("SSL://a:1", "an address for SSL, and security.protocol is plaintext", id="TLS"),
        pytest.param("b:1,sasl_ssl://a:1", "an address for SASL_SSL, .* set security.protocol=sasl_ssl", id="a login"),
        pytest.param("PLAINTEXT://a", "'a' is not host:port", id="a protocol, no port"),
        pytest.param("a:²", "must have a port in 1..65535", id="a superscript digit"),
    ],
)
@pytest.mark.parametrize("client", [Admin, Producer, ShareConsumer])
def test_invalid_bootstrap_servers_are_refused(client: Any, servers: str, message: str) -> None:
    conf = {"bootstrap.servers": servers} | ({"group.id": "g"} if client is ShareConsumer else {})
    with pytest.raises(KafkaException, match=message) as raised:
        client(conf)
    assert raised.value.error == KafkaError._INVALID_ARG
    assert repr(servers) in raised.value.error.str()


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("tls", "security.protocol='tls': must be one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ("SASL_PLAINTEXT", "sasl.mechanism='GSSAPI': must be one of PLAIN, SCRAM-SHA-256"),
        ("sasl_ssl", "sasl.mechanism='GSSAPI': must be one of PLAIN, SCRAM-SHA-256"),
    ],
)
def test_impossible_security_settings_are_refused(protocol: str, message: str) -> None:
    with pytest.raises(KafkaException, match=message):
        Producer({"bootstrap.servers": "127.0.0.1:1", "security.protocol": protocol})


def test_security_protocol_plaintext_is_accepted() -> None:
    Producer({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "PLAINTEXT"}).close()


@pytest.mark.parametrize(
    ("address", "text"), [(A, "a:1"), (Address("::1", 9092), "[::1]:9092"), (Address("127.0.0.1", 1), "127.0.0.1:1")]
)
def test_text_of_an_address(address: Address, text: str) -> None:
    assert str(address) == text


ENDPOINTS = (NodeEndpoint(node_id=2, host="b", port=2),)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(
            MetadataResponse(
                brokers=(MetadataResponse.Broker(node_id=2, host="b", port=2),), cluster_id="", controller_id=2
            ),
            id="Metadata",
        ),
        pytest.param(
            FindCoordinatorResponse(
                coordinators=(FindCoordinatorResponse.Coordinator(key="g", node_id=2, host="b", port=2),)
            ),
            id="FindCoordinator",
        ),
        pytest.param(ShareFetchResponse(node_endpoints=ENDPOINTS), id="ShareFetch"),
        pytest.param(ShareAcknowledgeResponse(node_endpoints=ENDPOINTS), id="ShareAcknowledge"),
    ],
)
def test_responses_with_node_addresses_update_the_directory(response: Any) -> None:
    directory = BrokerDirectory((A,))
    directory.learn(response)
    assert directory.address(2) == B
    assert directory.everywhere() == (B, A)
    assert directory.name(B) == "broker 2 at b:2"


def test_responses_without_addresses_leave_the_directory_unchanged() -> None:
    directory = BrokerDirectory((A, B))
    missing = FindCoordinatorResponse.Coordinator(key="g", error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    directory.learn(FindCoordinatorResponse(coordinators=(missing,)))
    directory.learn(ShareFetchResponse())
    assert directory.everywhere() == (A, B)
    assert directory.address(-1) is None
    assert directory.name(C) == "broker at c:3"


def test_a_node_is_named_where_it_alone_has_the_address() -> None:
    directory = BrokerDirectory((A,))
    for node, named in ((1, ("c", 1)), (2, (None, -1))):
        directory.learn(
            MetadataResponse(
                brokers=(MetadataResponse.Broker(node_id=node, host="b", port=2),), cluster_id="c", controller_id=1
            )
        )
        request = directory.api_versions(B, 5)
        assert (request.cluster_id, request.node_id) == named
    request = directory.api_versions(A, 5)
    assert (request.cluster_id, request.node_id) == (None, -1)


def test_a_later_response_replaces_the_address_of_a_node() -> None:
    directory = BrokerDirectory((A,))
    for port in (2, 3):
        directory.learn(
            MetadataResponse(
                brokers=(MetadataResponse.Broker(node_id=1, host="b", port=port),), cluster_id="", controller_id=1
            )
        )
    assert directory.address(1) == Address("b", 3)
