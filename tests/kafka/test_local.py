"""Apache Kafka in one call: it serves, survives lost brokers, refuses bad arguments, and ends with its process."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from shareq.kafka import LocalKafka, LocalKafkaError
from shareq.kafka import local as local_module
from shareq.kafka.local import laptop_config
from shareq.model.errors import ConfigException, IllegalStateException
from tests.polling import PATIENCE_S


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition outside this process."""
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition() and not pause.wait(0.02):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"


def accepts(address: str) -> bool:
    """True if a program listens at an address."""
    host, _, port = address.partition(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def create(address: str, topic: str, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result(PATIENCE_S)


def produce(address: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


# ---- one broker ----------------------------------------------------------------------------------------------------


def test_share_consumers_are_served(kafka: LocalKafka, fresh: Callable[[str], str]) -> None:
    topic, group = fresh("orders"), fresh("payments")
    create(kafka.bootstrap_servers, topic)
    consumer = ShareConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    consumer.subscribe([topic])
    received: list[bytes | None] = []

    def poll() -> bool:
        if not received:  # the group starts at the end of the topic, which is unknown
            produce(kafka.bootstrap_servers, topic, "hello")
        received.extend(message.value() for message in consumer.poll(1.0))
        return bool(received)

    until(poll, "a record of the share group")
    consumer.close()
    assert set(received) == {b"hello"}


def test_addresses_and_logs_of_a_running_kafka(kafka: LocalKafka) -> None:
    host, _, port = kafka.bootstrap_servers.partition(":")
    assert host == "127.0.0.1"
    assert 1024 <= int(port) <= 65535
    assert kafka.brokers_alive == (0,)
    assert repr(kafka) == (
        f"LocalKafka({kafka.bootstrap_servers}, Apache Kafka {kafka.version}, brokers [0] of 1 alive)"
    )
    assert kafka.bootstrap_servers in kafka._repr_html_()
    assert "Kafka Server started" in kafka.tail(10**9)
    assert len(kafka.tail(3).splitlines()) == 3
    assert [log.name for log in kafka.logs.iterdir()] == ["broker-0.log"]


def test_start_is_idempotent(kafka: LocalKafka) -> None:
    address = kafka.bootstrap_servers
    assert kafka.start() is kafka
    assert kafka.bootstrap_servers == address


def test_a_stopped_kafka_starts_again_without_its_data(kafka: LocalKafka, fresh: Callable[[str], str]) -> None:
    topic = fresh("short-lived")
    again = LocalKafka()
    with again:
        first, root = again.bootstrap_servers, again.logs.parent
        create(first, topic)
        assert first != kafka.bootstrap_servers, "both run at the same time"
    again.stop()
    assert not root.exists()
    assert not accepts(first)
    with pytest.raises(IllegalStateException, match="not running"):
        _ = again.bootstrap_servers
    with again.start():
        admin = AdminClient({"bootstrap.servers": again.bootstrap_servers})
        assert topic not in admin.list_topics(timeout=PATIENCE_S).topics
    assert repr(again) == "LocalKafka(not running)"
    assert "not running" in again._repr_html_()


# ---- three brokers -------------------------------------------------------------------------------------------------


def leader(address: str, topic: str) -> int:
    """The leader in the metadata of any broker; -1 if it is unknown."""
    found = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    return found[0].leader if found else -1


@pytest.mark.parametrize(
    "end",
    [pytest.param(LocalKafka.kill_broker, id="killed"), pytest.param(LocalKafka.stop_broker, id="stopped")],
)
def test_partitions_of_a_lost_broker_get_another_leader(
    kafka_of_three: LocalKafka, end: Callable[[LocalKafka, int], None], fresh: Callable[[str], str]
) -> None:
    topic, three = fresh("moving"), kafka_of_three
    address = three.bootstrap_servers
    assert len(address.split(",")) == 3
    create(address, topic, replicas=3)
    produce(address, topic, "before")
    until(lambda: leader(address, topic) != -1, "a leader")
    lost = leader(address, topic)
    end(three, lost)
    assert three.brokers_alive == tuple(sorted({0, 1, 2} - {lost}))
    assert f"brokers {list(three.brokers_alive)} of 3 alive" in repr(three)
    until(lambda: leader(address, topic) not in {lost, -1}, "another leader")
    produce(address, topic, "after")
    with pytest.raises(IllegalStateException, match=f"broker {lost} is not running"):
        three.kill_broker(lost)
    three.start_broker(lost)
    assert three.brokers_alive == (0, 1, 2)
    assert three.bootstrap_servers == address, "it has its old port"
    with pytest.raises(IllegalStateException, match=f"broker {lost} is already running"):
        three.start_broker(lost)


def test_a_broker_that_does_not_exist_is_refused(kafka_of_three: LocalKafka) -> None:
    with pytest.raises(ConfigException, match=r"broker_id=3: must be one of \[0, 1, 2\]"):
        kafka_of_three.kill_broker(3)
    with pytest.raises(ConfigException, match="broker_id=-1"):
        kafka_of_three.tail(broker_id=-1)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"brokers": 2}, "brokers=2: must be 1 or 3", id="two brokers"),
        pytest.param({"port": 0}, "ports=0: the port must be 1..65535", id="a port"),
        pytest.param({"brokers": True}, "brokers=True: must be 1 or 3", id="brokers as a bool"),
        pytest.param(
            {"config": {"listeners": "x"}}, "listeners='x': must not be set, a local Kafka sets it itself", id="own key"
        ),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigException) as refused:
        LocalKafka(**arguments)  # type: ignore[arg-type]
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({"group.share.record.lock.duration.ms": 1}, "group.share.record.lock.duration.ms", id="a range"),
        pytest.param({"num.partitions": "many"}, "num.partitions", id="a type"),
        pytest.param({"log.cleaner.threads": 1, "log.cleaner.dedupe.buffer.size": 1}, "cleaner", id="at the start"),
    ],
)
def test_a_failed_start_has_the_reason(kafka: LocalKafka, config: dict[str, object], expected: str) -> None:
    failing = LocalKafka(config=config)
    with pytest.raises(LocalKafkaError) as failure:
        failing.start()
    assert expected in str(failure.value)
    assert "\tat " not in str(failure.value), "a sentence, and no trace of Java"
    assert repr(failing) == "LocalKafka(not running)"


def test_a_start_that_takes_too_long_ends(kafka: LocalKafka) -> None:
    slow = LocalKafka(timeout=0.001)
    with pytest.raises(LocalKafkaError, match=r"broker 0 was not ready after 0\.001 s"):
        slow.start()
    assert slow.brokers_alive == ()


def test_a_chosen_port_is_used_and_controllers_have_others() -> None:
    ports, controllers = local_module._with_controllers([9092, 9093, 9094], 3)
    assert ports == [9092, 9093, 9094]
    assert len({*ports, *controllers}) == 6


def test_a_taken_port_is_replaced(kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = int(kafka.bootstrap_servers.partition(":")[2])
    free_ports, calls = local_module._free_ports, []

    def first_a_taken_one(count: int) -> list[int]:
        calls.append(count)
        return [taken, *free_ports(count - 1)] if len(calls) == 1 else free_ports(count)

    monkeypatch.setattr(local_module, "_free_ports", first_a_taken_one)
    with LocalKafka() as other:
        assert other.bootstrap_servers != kafka.bootstrap_servers
    assert len(calls) == 2


def test_three_brokers_keep_three_replicas() -> None:
    config = laptop_config(3)
    assert {value for key, value in config.items() if key.endswith("replication.factor")} == {3}
    assert LocalKafka(3, config={"default.replication.factor": 1}).config["default.replication.factor"] == 1


# ---- the end of the process (test_supervisor.py has other ways to end) -----------------------------------------------

PARENT = """\
import sys
from shareq.kafka import LocalKafka

kafka = LocalKafka().start()
print(kafka.logs.parent, kafka.bootstrap_servers, flush=True)
sys.stdin.read()
"""


def test_kafka_ends_with_the_process_that_started_it(kafka: LocalKafka) -> None:
    program = [sys.executable, "-c", PARENT]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        root, address = parent.stdout.readline().split()
        admin = AdminClient({"bootstrap.servers": address})
        assert admin.list_topics(timeout=PATIENCE_S).brokers
        parent.kill()
    until(lambda: not Path(root).exists(), "the end of its data")
    until(lambda: not accepts(address), "the end of its broker")
