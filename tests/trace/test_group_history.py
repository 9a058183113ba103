"""A group's history: its states at any moment are those of a fold of the journal from the beginning."""

from __future__ import annotations

import random

from shareq import Cluster, Producer, ShareConsumer
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.groups import ClusterFold, GroupFold, fold_cluster, fold_group
from shareq.trace.analysis.partition_timeline import PartitionTimeline


def busy_cluster() -> Cluster:
    """Two consumers of four partitions; one of them crashes, and a broker is killed."""
    cluster = Cluster(brokers=3, seed=5)
    cluster.create_topic("orders", 4)
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer(config) as producer:
        for number in range(60):
            producer.produce("orders", b"x", partition=number % 4)
    first, second = (ShareConsumer({**config, "group.id": "g", "client.id": f"clerk-{n}"}) for n in (1, 2))
    for consumer in (first, second):
        consumer.subscribe(["orders"])
    for _ in range(3):
        first.poll(2)
        second.poll(2)
    cluster.crash(second)
    cluster.kill_broker(1)
    for _ in range(3):
        first.poll(20)
    first.close()
    return cluster


def test_states_at_random_moments_equal_folds_from_the_beginning() -> None:
    cluster, draw = busy_cluster(), random.Random(3)
    history = GroupHistory(cluster, "g")
    history.refresh()
    found = history.share_partitions(history.total)
    assert found == [("orders", partition) for partition in range(4)]
    for until in [draw.randrange(history.total + 1) for _ in range(60)]:
        assert history.group(until) == fold_group(GroupFold("g"), cluster, until)
        assert history.cluster(until) == fold_cluster(ClusterFold(), cluster, until)
        topic, partition = draw.choice(found)
        alone = PartitionTimeline(cluster.journal, "g", topic, partition)
        alone.refresh()
        expected = alone.state(sum(entry.order < until for entry in alone.entries))
        shown = history.share_partition(topic, partition, until)
        assert (shown.spso, shown.window_end, list(shown.runs)) == (
            expected.spso,
            expected.window_end,
            list(expected.runs),
        )


def test_a_history_grows_with_its_journal() -> None:
    cluster = Cluster(seed=1)
    history = GroupHistory(cluster, "g")
    history.refresh()
    before = history.total
    cluster.create_topic("orders", 2)
    new = history.refresh()
    assert new[0].order == before
    assert list(history.cluster(history.total).own_topics()) == ["orders"]
    assert list(history.cluster(before).own_topics()) == []
    assert history.share_partitions(history.total) == []


def test_a_moment_of_time_lies_after_the_last_entry_at_that_time() -> None:
    cluster = busy_cluster()
    history = GroupHistory(cluster, "g")
    history.refresh()
    entries = cluster.journal.entries()
    for entry in entries[:: len(entries) // 40]:
        until = history.until_at(entry.time_ms)
        assert entries[until - 1].time_ms == entry.time_ms
        assert until == len(entries) or entries[until].time_ms > entry.time_ms
    assert history.until_at(entries[0].time_ms - 1) == 0
