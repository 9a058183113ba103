"""Clients that use more than their quotas wait. Numbers in ids are sections of shareq/wire/BEHAVIOUR.md."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq import Cluster, Producer
from shareq.log.records import encode_batch
from shareq.model.actor import ClientContext
from shareq.model.client_quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Entity,
    Quotas,
    altered_quotas,
    entity,
)
from shareq.model.connection_configs import WINDOW_NUM, WINDOW_SECONDS
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.topics import CreateTopicsRequest
from shareq.wire.quotas import ClientQuotas, Rate
from shareq.wire.server import Server
from tests.wire.raw import Raw

METADATA = MetadataRequest(topics=())
KAFKAS = {WINDOW_NUM: 11, WINDOW_SECONDS: 1}
APP = ClientContext(client_id="app", principal="User:alice")
APP_ID = entity(client_id="app")


# ---- rates -----------------------------------------------------------------------------------------------------------


def test_a_client_may_use_its_quota_of_ten_windows_at_once() -> None:
    rate = Rate(1000, 11)
    rate.record(1000, 0)
    assert rate.excess_ms(100, 0) == 0
    rate.record(1, 0)
    assert rate.excess_ms(100, 0) == 10
    assert rate.excess_ms(100, 10) == 0


def test_a_window_counts_until_all_of_its_windows_have_passed() -> None:
    rate = Rate(1000, 11)
    rate.record(5, 0)
    assert not rate.has_ended(10_999)
    assert rate.has_ended(11_000)


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 5000)), min_size=1, max_size=30), st.integers(1, 2000))
def test_after_the_wait_the_rate_is_at_its_limit(used: list[tuple[int, int]], limit: int) -> None:
    """The oracle knows all that was used, and when; a wait that outlasts the windows ends with them."""
    rate, now_ms, starts = Rate(1000, 11), 0, [[0, 0.0]]
    for wait_ms, amount in used:
        now_ms += wait_ms
        rate.record(amount, now_ms)
        if starts[-1][1] and now_ms - starts[-1][0] < 1000:
            starts[-1][1] += amount
        else:
            starts.append([now_ms, float(amount)])
    counted = [(start_ms, amount) for start_ms, amount in starts if amount and now_ms - start_ms < 11_000]
    elapsed_ms = now_ms - counted[0][0]
    span_ms = max(elapsed_ms, 10_000 + elapsed_ms % 1000) if elapsed_ms < 10_000 else elapsed_ms
    total = sum(amount for _, amount in counted)
    assert rate.excess_ms(limit, now_ms) == pytest.approx(total / limit * 1000 - span_ms)


def quotas_of(quotas: Quotas) -> ClientQuotas:
    return ClientQuotas(lambda: quotas, KAFKAS.__getitem__)


def test_clients_of_a_user_share_its_quota_and_defaults_are_not_shared() -> None:
    shared = quotas_of(altered_quotas({}, {entity(user="alice"): {PRODUCER_BYTE_RATE: 100.0}}))
    assert shared.throttle_ms(APP, {PRODUCER_BYTE_RATE: 1000}, 0) == 0
    assert shared.throttle_ms(APP._replace(client_id="other"), {PRODUCER_BYTE_RATE: 100}, 0) == 1000
    assert shared.throttle_ms(APP._replace(principal="User:bob"), {PRODUCER_BYTE_RATE: 9999}, 0) == 0
    alone = quotas_of(altered_quotas({}, {entity(client_id=None): {PRODUCER_BYTE_RATE: 100.0}}))
    assert alone.throttle_ms(APP, {PRODUCER_BYTE_RATE: 1000}, 0) == 0
    assert alone.throttle_ms(APP._replace(client_id="other"), {PRODUCER_BYTE_RATE: 1000}, 0) == 0
    assert alone.throttle_ms(APP, {PRODUCER_BYTE_RATE: 100}, 0) == 1000


def test_time_of_requests_costs_at_most_a_window() -> None:
    quotas = quotas_of(altered_quotas({}, {entity(client_id="app"): {REQUEST_PERCENTAGE: 1.0}}))
    assert quotas.throttle_ms(APP, {REQUEST_PERCENTAGE: 100_000}, 0) == 1000


def test_rates_of_clients_that_are_gone_are_forgotten() -> None:
    """A client can have another client id in each request."""
    quotas = quotas_of(altered_quotas({}, {entity(client_id=None): {PRODUCER_BYTE_RATE: 100.0}}))
    for i in range(10_000):
        quotas.throttle_ms(APP._replace(client_id=str(i)), {PRODUCER_BYTE_RATE: 1}, i * 100)
    assert len(quotas._rates) <= 1000


def test_an_address_may_open_its_connections_of_ten_windows_at_once() -> None:
    """The default is for each address alone; a connection that is refused does not count."""
    own = {entity(ip=None): {CONNECTION_CREATION_RATE: 2.0}, entity(ip="::1"): {CONNECTION_CREATION_RATE: 1.0}}
    quotas = quotas_of(altered_quotas({}, own))
    assert [quotas.refusal_ms("10.0.0.1", 0) for _ in range(22)] == [0] * 20 + [500, 500]
    assert [quotas.refusal_ms("::1", 0) for _ in range(11)] == [0] * 10 + [1000]
    assert quotas.refusal_ms("10.0.0.2", 0) == 0
    assert [quotas.refusal_ms("10.0.0.1", 500), quotas.refusal_ms("10.0.0.1", 500)] == [0, 500]
    assert quotas_of({}).refusal_ms("10.0.0.1", 0) == 0


# ---- a server --------------------------------------------------------------------------------------------------------


@contextmanager
def served(
    quotas: Mapping[str, float], whose: Entity = APP_ID, config: Mapping[str, int] = MappingProxyType({})
) -> Iterator[tuple[Cluster, Server]]:
    with Cluster(brokers=1, seed=7, config=config) as cluster, Server(cluster) as server:
        cluster.create_topic("orders", 1)
        cluster._runtime.controller.alter_client_quotas({whose: quotas})
        yield cluster, server
        assert list(server.failures) == []


def throttle_of(raw: Raw, request: Request) -> int:
    """The throttle time of the response, the first field of those that are asked for here."""
    raw.send(request)
    (size,) = struct.unpack(">i", raw._exactly(4))
    found: int = struct.unpack_from(">i", raw._exactly(size), 5)[0]
    return found


def production(cluster: Cluster, size: int, acks: int = -1) -> ProduceRequest:
    records = encode_batch([(None, b"x" * size, (), 0)])
    topic = cluster.image.topics["orders"]
    part = ProduceRequest.Partition(index=0, records=records)
    return ProduceRequest(acks=acks, topics=(ProduceRequest.Topic(topic_id=topic.topic_id, partitions=(part,)),))


def produce(cluster: Cluster, size: int) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        producer.produce("orders", b"x" * size)
        producer.flush()


def fetch(cluster: Cluster, max_bytes: int = 1 << 20) -> FetchRequest:
    topic = cluster.image.topics["orders"]
    part = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = (FetchRequest.Topic(topic_id=topic.topic_id, partitions=(part,)),)
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, session_epoch=-1, topics=topics)


def test_a_connection_above_its_quota_waits_and_others_do_not() -> None:
    """BEHAVIOUR.md, 2.1, rule 11."""
    with served({CONSUMER_BYTE_RATE: 100}) as (cluster, server):
        produce(cluster, 3000)
        with Raw(server.ports[0], client_id="app") as app, Raw(server.ports[0], client_id="free") as free:
            throttle_ms = throttle_of(app, fetch(cluster))
            assert throttle_ms == pytest.approx(20_800, abs=1000), "3,080 bytes are the quota of 30.8 s"
            sent = app.send(METADATA)
            cluster.advance(throttle_ms - 1)
            assert throttle_of(free, fetch(cluster)) == 0
            assert app.silent
            cluster.advance(1)
            assert app.receive()[0] == sent


def test_a_fetch_gets_what_the_quota_allows_at_once() -> None:
    """BEHAVIOUR.md, 2.1, rule 11: the bytes of the windows but one; without it, one fetch would cost hours."""
    with served({CONSUMER_BYTE_RATE: 200}) as (cluster, server):
        for _ in range(10):
            produce(cluster, 1000)
        with Raw(server.ports[0], client_id="app") as app:
            assert throttle_of(app, fetch(cluster)) < 10_000


def test_a_producer_without_acks_waits_too() -> None:
    """BEHAVIOUR.md, 2.1, rule 11."""
    with served({PRODUCER_BYTE_RATE: 10}) as (cluster, server), Raw(server.ports[0], client_id="app") as app:
        app.send(production(cluster, 1000, acks=0))
        sent = app.send(METADATA)
        with Raw(server.ports[0]) as free:
            while not cluster.log("orders", 0).high_watermark:
                assert free.ask(METADATA).brokers
        assert app.silent
        cluster.advance(300_000)  # longer than it waits, and shorter than connections.max.idle.ms
        assert app.receive()[0] == sent


def test_a_connection_that_ends_while_it_waits_is_forgotten() -> None:
    with served({CONSUMER_BYTE_RATE: 1}) as (cluster, server):
        produce(cluster, 100)
        with Raw(server.ports[0], client_id="app") as app:
            assert throttle_of(app, fetch(cluster)) > 0
            app.send(METADATA)
        while server.connections:
            cluster.advance(1)
        cluster.advance(3_600_000)


def test_time_of_requests_is_limited() -> None:
    """BEHAVIOUR.md, 2.1, rule 11."""
    with (
        served({REQUEST_PERCENTAGE: 1e-9}) as (_, server),
        Raw(server.ports[0], client_id="app") as app,
        Raw(server.ports[0]) as free,
    ):
        assert throttle_of(app, METADATA) == 1000
        assert throttle_of(free, METADATA) == 0


def test_a_client_waits_whose_changes_of_topics_are_refused() -> None:
    """BEHAVIOUR.md, 2.1, rule 11. The response has the error and the time."""

    def creation(name: str, count: int) -> CreateTopicsRequest:
        return CreateTopicsRequest(topics=(CreateTopicsRequest.Topic(name=name, num_partitions=count),))

    with (
        served({CONTROLLER_MUTATION_RATE: 2}) as (cluster, server),
        Raw(server.ports[0], client_id="app") as app,
        Raw(server.ports[0], client_id="free") as free,
    ):
        assert throttle_of(app, creation("large", 24)) == 0
        assert throttle_of(app, creation("next", 1)) == 1000
        sent = app.send(METADATA)
        assert throttle_of(free, creation("other", 1)) == 0
        assert app.silent
        cluster.advance(1000)
        assert app.receive()[0] == sent
        assert throttle_of(app, creation("next", 1)) == 0
        assert {*cluster.image.topics} == {"orders", "large", "other", "next"}


def test_a_connection_above_the_quota_of_its_address_is_closed() -> None:
    """BEHAVIOUR.md, 2.1, rule 11: nothing that it sends is read."""
    with served({CONNECTION_CREATION_RATE: 1}, entity(ip="127.0.0.1"), {WINDOW_NUM: 2}) as (cluster, server):
        port = server.ports[0]
        with Raw(port) as first, Raw(port) as above:
            assert first.ask(METADATA).brokers
            above.send(METADATA)
            assert above.closed_by_server()
        cluster.advance(2000)
        with Raw(port) as next_one:
            assert next_one.ask(METADATA).brokers
