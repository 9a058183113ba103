"""Clients over TCP while brokers of a served cluster are killed, restarted and lose leadership."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from shareq import (
    Admin,
    Cluster,
    IllegalStateException,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from shareq.model.events import ShareSessionOpened
from shareq.model.transport import Served
from tests.polling import PATIENCE_S, QUICK, take


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config = QUICK | {
        "group.share.max.record.lock.duration.ms": 600_000,
        "share.coordinator.state.topic.min.isr": 1,  # two of three brokers are killed
    }
    with Cluster(brokers=3, seed=11, clock="wall", config=config) as made:
        made.create_topic("t", 3)
        made.configure_group("g", {"share.auto.offset.reset": "earliest"})
        yield made


@pytest.fixture
def served(cluster: Cluster) -> Iterator[Served]:
    with cluster.serve() as server:
        yield server


@pytest.fixture
def producer(served: Served) -> Iterator[Producer]:
    with Producer({"bootstrap.servers": served.bootstrap_servers, "linger.ms": 0, "enable.idempotence": True}) as made:
        yield made


@pytest.fixture
def consumer(served: Served) -> Iterator[ShareConsumer]:
    with member(served) as made:
        yield made


def member(served: Served, **conf: object) -> ShareConsumer:
    made = ShareConsumer(
        {
            "bootstrap.servers": served.bootstrap_servers,
            "group.id": "g",
            **{key.replace("_", "."): value for key, value in conf.items()},
        }
    )
    made.subscribe(["t"])
    return made


def leader(cluster: Cluster, partition: int = 0) -> int:
    return cluster.image.topics["t"].partitions[partition].leader


def write(producer: Producer, *values: str, partition: int = 0) -> None:
    failures: list[object] = []
    for value in values:
        producer.produce("t", value, partition=partition, on_delivery=lambda error, message: failures.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert failures == [None] * len(values)


def values(messages: list[Message]) -> list[str]:
    return sorted(message.value().decode() for message in messages)


def test_clients_survive_a_killed_leader(cluster: Cluster, producer: Producer, consumer: ShareConsumer) -> None:
    write(producer, "a")
    assert values(take(consumer, 1)) == ["a"]
    consumer.commit_sync()
    for value in ("b", "c"):  # two of three brokers
        cluster.kill_broker(leader(cluster))
        write(producer, value)
        assert values(take(consumer, 1)) == [value]
        consumer.commit_sync()


def test_clients_follow_a_moved_leader(cluster: Cluster, producer: Producer, consumer: ShareConsumer) -> None:
    write(producer, "a")
    assert values(take(consumer, 1)) == ["a"]
    consumer.commit_sync()
    first = leader(cluster)
    cluster.stop_broker(first)
    write(producer, "b")
    assert values(take(consumer, 1)) == ["b"]
    consumer.commit_sync()
    cluster.start_broker(first)
    cluster.elect_preferred_leaders()
    assert leader(cluster) == first
    write(producer, "c")
    assert values(take(consumer, 1)) == ["c"]


def test_clients_survive_a_killed_coordinator(
    cluster: Cluster, served: Served, producer: Producer, consumer: ShareConsumer
) -> None:
    write(producer, "a")
    assert values(take(consumer, 1)) == ["a"]
    consumer.commit_sync()  # the leader may be the broker that is killed
    with Admin({"bootstrap.servers": served.bootstrap_servers}) as admin:
        before = admin.describe_share_groups(["g"]).check()["g"].coordinator
        cluster.kill_broker(before)
        write(producer, "b", partition=1)
        assert values(take(consumer, 1)) == ["b"]
        after = admin.describe_share_groups(["g"]).check()["g"]
    assert after.coordinator != before
    assert [each.member_id for each in after.members] == [consumer.member_id()]


def test_clients_survive_the_loss_of_all_brokers(cluster: Cluster, producer: Producer, consumer: ShareConsumer) -> None:
    write(producer, "a")
    assert values(take(consumer, 1)) == ["a"]
    consumer.commit_sync()
    alive = cluster.brokers_alive
    for broker_id in alive:
        cluster.kill_broker(broker_id)
    assert not consumer.poll(0.3)
    producer.produce("t", "b", partition=0)
    assert producer.flush(0.3) == 1
    for broker_id in alive:
        cluster.start_broker(broker_id)
    assert producer.flush(PATIENCE_S) == 0
    assert values(take(consumer, 1)) == ["b"]


def test_records_are_delivered_while_brokers_restart(cluster: Cluster, served: Served, producer: Producer) -> None:
    """All produced records are delivered, although each broker in turn is killed and restarted."""
    wanted = [str(i) for i in range(300)]
    found: set[str] = set()
    stop = threading.Event()

    def consume() -> None:
        with member(served, max_poll_records=20) as each:
            while not stop.is_set():
                found.update(message.value().decode() for message in each.poll(0.1))

    members = [threading.Thread(target=consume) for _ in range(2)]
    for each in members:
        each.start()
    for partition in range(3):  # an initialization whose coordinator is killed waits for half a minute
        write(producer, "first", partition=partition)
    wait_until(members, lambda: initialised(cluster) == 3)
    for step, broker_id in enumerate(cluster.brokers_alive):
        cluster.kill_broker(broker_id)
        write(producer, *wanted[step * 100 : step * 100 + 50], partition=step)
        cluster.start_broker(broker_id)
        write(producer, *wanted[step * 100 + 50 : step * 100 + 100], partition=step)
    wait_until(members, lambda: found >= set(wanted))
    stop.set()
    for each in members:
        each.join(PATIENCE_S)
    assert found == {"first", *wanted}


def wait_until(members: list[threading.Thread], until: Callable[[], bool]) -> None:
    """Wait until the condition holds, at most PATIENCE_S seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while not until() and time.monotonic() < deadline:
        members[0].join(0.02)


def initialised(cluster: Cluster) -> int:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        return sum(row.start_offset is not None for row in admin.lag("g").values())


def test_a_transaction_survives_the_loss_of_its_coordinator(
    cluster: Cluster, served: Served, consumer: ShareConsumer
) -> None:
    cluster.configure_group("g", {"share.isolation.level": "read_committed"})
    with Producer({"bootstrap.servers": served.bootstrap_servers, "transactional.id": "x", "linger.ms": 0}) as producer:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("t", "a", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        cluster.kill_broker(coordinator_of_x(producer))
        producer.commit_transaction(PATIENCE_S)
        assert values(take(consumer, 1)) == ["a"]


def coordinator_of_x(producer: Producer) -> int:
    lookup = producer._core.identity._coordinator
    assert lookup is not None
    assert lookup.node is not None
    return lookup.node


def test_the_end_of_a_connection_releases_its_locks(
    cluster: Cluster, served: Served, producer: Producer, consumer: ShareConsumer
) -> None:
    """The end of its connection closes its share session, which releases its records before the locks expire."""
    cluster.create_topic("one", 1)  # a partition that every member is assigned
    cluster.configure_group("g", {"share.record.lock.duration.ms": 600_000})
    lost = member(served, share_acknowledgement_mode="explicit")
    for each in (lost, consumer):
        each.subscribe(["one"])
    producer.produce("one", "a")
    assert values(take(lost, 1)) == ["a"]
    del lost, each
    gc.collect()
    (again,) = take(consumer, 1)
    assert (again.value(), again.delivery_count()) == (b"a", 2)


def test_an_acknowledgement_to_a_killed_leader_fails(cluster: Cluster, served: Served, producer: Producer) -> None:
    write(producer, "a")
    with member(served, share_acknowledgement_mode="explicit") as consumer:
        (message,) = take(consumer, 1)
        consumer.acknowledge(message)
        cluster.kill_broker(leader(cluster))
        ((place, error),) = consumer.commit_sync(PATIENCE_S).items()
        assert place == TopicPartition("t", 0)
        assert isinstance(error, KafkaException)
        (again,) = take(consumer, 1)
        assert (again.offset(), again.delivery_count()) == (0, 1)  # the killed leader had not stored the delivery count
        consumer.acknowledge(again)
        assert consumer.commit_sync(PATIENCE_S) == {place: None}


def test_the_journal_has_member_ids_of_tcp_clients(
    cluster: Cluster, producer: Producer, consumer: ShareConsumer
) -> None:
    write(producer, "a")
    take(consumer, 1)
    members = {entry.event.member_id for entry in cluster.journal if isinstance(entry.event, ShareSessionOpened)}
    assert members == {consumer.member_id()}


def test_clients_close_without_a_reachable_broker(cluster: Cluster, served: Served, producer: Producer) -> None:
    """close() of a client ends in time although no broker is reachable."""
    write(producer, "a")
    consumer = member(served, request_timeout_ms=300)
    take(consumer, 1)
    served.close()
    consumer.close()
    with pytest.raises(IllegalStateException):
        consumer.poll(0)
