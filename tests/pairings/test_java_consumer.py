"""Kafka's Java consumer with an expression as its subscription. It fetches by topic name when it has looked at a topic
that does not match."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shareq import Admin, Producer
from shareq.jvm import find_java
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import kafka_jars
from tests.kafka.fixtures import Reachable
from tests.proxy.members import java_command

pytestmark = [pytest.mark.long, pytest.mark.kafka]

PROGRAM = Path(__file__).parent / "clients" / "PatternConsumer.java"


def test_a_java_consumer_continues_after_it_has_asked_for_the_end_of_another_topic(
    broker: Reachable, fresh: Callable[[str], str]
) -> None:
    group, wanted, other = fresh("group"), fresh("wanted"), fresh("other")
    conf = {"bootstrap.servers": broker.bootstrap_servers}
    with Admin(conf) as admin:
        admin.create_topics([wanted, other])
    with Producer(conf) as producer:
        producer.produce(wanted, b"one")
        for _ in range(3):
            producer.produce(other, b"not matched")
        producer.flush()
        command = java_command(
            KafkaCommand(find_java(), kafka_jars()), PROGRAM, conf["bootstrap.servers"], group, f"{wanted}.*", other
        )
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert [process.stdout.readline().strip() for _ in range(2)] == ["one", "3"]
                producer.produce(wanted, b"two")
                producer.flush()
                found, _ = process.communicate("continue\n", timeout=60)
                assert found.strip() == "two"
            finally:
                process.kill()
