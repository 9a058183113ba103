"""A group's history: its states at any moment are those of a fold of the journal from the beginning."""

from __future__ import annotations

import random

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.model.errors import ConfigException
from shareq.model.events import AuthenticationFailed
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, SharePartitionKey, TopicId
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.groups import OF_CLUSTER, ClusterFold, GroupFold, fold_cluster, fold_group
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.views.group_timeline import GroupTimeline
from tests.trace.random_clusters import GROUP, random_cluster


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
    history.refresh()
    assert history.total == cluster.journal.total > before
    assert list(history.cluster(history.total).own_topics()) == ["orders"]
    assert list(history.cluster(before).own_topics()) == []
    assert history.share_partitions(history.total) == []


def test_a_moment_of_time_lies_after_the_last_entry_at_that_time() -> None:
    cluster = busy_cluster()
    entries, timeline = cluster.journal.entries(), GroupTimeline(cluster, "g")
    for entry in entries[:: len(entries) // 40]:
        until = timeline.moment_at(entry.time_ms)
        assert entries[until - 1].time_ms == entry.time_ms
        assert until == len(entries) or entries[until].time_ms > entry.time_ms
    assert timeline.moment_at(entries[0].time_ms - 1) == 0
    assert timeline.moment() == len(entries)


def test_a_group_timeline_has_the_steps_of_the_group() -> None:
    cluster = busy_cluster()
    timeline = GroupTimeline(cluster, "g")
    total, order, moments = timeline.total(), 0, [0]
    while order < total:
        before, order = order, timeline.next_step(order)
        assert order > before
        assert timeline.previous_step(order) == before
        moments.append(timeline.moment(order))
        step = timeline.snapshot(order)["step"]
        assert step is not None
        assert step["first"] == before + 1
        assert timeline.at_moment(timeline.moment(order)) == order
    assert moments == sorted(set(moments))
    texts = [timeline.sentence(number) for number in range(1, total + 1)]
    assert not any("heartbeat" in text or "__share_group_state" in text for text in texts)
    assert {mark["kind"] for mark in timeline.snapshot()["marks"]} >= {"broker_killed", "leader_moved", "member_left"}


@pytest.mark.parametrize(("partitions", "place"), [(1, ""), (2, "t-1: ")])
def test_a_sentence_names_the_share_partition_of_a_group_with_several(partitions: int, place: str) -> None:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("t", partitions)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(config) as producer, ShareConsumer({**config, "group.id": "g"}) as consumer:
            producer.produce("t", b"x", partition=partitions - 1)
            producer.flush()
            consumer.subscribe(["t"])
            while not consumer.poll(1):
                pass
            consumer.commit_sync()
        timeline = GroupTimeline(cluster, "g")
        orders = range(1, timeline.total() + 1)
        sentences = {timeline.sentence(order) for order in orders}
        steps = {step["text"] for order in orders if (step := timeline.snapshot(order)["step"])}
    assert {f"{place}shareq acquired 0", f"{place}the window is empty at 1"} <= sentences
    assert f"{place}shareq acquired 0, the window is now 0" in steps


def test_a_group_timeline_has_the_clients_that_were_refused() -> None:
    with Cluster(brokers=1) as cluster:
        cluster.record(AuthenticationFailed(0, "10.0.0.7", "PLAIN", "alice", "Invalid username or password"))
        timeline = GroupTimeline(cluster, "g")
        texts = [timeline.sentence(number) for number in range(1, timeline.total() + 1)]
    assert texts[-1] == "broker 0 refused 'alice' at 10.0.0.7, Invalid username or password"


def test_a_group_timeline_names_an_unknown_group() -> None:
    with pytest.raises(ConfigException, match="group='h': the journal has no such group, it has 'g'"):
        GroupTimeline(busy_cluster(), "h")


@pytest.mark.parametrize("seed", range(6))
def test_brokers_and_coordinators_equal_those_of_the_cluster(seed: int) -> None:
    cluster = random_cluster(seed)
    history = GroupHistory(cluster, GROUP)
    history.refresh()
    found, image = history.cluster(history.total), cluster.image
    assert sorted(broker for broker, alive in found.brokers.items() if alive) == list(cluster.brokers_alive)
    keys = {(GROUP_METADATA_TOPIC, GROUP)}
    for partition in range(3):
        keys.add((SHARE_STATE_TOPIC, str(SharePartitionKey(GROUP, TopicId(found.topic_ids["orders"]), partition))))
    for topic, key in keys:
        coordinator = image.coordinator(topic, key)
        assert found.coordinator(topic, key) == (coordinator.broker_id if coordinator else -1)
    assert history.cluster(0).coordinator(GROUP_METADATA_TOPIC, GROUP) is None


def test_a_broker_has_the_time_and_the_kind_of_its_last_change() -> None:
    cluster = Cluster(brokers=3, seed=1)
    cluster.advance(1_000)
    cluster.kill_broker(0)
    cluster.stop_broker(1)
    history = GroupHistory(cluster, "g")
    history.refresh()
    changes = history.cluster(history.total).broker_changes
    times = {broker: (change.time_ms - cluster.origin_ms, change.killed) for broker, change in changes.items()}
    assert times == {0: (1_000, True), 1: (1_000, False), 2: (0, False)}


def test_entries_about_the_cluster_lie_between_two_moments() -> None:
    cluster, draw = random_cluster(5), random.Random(5)
    history = GroupHistory(cluster, GROUP)
    history.refresh()
    for _ in range(10):
        since, until = sorted(draw.randrange(history.total + 1) for _ in range(2))
        expected = [entry for entry in cluster.journal.select(*OF_CLUSTER) if since <= entry.order < until]
        assert history.cluster_entries(since, until) == expected
