"""Names, tags and attributes of the derived metrics, compared with those that Apache Kafka reports by JMX."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator

import pytest

from shareq import AcknowledgeType, Admin, Cluster, NewTopic, Producer, ShareConsumer, metrics
from shareq.jvm import find_java
from shareq.kafka import LocalKafka
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import tools_jars
from shareq.model import events as e
from shareq.trace import Metric
from tests.kafka.fixtures import kafka_or_skip
from tests.polling import PATIENCE_S, configure
from tests.trace.test_metrics import at_the_end

CONFIG = {
    "share.coordinator.snapshot.update.records.per.snapshot": 0,  # each write is a snapshot, so that pruning happens
    "share.coordinator.state.topic.prune.interval.ms": 1000,
}
ACCEPT, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.REJECT
OF_CONSUMERS = ("records-consumed", "acknowledgements-", "heartbeat")
"""Metrics of the Java client, which a broker does not report."""

Name = tuple[str, frozenset[tuple[str, str]], str]
"""Name, tags and attribute; the values of group, topic and partition are blank."""


def named(name: str, tags: list[tuple[str, str]], attribute: str) -> Name:
    blank = ("group", "topic", "partition")
    return name, frozenset((tag, "" if tag in blank else value) for tag, value in tags), attribute


def parsed(line: str) -> Name | None:
    """The metric in a line of JmxTool, such as kafka.server:type=T,name=N,group=g:Count=1."""
    found = re.fullmatch(r"kafka\.server:type=([^,:]+)((?:,[^:]*)?):([^=]+)=.*", line)
    if found is None:
        return None
    _, tags, attribute = found.groups()
    pairs = [(tag, value) for tag, _, value in (pair.partition("=") for pair in tags.split(",") if pair)]
    names = [value for tag, value in pairs if tag == "name"]
    if names:
        return named(names[0], [pair for pair in pairs if pair[0] != "name"], attribute)
    return named(attribute, pairs, "Value")


class Reporting:
    """A running Kafka that reports metrics by JMX on `port`."""

    def __init__(self, kafka: LocalKafka, port: int) -> None:
        self.conf = {"bootstrap.servers": kafka.bootstrap_servers}
        self._url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"

    def names(self) -> set[Name]:
        options = ("--jmx-url", self._url, "--one-time", "--report-format", "properties")
        command = KafkaCommand(find_java(), tools_jars()).tool(
            "org.apache.kafka.tools.JmxTool", (*options, "--object-name", "kafka.server:*")
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        return {name for line in done.stdout.splitlines() if (name := parsed(line)) is not None}


@pytest.fixture
def reporting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reporting]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    remote = "-Dcom.sun.management.jmxremote"
    options = (f".port={port}", f".rmi.port={port}", ".host=127.0.0.1", ".authenticate=false", ".ssl=false")
    heap = ["-Xmx1g", *(remote + option for option in options), "-Djava.rmi.server.hostname=127.0.0.1"]
    monkeypatch.setenv("KAFKA_HEAP_OPTS", " ".join(heap))
    with kafka_or_skip(1, CONFIG) as kafka:
        monkeypatch.delenv("KAFKA_HEAP_OPTS")
        yield Reporting(kafka, port)


def derived() -> set[Metric]:
    """All metrics that a journal yields, with and without traced messages, and those of a running cluster."""
    sent = e.RequestSent("c", "b", "ShareFetchRequest", 1)
    answered = e.ResponseSent("b", "c", "ShareFetchResponse", 0, 1)
    with Cluster(brokers=1) as cluster:
        return {*at_the_end(), *at_the_end((4000, -1, sent), (4500, -1, answered)), *metrics(cluster)}


@pytest.mark.kafka
def test_derived_metrics_have_the_names_that_apache_kafka_reports(reporting: Reporting) -> None:
    """A group acknowledges records. The state topic is pruned after some writes, which its metric needs. A queue that
    is compacted takes the copy of a record with a key, and refuses one without."""
    queue = {"errors.deadletterqueue.group.enable": "true", "cleanup.policy": "compact"}
    group = {
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": "dlq.orders",
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    with Admin(reporting.conf) as admin:
        admin.create_topics(["orders", NewTopic("dlq.orders", 1, config=queue)]).check()
        configure(admin, "g", group)
    ours = {named(m.name, list(m.tags), m.attribute) for m in derived() if not m.name.startswith(OF_CONSUMERS)}
    conf = {**reporting.conf, "group.id": "g", "share.acknowledgement.mode": "explicit"}
    with Producer(reporting.conf) as producer, ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        missing = ours
        for _ in range(30):
            for key, kind in ((None, ACCEPT), (b"k", REJECT), (None, REJECT)):
                producer.produce("orders", b"x", key)
                producer.flush()
                for message in consumer.poll(PATIENCE_S):
                    consumer.acknowledge(message, kind)
                consumer.commit_sync()
            missing = ours - reporting.names()
            if not missing:
                break
    assert missing == set()
