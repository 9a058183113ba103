"""The experiments with share consumers of each kind, those of confluent-kafka and Java unmodified: BEHAVIOUR.md in
leader/experiments, and for assignors in coordinator/share_group/experiments."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Producer

from shareq import Admin, Cluster
from shareq.model.events import RecordsChanged
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, QUICK, eventually, take
from tests.proxy.members import ACCEPT, RELEASE, Client, Member, accept

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


class Stage:
    """A cluster with the experiments, and share consumers of one kind."""

    def __init__(self, cluster: Cluster, servers: str, client: Client) -> None:
        self.cluster, self._servers, self._client = cluster, servers, client

    def configure(self, **configs: object) -> None:
        earliest = {"share.auto.offset.reset": "earliest"}
        self.cluster.configure_group("g", earliest | {key.replace("_", "."): value for key, value in configs.items()})

    def send(
        self,
        count: int,
        topic: str = "orders",
        partition: int = 0,
        *,
        keys: int = 1,
        age_s: int = 0,
        codec: str = "none",
    ) -> None:
        """Produce records with these keys in turn."""
        made_ms = int((time.time() - age_s) * 1000)
        conf = {"bootstrap.servers": self._servers, "batch.num.messages": 50, "compression.type": codec, **QUIET}
        producer = Producer(conf)
        for number in range(count):
            producer.produce(topic, key=f"{number % keys}", partition=partition, timestamp=made_ms)
        assert producer.flush(PATIENCE_S) == 0

    def member(self, name: str = "c", topic: str = "orders") -> Member:
        return self._client.open(name, self._servers, "g", topic)


@pytest.fixture
def stage(cluster: Cluster, server: Server, share_client: Client) -> Stage:
    return Stage(cluster, server.bootstrap_servers, share_client)


def test_a_released_record_rests(stage: Stage) -> None:
    """The third delivery follows 300 + 600 ms after the first one, at least, on the clock of the broker."""
    stage.configure(shareq_release_backoff_ms=300)
    stage.send(1)
    with closing(stage.member()) as member:
        for kind in (RELEASE, RELEASE, ACCEPT):
            (record,) = take(member, 1)
            member.acknowledge(record, kind)
            member.commit()
    changes = stage.cluster.journal.select(RecordsChanged, group="g")
    acquired = [e.time_ms for e in changes if isinstance(e.event, RecordsChanged) and e.event.cause == "acquire"]
    first, second, third = acquired
    assert second - first >= 300
    assert third - second >= 600


@pytest.mark.parametrize(("cut", "codec"), [(False, "none"), (True, "none"), (True, "lz4")])
def test_records_of_a_key_are_accepted_in_order(stage: Stage, cut: bool, codec: str) -> None:
    """Some records of one key are released at their first delivery. Record batches are whole, or cut."""
    stage.configure(shareq_key_ordering="key", shareq_key_cut_batches_enable=cut)
    stage.send(100, keys=10, codec=codec)
    accepted: list[int] = []
    with ExitStack() as stack:
        members = [stack.enter_context(closing(stage.member(name))) for name in "ab"]
        polls = 0
        while len(accepted) < 100:
            member = members[polls % 2]
            polls += 1
            for record in member.poll(0.2):
                released = record.offset % 20 == 7 and record.delivery_count == 1
                member.acknowledge(record, RELEASE if released else ACCEPT)
                if not released:
                    accepted.append(record.offset)
            member.commit()
    for key in range(10):
        assert [offset for offset in accepted if offset % 10 == key] == [*range(key, 100, 10)]


def test_a_record_is_delivered_until_its_time_to_live_is_over(stage: Stage) -> None:
    """The timestamps are those of the producer: an hour old, and now."""
    stage.configure(shareq_record_ttl_ms=600_000)
    stage.send(1, age_s=3600)
    stage.send(1)
    with closing(stage.member()) as member:
        assert accept(member) == [(0, 1, 1)]
        assert member.results() == [(0, 1, "NONE")]
    with Admin({"bootstrap.servers": stage.cluster.bootstrap_servers}) as admin:
        assert admin.list_share_group_offsets("g").total == 0


def test_a_paused_group_gets_its_records_when_the_pause_ends(stage: Stage) -> None:
    stage.configure(shareq_delivery_enable=False)
    stage.send(3)
    with closing(stage.member()) as member:
        assert not member.poll(1)
        stage.configure(shareq_delivery_enable=True, shareq_topic_priorities="orders:5")
        assert [record.offset for record in accept(member, 3)] == [0, 1, 2]


def test_records_that_the_group_has_accepted_are_deleted(stage: Stage) -> None:
    stage.cluster.create_topic("cleaned", configs={"shareq.retention.by.groups.enable": True})
    stage.configure()
    with closing(stage.member(topic="cleaned")) as member:
        for _ in range(3):
            stage.send(1, "cleaned")
            accept(member)
        stage.cluster.clean_logs()
        eventually(lambda: stage.cluster.log("cleaned", 0).log_start_offset > 0, True)


def test_members_share_the_partition_that_has_the_lag(stage: Stage) -> None:
    """Each member has one of two partitions, until the coordinator has read that one of them has all the lag."""
    stage.cluster.create_topic("skewed", 2)
    stage.configure(shareq_assignor="cut", shareq_assignor_lag_interval_ms=1000)
    with ExitStack() as stack:
        admin = stack.enter_context(Admin({"bootstrap.servers": stage.cluster.bootstrap_servers}))
        members = {name: stack.enter_context(closing(stage.member(name, "skewed"))) for name in "ab"}

        def assigned() -> dict[str, list[int]]:
            found = admin.describe_share_groups(["g"])["g"].members
            return {member.client_id: sorted(p.partition for p in member.assignment) for member in found}

        for member in members.values():
            assert not member.poll(0.1)
        eventually(lambda: sorted(assigned().values()), [[0], [1]])
        (owner, _), (helper, _) = sorted(assigned().items(), key=lambda item: item[1])
        stage.send(3000, "skewed")
        stage.send(20, "skewed", 1)
        assert {record.partition for record in accept(members[owner])} == {0}
        eventually(assigned, {owner: [0], helper: [0, 1]})
        while 0 not in {record.partition for record in accept(members[helper])}:
            pass
