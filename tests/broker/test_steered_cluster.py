"""What a test or a control panel does to a running cluster: frozen clients, delayed appends, retention, the speed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer, ledger
from shareq.broker.loop import VirtualLoop, WallLoop
from shareq.model.errors import ConfigException, Errors, IllegalStateException
from shareq.model.events import (
    FaultInjected,
    HeartbeatReceived,
    LogStartMoved,
    MemberLeft,
    StateWritePrepared,
    StateWriteSettled,
)
from shareq.model.ids import SHARE_STATE_TOPIC


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, seed=5) as made:
        made.create_topic("orders")
        made.configure_group("g", {"share.auto.offset.reset": "earliest"})
        producer = Producer({"bootstrap.servers": made.bootstrap_servers})
        producer.produce("orders", "one")
        producer.flush()
        yield made


def consumer_of(cluster: Cluster) -> ShareConsumer:
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "client.id": "A"})
    consumer.subscribe(["orders"])
    return consumer


def count(cluster: Cluster, kind: type) -> int:
    return len(cluster.journal.select(kind))


# ---- frozen clients --------------------------------------------------------------------------------------------------


def test_a_frozen_client_sends_no_heartbeat_and_loses_its_membership(cluster: Cluster) -> None:
    consumer = consumer_of(cluster)
    assert len(consumer.poll(10)) == 1
    cluster.freeze(consumer)
    cluster.advance(5)
    beats = count(cluster, HeartbeatReceived)
    cluster.advance(60_000)
    assert (count(cluster, HeartbeatReceived), count(cluster, MemberLeft)) == (beats, 1)


def test_an_unfrozen_client_handles_what_has_arrived_and_continues(cluster: Cluster) -> None:
    consumer = consumer_of(cluster)
    assert not consumer.poll(0)  # the requests of the first poll are on their way
    cluster.freeze(consumer)
    cluster.advance(20_000)
    with pytest.raises(IllegalStateException, match="client 'A' is frozen: call cluster"):
        consumer.poll(0)
    cluster.unfreeze(consumer)
    assert len(consumer.poll(10)) == 1


def test_freezing_is_in_the_journal_and_refused_where_it_makes_no_sense(cluster: Cluster) -> None:
    consumer = consumer_of(cluster)
    cluster.freeze(consumer)
    with pytest.raises(IllegalStateException, match="A is frozen already"):
        cluster.freeze(consumer)
    cluster.unfreeze(consumer)
    with pytest.raises(IllegalStateException, match="A is not frozen"):
        cluster.unfreeze(consumer)
    cluster.crash(consumer)
    with pytest.raises(IllegalStateException, match="is not an open client"):
        cluster.freeze(consumer)
    texts = [entry.event.text for entry in cluster.journal if isinstance(entry.event, FaultInjected)]
    assert texts == ["A is frozen", "A is unfrozen", "A crashed"]


# ---- delayed appends -------------------------------------------------------------------------------------------------


@pytest.mark.without("control-records", "a repeated write finds that nothing is new, and succeeds")
@pytest.mark.parametrize(
    ("delay_ms", "least_ms", "most_ms", "error"),
    [
        pytest.param(0, 0, 0, Errors.NONE, id="no delay"),
        pytest.param(400, 400, 400, Errors.NONE, id="a slow write"),
        pytest.param(20_000, 5_000, 60_000, Errors.COORDINATOR_NOT_AVAILABLE, id="beyond the write time-out, retried"),
    ],
)
def test_delayed_appends_delay_state_writes(
    cluster: Cluster, delay_ms: int, least_ms: int, most_ms: int, error: Errors
) -> None:
    consumer = consumer_of(cluster)
    assert len(consumer.poll(10)) == 1
    seen = cluster.journal.total
    cluster.delay_appends(SHARE_STATE_TOPIC, delay_ms)
    consumer.commit_async()
    cluster.advance(60_000)
    began_ms = next(e.time_ms for e in cluster.journal.since(seen) if isinstance(e.event, StateWritePrepared))
    results = [
        (e.time_ms - began_ms, e.event.error)
        for e in cluster.journal.since(seen)
        if isinstance(e.event, StateWriteSettled)
    ]
    assert least_ms <= results[0][0] <= most_ms
    assert results[0][1] == error


@pytest.mark.parametrize(
    ("topic", "ms", "message"),
    [
        ("x", 1, r"topic='x': must be a topic, or one of __consumer_offsets, __share_group_state, __transaction_state"),
        (["orders"], 1, r"topic=\['orders'\]: must be a topic"),
        (SHARE_STATE_TOPIC, -1, r"ms=-1: must be a whole number in 0\.\.3600000"),
        (SHARE_STATE_TOPIC, 1.5, r"ms=1\.5: must be a whole number"),
    ],
)
def test_bad_delays_are_refused(cluster: Cluster, topic: Any, ms: Any, message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        cluster.delay_appends(topic, ms)
    assert not count(cluster, FaultInjected)


def test_an_append_of_a_producer_is_answered_late(cluster: Cluster) -> None:
    """Its record is in the log at once: a consumer may have it before the producer knows."""
    cluster.delay_appends("orders", 400)
    took_ms: list[int] = []
    end = cluster.log("orders", 0).log_end_offset
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for _ in range(2):
            began_ms = cluster.now_ms
            producer.produce("orders", b"x")
            cluster.advance(100)
            assert cluster.log("orders", 0).log_end_offset == end + 1
            assert producer.flush(10) == 0
            took_ms.append(cluster.now_ms - began_ms)
            cluster.clear_faults()
            end += 1
    assert 400 <= took_ms[0] < 500
    assert took_ms[1] == 100


# ---- retention -------------------------------------------------------------------------------------------------------


def test_logs_can_be_cleaned_at_once(cluster: Cluster) -> None:
    cluster.create_topic("short", configs={"retention.ms": 1000})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("short", "old")
    producer.flush()
    cluster.clean_logs()
    assert cluster.log("short", 0).log_start_offset == 0
    cluster.advance(1_001)
    cluster.clean_logs()
    assert cluster.log("short", 0).log_start_offset == 1
    assert [e.event.topic for e in cluster.journal if isinstance(e.event, LogStartMoved)] == ["short"]


# ---- the speed of the clock, and calls of clients inside events ------------------------------------------------------


def test_the_speed_of_a_running_clock_changes_without_a_jump() -> None:
    loop = WallLoop()
    before_ms = loop.time_ms()
    loop.change_scale(1000)
    assert 0 <= loop.time_ms() - before_ms < 60_000
    assert not loop.wait(lambda: False, 60_000)  # 60 ms of wall time
    assert loop.time_ms() - before_ms >= 60_000
    loop.close()


def test_a_timer_follows_a_faster_clock() -> None:
    loop, fired = WallLoop(0.001), []
    loop.at(loop.time_ms() + 1000, lambda: fired.append(True))  # in 1,000 s
    loop.change_scale(1000)
    assert loop.wait(lambda: bool(fired), 3_600_000)
    loop.close()


@pytest.mark.parametrize("factor", [0, -1, 1001, "fast", True])
def test_bad_speeds_are_refused(factor: Any) -> None:
    with Cluster(brokers=1, clock=10.0) as cluster:
        with pytest.raises(ConfigException, match=r"factor=.*: must be a factor in 0\.001\.\.1000"):
            cluster.change_speed(factor)
        assert cluster.clock == 10.0
        cluster.change_speed(20)
        assert cluster.clock == 20


def test_a_virtual_clock_has_no_speed(cluster: Cluster) -> None:
    with pytest.raises(IllegalStateException, match="clock='virtual' does not run"):
        cluster.change_speed(2)


def test_inside_an_event_no_time_passes_and_no_timer_fires() -> None:
    seen: list[object] = []
    loop = VirtualLoop()
    began_ms = loop.time_ms()
    loop.at(began_ms, lambda: loop.as_event(lambda: seen.append(loop.wait(lambda: False, 5000))))
    loop.at(began_ms, lambda: seen.append("the next timer"))
    loop.wait(lambda: False, 10)
    assert (seen, loop.time_ms()) == ([False, "the next timer"], began_ms + 10)


# ---- clocks ----------------------------------------------------------------------------------------------------------


def test_a_jump_of_the_clock_is_in_the_journal_and_delays_what_is_due(cluster: Cluster) -> None:
    seen: list[int] = []
    began_ms = cluster.now_ms
    cluster.loop.at(began_ms + 10, lambda: seen.append(cluster.now_ms))
    cluster.jump_clock(1000)
    assert (seen, cluster.now_ms) == ([], began_ms + 1000)
    cluster.advance(0)
    assert seen == [began_ms + 1000]
    (fault,) = cluster.journal.select(FaultInjected)
    assert (fault.time_ms, fault.event) == (began_ms + 1000, FaultInjected("the clock has jumped by 1000 ms"))


@pytest.mark.parametrize("ms", [-1, 1.5, True, "1", 31_536_000_001])
def test_a_bad_jump_is_refused(cluster: Cluster, ms: Any) -> None:
    began_ms = cluster.now_ms
    with pytest.raises(ConfigException, match=rf"ms={ms!r}: must be a whole number in 0\.\.31536000000"):
        cluster.jump_clock(ms)
    assert cluster.now_ms == began_ms
    assert not count(cluster, FaultInjected)


@pytest.mark.parametrize("ms", [-31_536_000_001, 31_536_000_001, 0.5, None])
def test_a_time_of_day_that_is_set_too_far_is_refused(cluster: Cluster, ms: Any) -> None:
    with pytest.raises(ConfigException, match=rf"ms={ms!r}: must be a whole number in -31536000000\.\.31536000000"):
        cluster.jump_clock(ms, of_day=True)


def test_time_does_not_run_backwards_after_a_jump_within_an_event(cluster: Cluster) -> None:
    """The wait in which the clock jumps is over; what is due later than its end happens in the next one."""
    began_ms, fired = cluster.now_ms, []
    cluster.loop.at(began_ms + 10, lambda: cluster.jump_clock(60_000))
    cluster.loop.at(began_ms + 30_000, lambda: fired.append(cluster.now_ms))
    cluster.advance(1000)
    assert (cluster.now_ms, fired) == (began_ms + 60_010, [])
    cluster.advance(0)
    assert fired == [began_ms + 60_010]


@pytest.mark.parametrize(
    ("ms", "of_day"),
    [
        pytest.param(20_000, False, id="a pause shorter than the locks"),
        pytest.param(86_400_000, True, id="the time of day a day ahead"),
        pytest.param(-86_400_000, True, id="the time of day a day back"),
    ],
)
@pytest.mark.parametrize("jumps", ["before the poll", "in the lock", "before the state write", "all of them"])
def test_no_jump_of_a_clock_within_locks_loses_or_repeats_a_record(
    cluster: Cluster, ms: int, jumps: str, *, of_day: bool
) -> None:
    """Twenty records on the way, ten before the jump and ten after it, each delivered and accepted once."""

    def jump(moment: str) -> None:
        if jumps in (moment, "all of them"):
            cluster.jump_clock(ms, of_day=of_day)

    servers = cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": "g", "share.acknowledgement.mode": "explicit"})
    consumer.subscribe(["orders"])
    delivered: list[Any] = []
    for value in range(20):
        producer.produce("orders", str(value))
        producer.flush()
        jump("before the poll")
        messages = consumer.poll(10)
        jump("in the lock")
        cluster.advance(1000)
        for message in messages:
            delivered.append((message.offset(), message.delivery_count()))
            consumer.acknowledge(message)
        cluster.delay_appends(SHARE_STATE_TOPIC, 500)
        consumer.commit_async()
        jump("before the state write")
        assert not any(consumer.commit_sync(30).values())
    cluster.advance(120_000)
    assert not consumer.poll(1)
    assert delivered == [(offset, 1) for offset in range(21)]
    account = ledger(cluster.journal, "g", "orders")
    assert (account.accepted, account.accepted_twice) == (21, 0)


def test_timestamps_follow_the_time_of_day_and_durations_do_not(cluster: Cluster) -> None:
    consumer = consumer_of(cluster)
    (first,) = consumer.poll(10)
    began_ms = cluster.now_ms
    cluster.jump_clock(-3_600_000, of_day=True)
    assert cluster.now_ms == began_ms
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("orders", "two")
    producer.flush()
    (second,) = consumer.poll(10)
    assert second.timestamp()[1] - first.timestamp()[1] == pytest.approx(-3_600_000, abs=60_000)
    assert (first.delivery_count(), second.delivery_count()) == (1, 1)
    (fault,) = cluster.journal.select(FaultInjected)
    assert fault.event == FaultInjected("the time of day has jumped by -3600000 ms")


@pytest.mark.parametrize("clock", ["wall", 10.0])
def test_a_clock_that_runs_cannot_jump(clock: str | float) -> None:
    with (
        Cluster(brokers=1, clock=clock) as cluster,
        pytest.raises(IllegalStateException, match=r"runs by itself: only clock='virtual' can jump"),
    ):
        cluster.jump_clock(1000)


@pytest.mark.parametrize("first", ["acknowledgement", "timer"])
def test_a_lock_ends_with_its_timer_after_a_jump(cluster: Cluster, first: str) -> None:
    """As in Kafka, whose timers can be late, too: what reaches the leader first decides, and there is one holder."""
    consumer = ShareConsumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe(["orders"])
    (message,) = consumer.poll(10)
    cluster.jump_clock(31_000)
    if first == "timer":
        cluster.advance(0)
    consumer.acknowledge(message)
    ((_, refused),) = consumer.commit_sync(5).items()
    assert (refused is None) == (first == "acknowledgement")
    assert [again.delivery_count() for again in consumer.poll(10)] == ([] if refused is None else [2])


def test_a_member_whose_session_ends_in_a_jump_joins_again(cluster: Cluster) -> None:
    """The coordinator cannot know that the heartbeats were late, too. Nothing is delivered twice."""
    consumer = consumer_of(cluster)
    assert len(consumer.poll(10)) == 1
    consumer.commit_sync()
    cluster.jump_clock(60_000)
    cluster.advance(1000)
    assert count(cluster, MemberLeft) == 1
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("orders", "two")
    producer.flush()
    assert [message.value() for message in consumer.poll(60)] == [b"two"]


def test_timers_run_once_after_a_jump(cluster: Cluster) -> None:
    """An hour of heartbeats is one heartbeat."""
    consumer = consumer_of(cluster)
    assert len(consumer.poll(10)) == 1
    cluster.advance(5000)
    before = count(cluster, HeartbeatReceived)
    cluster.jump_clock(3_600_000)
    cluster.advance(0)
    assert count(cluster, HeartbeatReceived) == before + 1


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_jump_of_the_wall_clock_moves_no_cluster(monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """A running cluster counts with a clock that only runs ahead: locks, sessions and timers keep their lengths, and
    times of records continue."""
    with Cluster(brokers=1, clock=1000.0) as cluster:
        cluster.create_topic("orders")
        fired: list[int] = []
        due_ms = cluster.now_ms + 60_000
        cluster.loop.enter(lambda: cluster.loop.at(due_ms, lambda: fired.append(cluster.now_ms)))
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + hours * 3600)
        monkeypatch.setattr(time, "time_ns", lambda: int(time.time() * 1e9))
        assert cluster.wait(lambda: bool(fired), 600)
        assert due_ms <= fired[0] < due_ms + 12 * 3_600_000
