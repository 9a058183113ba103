"""An unhandled error in a client's core fails waiting calls, their callbacks, and every later call."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from shareq import Admin, ClientFailedException, Cluster, Producer, ShareConsumer
from shareq.producer import core, partition_queue, partitioner, produced_topic, sender, transaction

EARLIEST = {"share.auto.offset.reset": "earliest"}


class DefectError(Exception):
    """An error that no core raises on purpose."""


def fail(*_: object, **__: object) -> None:
    raise DefectError("a defect")


@pytest.mark.parametrize("clock", ["virtual", 1000.0])
def test_a_failed_producer_reports_its_records_and_refuses_calls(
    clock: str | float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting and later calls fail; the cluster and its other clients continue."""
    cluster = Cluster(brokers=1, clock=clock)
    cluster.create_topic("t")
    address = {"bootstrap.servers": cluster.bootstrap_servers}
    broken, sound = Producer(address), Producer(address)
    errors: list[Any] = []
    broken.produce("t", "1", on_delivery=lambda error, _: errors.append(error))
    broken.produce("t", "2", on_delivery=lambda error, _: errors.append(error))
    monkeypatch.setattr(broken._core._sender, "pump", fail)
    with pytest.raises(ClientFailedException, match="DefectError") as raised:
        broken.flush()
    assert isinstance(raised.value.__cause__, DefectError)
    assert [(error.name(), error.fatal()) for error in errors] == [("_FATAL", True)] * 2
    for call in (broken.flush, lambda: broken.produce("t", "3")):
        with pytest.raises(ClientFailedException, match="DefectError"):
            call()
    sound.produce("t", "4")
    assert sound.flush() == 0
    cluster.close()


@pytest.mark.parametrize("clock", ["virtual", 1000.0])
def test_a_failed_consumer_refuses_calls(clock: str | float, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(brokers=1, clock=clock)
    cluster.create_topic("t")
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    consumer.subscribe(["t"])
    monkeypatch.setattr(consumer._core._fetcher, "_fetched", fail)
    for call in (consumer.poll, consumer.poll, consumer.commit_sync, consumer.commit_async):
        with pytest.raises(ClientFailedException, match="DefectError"):
            call()
    Admin({"bootstrap.servers": cluster.bootstrap_servers}).list_topics()
    cluster.close()


def test_a_failed_admin_client_refuses_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(brokers=1)
    admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})
    monkeypatch.setattr(admin._core, "start", fail)
    for _ in range(2):
        with pytest.raises(ClientFailedException, match="DefectError"):
            admin.list_topics()


# ---- callbacks of open records ---------------------------------------------------------------------------------------

CORE = {module.__file__ for module in (core, partition_queue, partitioner, produced_topic, sender, transaction)}


def failing_at(number: int, call: Callable[[], object]) -> int:
    """Call with the `number`-th function entry of the producer's core failing; returns the number of entries.

    With 0 none fails. Generators are left out, because closing one counts as a call, too.
    """
    entered = 0

    def in_turn(frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code.co_name not in ("carry_out", "deliver"):
            frame = frame.f_back
        return frame is not None

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal entered
        if frame.f_code.co_filename in CORE and frame.f_code.co_name != "<genexpr>" and in_turn(frame):
            entered += 1
            if entered == number:
                sys.settrace(None)
                raise DefectError(frame.f_code.co_name)

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return entered


class ReportedProducer:
    """A producer with records for two partitions, for a topic that a broker creates, and for invalid ones."""

    def __init__(self) -> None:
        self.cluster = Cluster(brokers=1, seed=3)
        self.cluster.create_topic("t", partitions=2)
        self.producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "batch.num.messages": 2,
                "topic.metadata.propagation.max.ms": 100,
                "message.timeout.ms": 3000,
            }
        )
        self.reports: Counter[bytes] = Counter()
        self.errors: list[str | None] = []
        self.produced = 0

    def report(self, error: Any, message: Any) -> None:
        self.reports[message.value()] += 1
        self.errors.append(error and error.name())

    def produce(self, topic: str, partition: int = -1) -> None:
        self.produced += 1
        self.producer.produce(topic, str(self.produced), partition=partition, on_delivery=self.report)

    def write(self) -> None:
        for partition in (0, 1, 0, 0, -1, 1, 7):
            self.produce("t", partition)
        self.produce("nowhere")
        self.producer.flush()

    def lose(self) -> None:
        """Requests without responses time out, and waiting records are purged."""
        self.produce("t")
        self.producer.flush()
        self.cluster.kill_broker(0)
        for _ in range(3):
            self.produce("t", 0)
        self.producer.poll(1)
        self.produce("t", 1)
        self.produce("late")
        self.producer.poll(1)
        self.producer.purge()
        for _ in range(3):
            self.produce("t", 0)
        self.producer.flush()

    def recreate(self) -> None:
        """The topic is recreated with fewer partitions while records wait for a removed one."""
        self.produce("t", 1)
        self.producer.flush()
        self.cluster.kill_broker(0)
        for _ in range(3):
            self.produce("t", 1)
        self.producer.poll(0.1)
        self.cluster.start_broker(0)
        Admin({"bootstrap.servers": self.cluster.bootstrap_servers}).delete_topics(["t"])
        self.cluster.create_topic("t", partitions=1)
        self.producer.flush()


@pytest.mark.parametrize("work", ["write", "lose", "recreate"])
def test_each_record_is_reported_once_wherever_the_producer_fails(work: str) -> None:
    """This includes a record that only the failing turn had."""
    sound = ReportedProducer()
    steps = failing_at(0, getattr(sound, work))
    assert steps > 100
    assert set(sound.reports.values()) == {1}
    fatal = 0
    for number in range(1, steps + 1, 1 + steps // 150):
        reported = ReportedProducer()
        with pytest.raises(ClientFailedException, match="DefectError"):
            failing_at(number, getattr(reported, work))
        with pytest.raises(ClientFailedException, match="DefectError"):
            reported.producer.flush()
        assert reported.reports == {str(value).encode(): 1 for value in range(1, reported.produced + 1)}, number
        fatal += "_FATAL" in reported.errors
        assert len(reported.producer) == 0
    assert fatal > 20


def test_acknowledgements_in_flight_are_reported_when_a_consumer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(brokers=1, latency_ms=10)
    cluster.create_topic("t")
    cluster.configure_group("g", EARLIEST)
    address = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer(address) as producer:
        for _ in range(4):
            producer.produce("t", "x")
    consumer = ShareConsumer({**address, "group.id": "g", "share.acknowledgement.mode": "explicit"})
    consumer.subscribe(["t"])
    called: list[tuple[set[int], Any]] = []
    consumer.set_acknowledgement_commit_callback(
        lambda offsets, error: called.extend((found, error and error.error) for found in offsets.values())
    )
    messages = list(consumer.poll(10))
    for message in messages[:2]:
        consumer.acknowledge(message)
    consumer.commit_async()
    for message in messages[2:]:
        consumer.acknowledge(message)
    monkeypatch.setattr(consumer._core._fetcher, "_acknowledged", fail)
    with pytest.raises(ClientFailedException, match="DefectError"):
        consumer.commit_sync()
    assert [(offsets, error.name(), error.fatal()) for offsets, error in called] == [
        ({0, 1}, "_FATAL", True),
        ({2, 3}, "_FATAL", True),
    ]
    with pytest.raises(ClientFailedException, match="DefectError"):
        consumer.close()
    assert len(called) == 2


def test_earlier_acknowledgements_are_reported_with_their_result_when_a_consumer_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(brokers=1)
    cluster.create_topic("t")
    cluster.configure_group("g", EARLIEST)
    address = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer(address) as producer:
        producer.produce("t", "x")
    consumer = ShareConsumer({**address, "group.id": "g"})
    consumer.subscribe(["t"])
    called: list[object] = []
    consumer.set_acknowledgement_commit_callback(lambda _, error: called.append(error))
    assert len(consumer.poll(10)) == 1
    assert set(consumer.commit_sync().values()) == {None}
    monkeypatch.setattr(consumer._core._membership, "pump", fail)
    with pytest.raises(ClientFailedException):
        consumer.poll(10)
    assert called == [None]


def test_a_failure_of_another_client_in_a_callback_does_not_fail_the_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(brokers=1)
    cluster.create_topic("t")
    address = {"bootstrap.servers": cluster.bootstrap_servers}
    broken, sound = Admin(address), Producer(address)
    monkeypatch.setattr(broken._core, "start", fail)
    errors: list[object] = []

    def report(*_: object) -> None:
        sound.produce("t", "2", on_delivery=lambda error, _: errors.append(error))
        broken.list_topics()

    sound.produce("t", "1", on_delivery=report)
    with pytest.raises(ClientFailedException):
        sound.flush()
    assert sound.flush() == 0
    assert errors == [None]
