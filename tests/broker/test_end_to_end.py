"""Clients and cluster together on virtual, scaled and wall clocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.consumer import AcknowledgeType, Messages, ShareConsumer
from shareq.lessons import Bench
from shareq.model.errors import Errors, KafkaException, WakeupException
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.producer import Producer
from tests.polling import PATIENCE_S

pytestmark = pytest.mark.every_persister

HOUR = 3600
"""Seconds; more than a minute of real time on a clock of factor 50: no client times out on a busy machine."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=7) as made:
        prepare(made)
        yield made


def prepare(cluster: Cluster, **configs: object) -> None:
    cluster.create_topic("orders")
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", **configs})


def produce(cluster: Cluster, *values: str, **config: Any) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **config})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(HOUR) == 0


def consumer(cluster: Cluster, mode: str = "explicit", **config: Any) -> ShareConsumer:
    made = ShareConsumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "share.acknowledgement.mode": mode,
            **config,
        }
    )
    made.subscribe(["orders"])
    return made


def poll(consumer: ShareConsumer, timeout: float = 10) -> list[tuple[str, int | None]]:
    """Poll once; (value, delivery count) of each record."""
    return seen(consumer.poll(timeout))


def seen(messages: Messages) -> list[tuple[str, int | None]]:
    return [(m.value().decode(), m.delivery_count()) for m in messages]


def accept(consumer: ShareConsumer, messages: Messages, verdict: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
    for message in messages:
        consumer.acknowledge(message, verdict)


def test_accepted_records_are_not_delivered_again(cluster: Cluster) -> None:
    produce(cluster, "a", "b", "c")
    with consumer(cluster, "implicit") as one:
        assert poll(one) == [("a", 1), ("b", 1), ("c", 1)]
        assert poll(one, 2) == []
    with consumer(cluster) as two:
        assert poll(two) == []


def test_each_acknowledge_type_leads_to_its_state(cluster: Cluster) -> None:
    produce(cluster, "accept", "release", "reject")
    with consumer(cluster) as one:
        for message, verdict in zip(one.poll(10), list(AcknowledgeType)[1:4], strict=True):
            one.acknowledge(message, verdict)
        again = one.poll(10)
        assert seen(again) == [("release", 2)]
        accept(one, again)
        assert list(one.commit_sync().values()) == [None]
        assert poll(one) == []


def test_close_releases_unacknowledged_records(cluster: Cluster) -> None:
    produce(cluster, "a")
    one, two = consumer(cluster), consumer(cluster)
    two.poll(0)
    assert poll(one) == [("a", 1)]
    started = cluster.now_ms
    one.close()
    assert poll(two) == [("a", 2)]
    assert cluster.now_ms - started < 30_000


def test_locks_of_a_crashed_consumer_release_its_records_when_they_expire(cluster: Cluster) -> None:
    produce(cluster, "a")
    one, two = consumer(cluster), consumer(cluster)
    two.poll(0)
    assert poll(one) == [("a", 1)]
    locked_at = cluster.now_ms
    cluster.crash(one)
    assert poll(two, 60) == [("a", 2)]
    assert 29_000 <= cluster.now_ms - locked_at <= 31_000
    with pytest.raises(KafkaException, match="has lost its connection"):
        one.poll(1)


def test_a_record_is_archived_at_the_delivery_count_limit(cluster: Cluster) -> None:
    cluster.configure_group("g", {"share.delivery.count.limit": 3})
    produce(cluster, "poison", "fine")
    deliveries = []
    with consumer(cluster) as one:
        for _ in range(8):
            messages = one.poll(5)
            deliveries += [entry for entry in seen(messages) if entry[0] == "poison"]
            for message in messages:
                poison = message.value() == b"poison"
                one.acknowledge(message, AcknowledgeType.RELEASE if poison else AcknowledgeType.ACCEPT)
    assert deliveries == [("poison", 1), ("poison", 2), ("poison", 3)]


def test_an_expired_lock_refuses_acknowledgement(cluster: Cluster) -> None:
    produce(cluster, "late")
    with consumer(cluster) as one:
        messages = one.poll(10)
        cluster.advance(31_000)
        accept(one, messages)
        (failure,) = one.commit_sync().values()
        assert failure is not None
        assert failure.error.code() == Errors.INVALID_RECORD_STATE
        assert poll(one) == [("late", 2)]


def test_renew_extends_a_lock(cluster: Cluster) -> None:
    produce(cluster, "slow")
    one, two = consumer(cluster), consumer(cluster)
    two.poll(0)
    messages = one.poll(10)
    for _ in range(3):
        cluster.advance(20_000)
        accept(one, messages, AcknowledgeType.RENEW)
        assert list(one.commit_sync().values()) == [None]
        assert poll(two, 0) == []
        messages = one.poll(1)
        assert seen(messages) == [("slow", 1)]
    accept(one, messages)
    assert list(one.commit_sync().values()) == [None]


def test_a_failed_state_write_leaves_the_record_to_be_delivered_again(cluster: Cluster) -> None:
    produce(cluster, "a")
    with consumer(cluster) as one:
        messages = one.poll(10)
        accept(one, messages)
        cluster.fail_appends(SHARE_STATE_TOPIC, Errors.MESSAGE_TOO_LARGE)
        (failure,) = one.commit_sync().values()
        assert failure is not None
        assert poll(one, 60) == [("a", 2)]


def test_killing_every_broker_in_turn_loses_no_record(cluster: Cluster) -> None:
    produce(cluster, *"abcdef")
    got: list[str] = []
    limited: dict[str, Any] = {"max.poll.records": 2, "share.acquire.mode": "record_limit"}
    with consumer(cluster, **limited) as one:
        for broker in (0, 1, 2):
            messages = one.poll(20)
            got += [m.value().decode() for m in messages]
            accept(one, messages)
            assert list(one.commit_sync().values()) == [None]
            cluster.kill_broker(broker)
            cluster.start_broker(broker)
        assert poll(one, 20) == []
    assert got == list("abcdef")


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_committed_records_are_delivered_and_aborted_ones_are_not(cluster: Cluster, isolation: str) -> None:
    cluster.configure_group("g", {"share.isolation.level": isolation})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value, partition=0)
        producer.flush()
        end()
    producer.begin_transaction()
    producer.produce("orders", "open", partition=0)
    producer.flush()
    with consumer(cluster, "implicit") as one:
        got = [value for _ in range(4) for value, _ in poll(one, 5)]
    assert got == (["kept"] if isolation == "read_committed" else ["kept", "dropped", "open"])


# ---- clocks that run by themselves -----------------------------------------------------------------------------------


@pytest.fixture
def running() -> Iterator[Cluster]:
    """A cluster on a clock of factor 50, with record locks of an hour."""
    config = {"group.share.max.record.lock.duration.ms": HOUR * 1000}
    with Cluster(brokers=1, clock=50.0, seed=7, config=config) as made:
        prepare(made, **{"share.record.lock.duration.ms": HOUR * 1000})
        yield made


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Start `work` in another thread; its result or its exception is appended to the list."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # the test checks it
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_a_poll_in_one_thread_gets_what_another_produces(running: Cluster) -> None:
    one = consumer(running)
    assert running.wait(lambda: bool(one.poll(0.1)) or bool(one.assignment()), HOUR)
    thread, results = in_thread(lambda: seen(one.poll(HOUR)))
    produce(running, "from another thread")
    thread.join(PATIENCE_S)
    assert results == [[("from another thread", 1)]]


def test_wakeup_ends_a_poll_without_a_timeout(running: Cluster) -> None:
    one = consumer(running)
    thread, results = in_thread(lambda: one.poll(-1))
    while thread.is_alive():
        one.wakeup()
        thread.join(0.01)
    assert [type(result) for result in results] == [WakeupException]


def test_an_acknowledgement_callback_can_call_the_cluster(running: Cluster) -> None:
    """The callback runs without a lock that other calls of the cluster need."""
    one = consumer(running)
    errors: list[object] = []

    def callback(offsets: object, error: object) -> None:
        errors.append(error)
        one.wakeup()
        produce(running, "from the callback")

    def work() -> list[tuple[str, int | None]]:
        one.set_acknowledgement_commit_callback(callback)
        produce(running, "first")
        accept(one, one.poll(HOUR))
        one.commit_sync()
        with pytest.raises(WakeupException):
            one.poll(HOUR)
        return poll(one, HOUR)

    thread, results = in_thread(work)
    thread.join(PATIENCE_S)
    assert results == [[("from the callback", 1)]]
    assert errors == [None]


def test_locks_expire_on_a_running_clock(running: Cluster) -> None:
    running.configure_group("g", {"share.record.lock.duration.ms": 30_000})
    produce(running, "a")
    one = consumer(running)
    assert poll(one, HOUR) == [("a", 1)]
    running.crash(one)
    assert poll(consumer(running), HOUR) == [("a", 2)]


def test_closing_the_cluster_ends_a_blocked_poll(running: Cluster) -> None:
    one = consumer(running)
    thread, results = in_thread(lambda: one.poll(-1))
    running.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert len(results) == 1


def test_a_late_response_does_not_change_what_a_commit_has_returned() -> None:
    bench = Bench(1)
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    bench.cluster.delay_appends("__share_group_state", 3_000)
    for message in messages:
        ann.acknowledge(message)
    result = ann.commit_sync(1)
    bench.cluster.advance(5_000)
    assert bench.life(0).state == "acknowledged"
    [error] = result.values()
    assert error is not None
    assert error.error.code() == Errors.REQUEST_TIMED_OUT
