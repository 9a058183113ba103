"""Messages in the journal of a tap equal those that brokers of shareq record themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer, messages, tap
from shareq.model.configs import BROKER_CONFIGS
from shareq.proxy import Tap
from shareq.trace.analysis.exchanges import Exchange
from tests.polling import PATIENCE_S, QUICK, eventually, take

SAME = ("Produce", "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")
"""The APIs whose messages have no address of a broker here, and pass as they are."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config = {key: value for key, value in QUICK.items() if key in BROKER_CONFIGS}
    with Cluster(brokers=1, clock="wall", config=config, trace_messages=True) as made, made.serve():
        made.create_topic("orders", 2)
        made.configure_group("crew", {"share.auto.offset.reset": "earliest"})
        yield made


def shown(source: Any, client: str) -> dict[str, list[Any]]:
    """The exchanges with a response, by API; without ApiVersions, which the server of the brokers answers itself."""
    found: dict[str, list[Any]] = {}
    for one in messages(source, client=client):
        if one.response is not None and one.api != "ApiVersions":
            found.setdefault(one.api, []).append(content(one))
    return found


def content(one: Exchange) -> tuple[Any, ...]:
    passed = (one.request, one.response) if one.api in SAME else ()
    return (one.client, one.broker, one.version, one.error, *passed)


def same(tapped: Tap, cluster: Cluster, client: str) -> bool:
    return shown(tapped, client) == shown(cluster, client)


def test_messages_equal_those_of_the_brokers(cluster: Cluster) -> None:
    """BEHAVIOUR.md, 4.6."""
    assert cluster._server is not None
    with tap(cluster._server.bootstrap_servers, trace_messages=True) as tapped:
        servers = {"bootstrap.servers": tapped.bootstrap_servers}
        with Producer({**servers, "client.id": "shop"}) as producer:
            for number in range(5):
                producer.produce("orders", f"{number}", partition=number % 2)
        with ShareConsumer({**servers, "group.id": "crew", "client.id": "anna"}) as anna:
            anna.subscribe(["orders"])
            take(anna, 5)
            anna.commit_sync()
        assert tapped.refresh(PATIENCE_S)
        assert not tapped.failures
        for client, apis in (("shop", {"Produce"}), ("anna", {*SAME[1:]})):
            eventually(partial(same, tapped, cluster, client), True)
            assert apis < shown(tapped, client).keys()


def test_without_the_option_no_message_is_recorded(cluster: Cluster) -> None:
    assert cluster._server is not None
    with tap(cluster._server.bootstrap_servers) as tapped:
        with Producer({"bootstrap.servers": tapped.bootstrap_servers}) as producer:
            producer.produce("orders", "one")
        assert len(messages(tapped)) == 0
