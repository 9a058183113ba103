"""Observers of a shareq cluster over TCP, compared with the cluster's own journal."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from shareq import AcknowledgeType, Cluster, KafkaException, Producer, ShareConsumer, lag_plot, observe, view
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import RecordState
from shareq.observer import Observer
from shareq.trace import View
from shareq.wire.server import Server
from shareq_widgets import control_room, locks, strip
from tests.observer.stage import Stage
from tests.polling import PATIENCE_S, QUICK
from tests.wire.raw import quiet_ports

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
CONFIG = {
    **QUICK,
    "group.share.max.record.lock.duration.ms": 600_000,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
    "share.coordinator.state.topic.num.partitions": 7,
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers with two topics; snapshots come often."""
    with Cluster(brokers=3, clock="wall", config=CONFIG) as cluster, cluster.serve():
        cluster.create_topic("orders", 2)
        cluster.create_topic("bills")
        for group in ("crew", "others"):
            cluster.configure_group(
                group, {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 600_000}
            )
        yield cluster


@pytest.fixture
def stage(cluster: Cluster) -> Iterator[Stage]:
    server = cluster._server
    assert isinstance(server, Server)
    made = Stage(server.bootstrap_servers, "crew", "orders", "bills")
    yield made
    made.close()


def acknowledge_all(consumer: ShareConsumer, messages: Any, verdict: Callable[[int], AcknowledgeType | None]) -> None:
    for message in messages:
        acknowledge_type = verdict(message.offset())
        if acknowledge_type is not None:
            consumer.acknowledge(message, acknowledge_type)
    assert not any(consumer.commit_sync().values())


def agrees(seen: View, truth: View) -> bool:
    """True if the observed state equals the durable part of the leader's state (SPSO, log, final states, delivery
    counts of returned records) and contradicts no other part.
    """
    ours, real = seen.state(), truth.state()
    if (ours.spso, ours.log_start, ours.log_end) != (real.spso, real.log_start, real.log_end):
        return False
    observed = {o: (status.name, status.delivery_count) for first, end, status in ours.runs for o in range(first, end)}
    held = {o: status.member_id for first, end, status in ours.runs for o in range(first, end)}
    for first, end, status in real.runs:
        for offset in range(first, end):
            name, count = observed.get(offset, ("unknown", 0))
            terminal = status.state.terminal
            if terminal and (name, count) != (status.name, status.delivery_count):
                return False
            if not terminal and name not in ("acquired", "returned", "unknown"):
                return False
            if status.state is RecordState.AVAILABLE and status.delivery_count and count != status.delivery_count:
                return False
            if held.get(offset) is not None and held[offset] != status.member_id:
                return False
    return not real.writes


def expect(observer: Observer, cluster: Cluster, *places: tuple[str, int]) -> None:
    """Wait until the observer agrees with the cluster's journal about all these partitions."""
    for place in places:
        seen, truth = observer.view(*place), view(cluster, observer.group, *place)
        assert observer.wait(partial(agrees, seen, truth), PATIENCE_S), f"{seen!r}\n{truth!r}"


def test_an_observer_agrees_with_the_clusters_own_journal(cluster: Cluster, stage: Stage, seed: int) -> None:
    """Two groups, three partitions, random acknowledgements; one observer from the start, and a late one that reads
    snapshots."""
    rng = random.Random(seed)

    def verdict(_: int) -> AcknowledgeType:
        return rng.choice([ACCEPT, ACCEPT, RELEASE, REJECT])

    places = [("orders", 0), ("orders", 1), ("bills", 0)]
    for place in places:
        stage.produce(place[0], 40, place[1])
    with observe(stage.address, "crew", interval_ms=20) as early:
        crew = [stage.consumer(name, most=rng.randint(3, 12)) for name in ("anna", "ben")]
        crew.append(stage.consumer("ben", "others"))
        for _ in range(8):
            polled = [(member, member.poll(0.5)) for member in crew]
            for member, messages in polled:
                acknowledge_all(member, messages[::2], verdict)
            expect(early, cluster, *places)
            for member, messages in polled:
                acknowledge_all(member, messages[1::2], verdict)
            expect(early, cluster, *places)
        with observe(stage.address, "crew", interval_ms=20) as late:
            assert late.refresh()
            for place in places:
                assert late.view(*place).state().spso == early.view(*place).state().spso
            expect(late, cluster, *places)
        for member in crew:
            member.close()
        expect(early, cluster, *places)
        assert early.wait(lambda: not any(m["alive"] for m in early.view("bills").snapshot()["members"]), PATIENCE_S)
        assert not any(m["held"] for m in early.view("bills").snapshot()["members"])


def test_observation_continues_when_brokers_are_killed(cluster: Cluster, stage: Stage) -> None:
    """Each broker in turn: the partition's leader, the group's coordinator and the state's move."""
    stage.produce("orders", 30)
    with observe(stage.address, "crew", ["orders"], interval_ms=20) as observer:
        anna = stage.consumer("anna", most=4)
        for broker in (0, 1, 2):
            messages = anna.poll(PATIENCE_S)
            assert messages
            cluster.kill_broker(broker)
            accept_all(anna, messages)
            expect(observer, cluster, ("orders", 0))
            cluster.start_broker(broker)
        anna.close()


def accept_all(consumer: ShareConsumer, messages: Any) -> None:
    """Accept all; a new leader refuses records that were locked at the former one."""
    for message in messages:
        consumer.acknowledge(message, ACCEPT)
    consumer.commit_sync()


def test_an_unreachable_cluster_is_shown_until_another_one_serves_its_ports() -> None:
    with Cluster(brokers=1, clock="wall", config=CONFIG) as cluster:
        cluster.create_topic("orders")
        ports = quiet_ports(1)
        server = cluster.serve(ports=ports)
        with observe(server.bootstrap_servers, "crew", ["orders"], interval_ms=20) as observer:
            assert observer.wait(lambda: observer.view("orders").total() > 0, PATIENCE_S)
            server.close()
            seen = observer.view("orders")
            assert observer.wait(lambda: bool(seen.snapshot()["disturbed"]), PATIENCE_S)
            assert "does not answer" in seen.snapshot()["text"]
            with cluster.serve(ports=ports):
                assert observer.wait(lambda: not seen.snapshot()["disturbed"], PATIENCE_S)


def starts_at(seen: View, spso: int) -> bool:
    return seen.state().spso == spso


def test_altered_offsets_and_a_deleted_group_reset_the_state(stage: Stage) -> None:
    stage.produce("orders", 20)
    anna = stage.consumer("anna", most=20)
    acknowledge_all(anna, anna.poll(PATIENCE_S), lambda offset: ACCEPT if offset % 2 else None)
    anna.close()
    with observe(stage.address, "crew", ["orders"], interval_ms=20) as observer:
        seen = observer.view("orders")
        assert observer.wait(lambda: seen.state().delivery_complete_count == 10, PATIENCE_S)
        for offset in (15, 0):
            stage.admin.alter_share_group_offsets("crew", {("orders", 0): offset}).check()
            assert observer.wait(partial(starts_at, seen, offset), PATIENCE_S)
            assert {status.name for _, _, status in seen.state().runs} == {"unknown"}
        stage.admin.delete_share_groups(["crew"]).check()
        assert observer.wait(lambda: not seen.state().loaded, PATIENCE_S)
        assert seen.snapshot()["text"] == "SPSO 0 | empty | log end 20 (nothing durable)"


def test_a_topic_created_again_is_observed_from_its_start(stage: Stage) -> None:
    stage.produce("bills", 5)
    with observe(stage.address, "crew", ["bills"], interval_ms=20) as observer:
        seen = observer.view("bills")
        assert observer.wait(lambda: seen.state().log_end == 5, PATIENCE_S)
        stage.admin.delete_topics(["bills"]).check()
        stage.admin.create_topics(["bills"]).check()
        stage.produce("bills", 2)
        assert observer.wait(lambda: seen.state().log_end == 2, PATIENCE_S)


def test_an_observer_changes_nothing(cluster: Cluster, stage: Stage) -> None:
    """It joins no group, and the state topic has no new records."""
    stage.produce("orders", 5)
    anna = stage.consumer("anna")
    acknowledge_all(anna, anna.poll(PATIENCE_S), lambda _: ACCEPT)
    ends = [cluster.log(SHARE_STATE_TOPIC, index).log_end_offset for index in range(7)]
    before = cluster.journal.total
    with observe(stage.address, "crew") as observer:
        for _ in range(5):
            assert observer.refresh()
    assert [cluster.log(SHARE_STATE_TOPIC, index).log_end_offset for index in range(7)] == ends
    recorded = {type(entry.event).__name__ for entry in cluster.journal.since(before)}
    assert recorded <= {"HeartbeatReceived"}


def test_a_cluster_in_this_process_is_observed_without_sockets() -> None:
    """On the cluster's virtual clock, which advances during calls that wait."""
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("orders")
        cluster.configure_group("crew", {"share.auto.offset.reset": "earliest"})
        conf = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(conf) as producer:
            producer.produce("orders", "one")
        with ShareConsumer({**conf, "group.id": "crew"}) as anna, observe(cluster.bootstrap_servers, "crew") as seen:
            anna.subscribe(["orders"])
            assert len(anna.poll(PATIENCE_S)) == 1
            anna.commit_sync()
            assert seen.refresh()
            assert seen.view("orders").snapshot()["text"] == "SPSO 1 | empty | log end 1"


# ---- other sources ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [view, strip, locks, control_room, lag_plot])
def test_an_address_where_no_kafka_is_cannot_be_shown(look: Callable[..., Any]) -> None:
    """A picture would show zeros, as of an empty group."""
    nowhere = f"127.0.0.1:{quiet_ports(1)[0]}"
    place = {"group": "crew"} if look in (locks, lag_plot) else {"group": "crew", "topic": "orders"}
    with pytest.raises(KafkaException, match=f"{nowhere} cannot be shown: .*connection refused"):
        look(nowhere, **place)


def test_views_strips_and_plots_take_an_address(stage: Stage) -> None:
    stage.produce("orders", 6)
    anna = stage.consumer("anna")
    acknowledge_all(anna, anna.poll(PATIENCE_S), lambda offset: ACCEPT if offset < 2 else None)
    seen = view(stage.address, "crew", "orders")
    assert seen.source.wait(lambda: seen.snapshot()["spso"] == 2, PATIENCE_S)
    seen.close()
    shown = strip(stage.address, group="crew", topic="orders")
    observer = shown._playback.source
    assert isinstance(observer, Observer)
    assert observer.wait(lambda: observer.view("orders").snapshot()["spso"] == 2, PATIENCE_S)
    shown.tick()
    assert shown.snapshot["spso"] == 2
    assert shown._playback.next_tick_ms() == 100
    shown.close()
    assert observer.closed
    assert "orders-0: at most 4, 4 in the end" in lag_plot(stage.address, "crew").text


@pytest.mark.parametrize("show", [lambda source: view(source, "crew", "orders"),
                                  lambda source: strip(source, group="crew", topic="orders")])  # fmt: skip
def test_a_server_is_a_source_like_its_cluster(cluster: Cluster, stage: Stage, show: Callable[[Any], Any]) -> None:
    stage.produce("orders", 6)
    shown = show(cluster._server)
    assert repr(shown).endswith(repr(view(cluster, "crew", "orders")).rpartition(": ")[2])
    shown.close()
    assert not cluster.closed
