"""A client whose directory is wrong: brokers that are asked for another node make it bootstrap again."""

from __future__ import annotations

from shareq.model.errors import Errors
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.fetch import FetchRequest
from tests.wire.scripted import Client

FETCH = FetchRequest(topics=(), max_wait_ms=0, min_bytes=0)
"""A request for a connection that is opened after Metadata: the first one names no node."""


def assert_nodes_are_checked(servers: str) -> None:
    with Client(servers) as client:
        assert client.ask(MetadataRequest(topics=())).error is Errors.NONE
        directory = client.connection._host.directory
        nodes = dict(directory._nodes)
        for node in nodes:
            assert client.ask(FETCH, node).error is Errors.NONE, "each is the node that its address is named for"
    for node, address in nodes.items():
        with Client(servers) as client:
            client.ask(MetadataRequest(topics=()))
            directory = client.connection._host.directory
            other = 1 + max(nodes)
            directory._nodes = {other: address}
            moved = client.ask(FETCH, other)
            assert moved.error is Errors.NETWORK_EXCEPTION
            assert f"is no longer broker {other} at {address}" in moved.reason
            assert set(directory.everywhere()) == set(directory._bootstrap)
            assert client.ask(MetadataRequest(topics=())).error is Errors.NONE
            assert client.ask(FETCH, node).error is Errors.NONE
