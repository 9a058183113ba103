"""Loss, delay and reordering of single messages, and brokers that do not reach each other, on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import FaultInjected
from shareq.model.messages.cluster import MetadataRequest
from tests.broker.requester import Requester

METADATA = MetadataRequest(topics=())


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=5) as made:
        made.create_topic("orders", 3, replication_factor=1)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def test_a_lost_message_ends_with_the_time_out(cluster: Cluster, requester: Requester) -> None:
    cluster.messages.disturb(loss=1.0)
    call = requester.send(METADATA, 13)
    cluster.advance(10 * 60_000)
    assert requester.answers[call].error is Errors.REQUEST_TIMED_OUT
    cluster.messages.heal()
    assert requester.ask(METADATA, 13).brokers


def test_late_messages_overtake_each_other(cluster: Cluster, requester: Requester) -> None:
    cluster.messages.disturb(delay_ms=100)
    began, calls = cluster.now_ms, [requester.send(METADATA, 13) for _ in range(20)]
    order: list[int] = []
    while len(order) < len(calls):
        assert cluster.step()
        order += [call for call in calls if requester.answered(call) and call not in order]
    assert sorted(order) == calls
    assert order != calls
    assert 0 < cluster.now_ms - began <= 200, "100 ms each way at most"


def test_brokers_that_are_cut_off_do_not_reach_each_other_and_clients_reach_both(
    cluster: Cluster, requester: Requester
) -> None:
    faults = cluster.messages
    faults.cut(0, 1)
    assert [faults.fate(sender, broker) for sender, broker in ((0, 1), (1, 0), (0, 2), (2, 1), (0, 0))] == [
        None, None, 0, 0, 0,
    ]  # fmt: skip
    assert requester.ask(METADATA, 13).brokers
    faults.heal()
    assert faults.fate(0, 1) == 0


@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_accepted_in_the_end(seed: int) -> None:
    """A tenth of all messages is lost, the others are late by up to 200 ms; then the network is quiet."""
    with Cluster(brokers=3, seed=seed) as cluster:
        cluster.create_topic("orders", 2)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 10})
        conf = {"bootstrap.servers": cluster.bootstrap_servers}
        cluster.messages.disturb(loss=0.1, delay_ms=200)
        with Producer(conf) as producer:
            for value in range(50):
                producer.produce("orders", b"%d" % value)
            assert producer.flush(600) == 0
            with ShareConsumer({**conf, "group.id": "g"}) as consumer:
                consumer.subscribe(["orders"])
                values: set[bytes | None] = set()
                for _ in range(20):
                    values |= {message.value() for message in consumer.poll(30)}
                cluster.messages.heal()
                while len(values) < 50:
                    found = consumer.poll(60)
                    assert found, f"{len(values)} of 50 records came"
                    values |= {message.value() for message in found}
    assert values == {b"%d" % value for value in range(50)}


def test_faults_are_in_the_journal(cluster: Cluster) -> None:
    cluster.messages.heal()
    cluster.messages.disturb(loss=0.25, delay_ms=7)
    cluster.messages.cut(0, 2)
    cluster.clear_faults()
    assert [entry.event for entry in cluster.journal.select(FaultInjected)] == [
        FaultInjected("25% of the messages are lost, the others up to 7 ms late"),
        FaultInjected("no message passes between brokers 0 and 2"),
        FaultInjected("all messages pass again"),
    ]


def test_unused_faults_change_nothing_that_is_random() -> None:
    def ids(*, disturbed: bool) -> list[str]:
        with Cluster(brokers=1, seed=4) as cluster:
            if disturbed:
                cluster.messages.disturb(delay_ms=1)
                Requester(cluster).send(METADATA, 13)
            cluster.create_topic("t")
            return list(cluster.image.topics_by_id)

    assert ids(disturbed=True) == ids(disturbed=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": 1.1}, r"loss=1\.1: must be a probability in 0\.\.1"),
        ({"loss": True}, "loss=True"),
        ({"delay_ms": -1}, r"delay_ms=-1: must be a whole number in 0\.\.3600000"),
        ({"delay_ms": 0.5}, r"delay_ms=0\.5"),
    ],
)
def test_invalid_faults_are_refused(cluster: Cluster, options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        cluster.messages.disturb(**options)  # type: ignore[arg-type]
    with pytest.raises(ConfigException, match="must be two brokers"):
        cluster.messages.cut(1, 1)


@pytest.mark.parametrize(("first", "second", "named"), [(0, 3, "second=3"), ("0", 1, "first='0'"), (True, 0, "first")])
def test_only_brokers_of_the_cluster_are_cut_off(cluster: Cluster, first: int, second: int, named: str) -> None:
    with pytest.raises(ConfigException, match=rf"{named}.*: must be one of \[0, 1, 2\]"):
        cluster.messages.cut(first, second)
