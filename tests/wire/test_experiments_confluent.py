"""The experiments with confluent-kafka's share consumers, unmodified: BEHAVIOUR.md in leader/experiments, and for
assignors in coordinator/share_group/experiments."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from shareq import Admin, Cluster
from shareq.model.events import RecordsChanged
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, QUICK, eventually, take

QUIET = {"log_level": 0, "logger": logging.getLogger("confluent")}
CONFIG = QUICK | {"group.share.record.lock.duration.ms": 60_000, "shareq.experiments.enable": True}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, clock="wall", seed=7, config=CONFIG) as made:
        made.create_topic("orders")
        yield made


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Server]:
    with Server(cluster) as made:
        yield made
        assert list(made.failures) == []


def configure(cluster: Cluster, **configs: object) -> None:
    earliest = {"share.auto.offset.reset": "earliest"}
    cluster.configure_group("g", earliest | {key.replace("_", "."): value for key, value in configs.items()})


def send(server: Server, count: int, keys: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, **QUIET})
    for number in range(count):
        producer.produce("orders", b"%d" % number, key=b"k%d" % (number % keys))
    assert producer.flush(PATIENCE_S) == 0


def consumer(server: Server, client_id: str = "c") -> Any:
    conf = {"bootstrap.servers": server.bootstrap_servers, "group.id": "g", "client.id": client_id, **QUIET}
    made: Any = ShareConsumer({**conf, "share.acknowledgement.mode": "explicit"})
    made.subscribe(["orders"])
    return made


def test_a_released_record_rests(cluster: Cluster, server: Server) -> None:
    """The third delivery follows 300 + 600 ms after the first one, at least, on the clock of the broker."""
    configure(cluster, shareq_release_backoff_ms=300)
    send(server, 1, 1)
    with closing(consumer(server)) as member:
        deliveries = 0
        while deliveries < 3:
            for message in member.poll(PATIENCE_S):
                deliveries += 1
                member.acknowledge(message, AcknowledgeType.RELEASE if deliveries < 3 else AcknowledgeType.ACCEPT)
            member.commit_sync(PATIENCE_S)
    changes = cluster.journal.select(RecordsChanged, group="g")
    acquired = [e.time_ms for e in changes if isinstance(e.event, RecordsChanged) and e.event.cause == "acquire"]
    first, second, third = acquired
    assert second - first >= 300
    assert third - second >= 600


def test_records_of_a_key_are_accepted_in_order(cluster: Cluster, server: Server) -> None:
    configure(cluster, shareq_key_ordering="key")
    send(server, 100, 10)
    done: dict[bytes, list[int]] = defaultdict(list)
    with ExitStack() as stack:
        members = [stack.enter_context(closing(consumer(server))) for _ in range(2)]
        polls = 0
        while sum(map(len, done.values())) < 100:
            member = members[polls % 2]
            polls += 1
            for message in member.poll(0.2):
                released = int(message.value()) % 20 == 7 and message.delivery_count() == 1
                member.acknowledge(message, AcknowledgeType.RELEASE if released else AcknowledgeType.ACCEPT)
                if not released:
                    done[message.key()].append(int(message.value()))
            member.commit_sync(PATIENCE_S)
    assert all(numbers == sorted(numbers) for numbers in done.values())


def test_a_record_is_delivered_until_its_time_to_live_is_over(cluster: Cluster, server: Server) -> None:
    """The timestamps are those of the producer: an hour old, and now."""
    configure(cluster, shareq_record_ttl_ms=600_000)
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, **QUIET})
    for value, age_s in (b"old", 3600), (b"new", 0):
        producer.produce("orders", value, timestamp=int((time.time() - age_s) * 1000))
        assert producer.flush(PATIENCE_S) == 0
    with closing(consumer(server)) as member:
        (message,) = take(member, 1)
        assert message.value() == b"new"
        member.acknowledge(message)
        assert not any(member.commit_sync(PATIENCE_S).values())
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        assert admin.list_share_group_offsets("g").total == 0


def test_a_paused_group_gets_its_records_when_the_pause_ends(cluster: Cluster, server: Server) -> None:
    configure(cluster, shareq_delivery_enable=False)
    send(server, 3, 1)
    with closing(consumer(server)) as member:
        assert not member.poll(1)
        configure(cluster, shareq_delivery_enable=True, shareq_topic_priorities="orders:5")
        assert len(take(member, 3)) == 3


def test_records_that_the_group_has_accepted_are_deleted(cluster: Cluster, server: Server) -> None:
    cluster.create_topic("cleaned", configs={"shareq.retention.by.groups.enable": True})
    configure(cluster)
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, **QUIET})
    with closing(consumer(server)) as member:
        member.subscribe(["cleaned"])
        for number in range(3):
            producer.produce("cleaned", b"%d" % number)
            assert producer.flush(PATIENCE_S) == 0
            assert accept_some(member) == {0}
        cluster.clean_logs()
        eventually(lambda: cluster.log("cleaned", 0).log_start_offset > 0, True)


def accept_some(member: Any) -> set[int]:
    """Accept the next records of the member; returns their partitions."""
    messages = take(member, 1)
    for message in messages:
        member.acknowledge(message)
    member.commit_sync(PATIENCE_S)
    return {message.partition() for message in messages}


def test_members_share_the_partition_that_has_the_lag(cluster: Cluster, server: Server) -> None:
    """Each member has one of two partitions, until the coordinator has read that one of them has all the lag."""
    cluster.create_topic("skewed", 2)
    configure(cluster, shareq_assignor="cut", shareq_assignor_lag_interval_ms=1000)
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "batch.num.messages": 50, **QUIET})

    with ExitStack() as stack:
        admin = stack.enter_context(Admin({"bootstrap.servers": cluster.bootstrap_servers}))
        members = {name: stack.enter_context(closing(consumer(server, name))) for name in "ab"}

        def assigned() -> dict[str, list[int]]:
            found = admin.describe_share_groups(["g"])["g"].members
            return {member.client_id: sorted(p.partition for p in member.assignment) for member in found}

        for member in members.values():
            member.subscribe(["skewed"])
            assert not member.poll(0.1)
        eventually(lambda: sorted(assigned().values()), [[0], [1]])
        (owner, _), (helper, _) = sorted(assigned().items(), key=lambda item: item[1])
        for number in range(3020):
            producer.produce("skewed", b"%d" % number, partition=0 if number < 3000 else 1)
        assert producer.flush(PATIENCE_S) == 0
        assert accept_some(members[owner]) == {0}
        eventually(assigned, {owner: [0], helper: [0, 1]})
        while 0 not in accept_some(members[helper]):
            pass
