"""A cluster under random faults: its journal folds to the state of the leaders, and its ledger adds up."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from shareq import AcknowledgeType, Cluster, Producer, ShareConsumer
from shareq.leader.share_partition import SharePartition
from shareq.model.ids import SharePartitionKey
from shareq.model.states import PartitionLoadState
from shareq.model.waits import Wait
from shareq.trace import Journal, ledger, metrics, view
from shareq.trace.analysis.waits import waits_for
from shareq.trace.views.view import View

GROUP, TOPIC, RECORDS = "payments", "orders", 400
ANSWERS = (AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)


def share_partitions(cluster: Cluster) -> dict[int, SharePartition]:
    """Share-partitions of the group in the memory of the running brokers."""
    leaders: list[Any] = [broker._leader.actor for broker in cluster._brokers.values()]
    return {
        led.key.partition: led.share_partition
        for leader in leaders
        for led in leader._partitions._leds.values()
        if led.share_partition.status is PartitionLoadState.ACTIVE
    }


def assert_same(shown: View, memory: SharePartition | None) -> None:
    state = shown.state()
    if memory is None:
        assert not state.loaded
        return
    assert state.loaded
    runs = [(run.first, run.end, run.state, run.delivery_count) for run in memory.runs()]
    by_offset = {offset: run[2:] for run in runs for offset in range(*run[:2])}
    folded = {offset: status[:2] for first, end, status in state.runs for offset in range(first, end)}
    assert folded == by_offset
    assert (state.spso, state.window_end) == (memory.spso, memory.window_end)
    assert state.delivery_complete_count == memory.delivery_complete_count


def assert_not_contradicted(cluster: Cluster, shown: View) -> None:
    """The journal has no answer, or that of the leader. The leader has none before it has read the log."""
    state = shown.state()
    wait, leader = waits_for(state), cluster._brokers.get(state.loaded_by)
    if leader is not None:
        actor: Any = leader._leader.actor
        known = actor.waits_for(SharePartitionKey(GROUP, cluster.image.topics[TOPIC].topic_id, shown.partition))
        assert wait is None or known in (None, Wait.FETCH_LOCK, wait)


def consumers_of(cluster: Cluster) -> list[ShareConsumer]:
    """A topic with records, and consumers that share it."""
    cluster.create_topic(TOPIC, 2)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for key in range(RECORDS):
        producer.produce(TOPIC, key=str(key).encode(), value=b"")
    producer.flush()
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP}
    config["share.acknowledgement.mode"] = "explicit"
    consumers = [ShareConsumer({**config, "client.id": f"consumer-{n}"}) for n in (1, 2, 3)]
    for consumer in consumers:
        consumer.subscribe([TOPIC])
    return consumers


def break_something(rng: Random, cluster: Cluster, consumers: list[ShareConsumer], turn: int) -> None:
    """Kill or start a broker at some turns; crash one consumer."""
    down = sorted(set(range(3)) - set(cluster._brokers))
    if turn == 4:
        cluster.crash(consumers.pop())
    if turn % 5 == 2 and not down:
        cluster.kill_broker(rng.choice(sorted(cluster._brokers)))
    elif down and rng.random() < 0.5:
        cluster.start_broker(down[0])


@pytest.mark.parametrize("number", range(3))
def test_a_journal_folds_to_the_memory_of_the_leaders_and_adds_up(seed: int, number: int, tmp_path: Path) -> None:
    rng = Random(f"{seed}/{number}")
    with Cluster(3, seed=rng.randrange(1000)) as cluster:
        consumers = consumers_of(cluster)
        views = [view(cluster, GROUP, TOPIC, partition) for partition in (0, 1)]
        for turn in range(25):
            for consumer in consumers:
                for message in consumer.poll(0.5):
                    consumer.acknowledge(message, rng.choice(ANSWERS))
            break_something(rng, cluster, consumers, turn)
            memory = share_partitions(cluster)
            for partition, shown in enumerate(views):
                assert_same(shown, memory.get(partition))
                assert_not_contradicted(cluster, shown)
    for shown in views:
        for order in (*range(0, shown.total(), 29), shown.total()):
            assert json.loads(json.dumps(shown.snapshot(order)))["order"] == order
    adds_up(cluster)
    cluster.journal.to_jsonl(tmp_path / "journal")
    assert list(Journal.from_jsonl(tmp_path / "journal")) == list(cluster.journal)


def adds_up(cluster: Cluster) -> None:
    account = ledger(cluster, GROUP, TOPIC)
    assert account.records == RECORDS
    assert account.accepted_twice == 0
    assert account.accepted + account.archived + account.in_flight + account.never_delivered == RECORDS
    counted = metrics(cluster).value("RecordAcknowledgementsPerSec", attribute="Count", ackType="Accept")
    assert counted <= account.accepted
