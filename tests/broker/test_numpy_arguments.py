"""Numbers of a DataFrame as arguments of a cluster, its clients and its views, as they are: no int, but an index."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from shareq import Admin, Cluster, Journal, NewTopic, Producer, ShareConsumer, TopicPartition, monitor, view
from shareq.sim.race import RaceSetting
from shareq.sim.scenario import Scenario
from shareq.sim.sweep_grid import expand
from shareq.team.policy import Policy
from shareq_widgets import record, states, strip

N: Any = np.int64
F: Any = np.float32


def test_a_cluster_takes_and_keeps_pythons_numbers(tmp_path: Path) -> None:
    with Cluster(brokers=N(2), seed=N(3), latency_ms=N(5)) as cluster:
        cluster.create_topic("t", partitions=N(2), replication_factor=N(1), configs={"retention.ms": N(7)})
        cluster.configure_group("g", {"share.record.lock.duration.ms": N(20_000)})
        for call in (cluster.kill_broker, cluster.start_broker, cluster.stop_broker, cluster.start_broker):
            call(N(1))
        cluster.advance(N(7))
        cluster.fail_appends("t", times=N(1))
        cluster.delay_appends("__share_group_state", N(3))
        cluster.messages.disturb(loss=F(0), delay_ms=N(1))
        cluster.messages.cut(N(0), N(1))
        cluster.clear_faults()
        assert type(cluster.now_ms) is int
        cluster.journal.to_jsonl(tmp_path / "j.jsonl")
        cluster.journal.to_parquet(tmp_path / "j.parquet")
        assert list(Journal.from_jsonl(tmp_path / "j.jsonl")) == list(cluster.journal)


@pytest.mark.parametrize(
    ("journal", "kept"), [(N(10), 10), (np.False_, 0), (np.True_, None)], ids=["a capacity", "no", "yes"]
)
def test_the_journal_of_a_cluster(journal: Any, kept: int | None) -> None:
    with Cluster(brokers=1, journal=journal) as cluster, Cluster(brokers=1) as other:
        for one in (cluster, other):
            one.create_topic("t", partitions=20)
        assert len(cluster.journal) == (len(other.journal) if kept is None else kept)


def test_clients_take_them() -> None:
    with Cluster(brokers=1) as cluster:
        address = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = Admin({**address, "request.timeout.ms": N(5_000)})
        admin.create_topics(
            [NewTopic("t", num_partitions=N(2), replication_factor=N(1), config={"retention.ms": N(-1)})]
        )
        with Producer({**address, "linger.ms": N(0)}) as producer:
            producer.produce("t", b"v", partition=N(1), timestamp=N(1_767_225_600_000))
            producer.flush(F(5))
        admin.alter_share_group_offsets("g", {("t", N(1)): N(0), ("t", N(0)): datetime(2026, 1, 1, tzinfo=UTC)})
        consumer = ShareConsumer({**address, "group.id": "g", "share.acknowledgement.mode": "explicit"})
        consumer.subscribe(["t"])
        (message,) = consumer.poll(N(10))
        consumer.acknowledge(message, N(2))
        assert len(consumer.poll(F(10))) == 1
        admin.delete_records({TopicPartition("t", 1): N(1)})
        assert cluster.log("t", 1).log_start_offset == 1
        for picture in (
            strip(cluster, group="g", topic="t", partition=N(1), speed=F(2)),
            states(cluster, group="g", topic="t", partition=N(1)),
            record(cluster, group="g", topic="t", partition=N(1), offset=N(0)),
        ):
            assert picture.to_svg()
        assert view(cluster, "g", "t", N(1)).snapshot(N(0))["partition"] == 1
        assert monitor(cluster.bootstrap_servers, interval_ms=N(500)).refresh().groups


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Scenario(records=n(10), service_ms=F(1)),
        lambda n: RaceSetting(workers=n(2), slow_share=F(0)),
        lambda n: Policy(work_ms=n(3), renew=cast("bool", np.True_)),
        lambda n: expand({"consumers": np.array([1, 2])}, n(2), Scenario())[-1].seed,
    ],
    ids=["scenario", "race", "policy", "sweep"],
)
def test_simulations_take_them(make: Callable[[type], object]) -> None:
    assert repr(make(N)) == repr(make(int)).replace("np.True_", "True")
