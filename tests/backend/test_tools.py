"""Kafka's tools and formatters on what a cluster stores in its backend. BEHAVIOUR.md of the backend, section 1.2."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from shareq import Admin, Producer, ShareConsumer
from shareq.coordinator.share_group.records import RecordType
from shareq.kafka import tools
from tests.kafka.fixtures import Backed
from tests.polling import PATIENCE_S, configure, take

PACKAGE = "org.apache.kafka.tools.consumer"


@pytest.fixture
def group(backed: Backed, fresh: Callable[[str], str]) -> str:
    """A group that has accepted the middle of three records of a topic with the same name."""
    name = fresh("payments")
    conf = {"bootstrap.servers": backed.bootstrap_servers}
    with Admin(conf) as admin:
        admin.create_topics([name]).check()
        configure(admin, name, {"share.auto.offset.reset": "earliest"})
    with Producer(conf) as producer:
        for value in ("a", "b", "c"):
            producer.produce(name, value)
    with ShareConsumer({**conf, "group.id": name, "share.acknowledgement.mode": "explicit"}) as consumer:
        consumer.subscribe([name])
        _, middle, _ = take(consumer, 3)
        consumer.acknowledge(middle)
        assert set(consumer.commit_sync().values()) == {None}
    return name


def stored(backed: Backed, topic: str) -> int:
    """The number of offsets in the logs of a topic."""
    with Admin({"bootstrap.servers": backed.kafka.bootstrap_servers}) as admin:
        places = [(topic, one.partition) for one in admin.describe_topics([topic])[topic].partitions]
        first, end = (admin.list_offsets(dict.fromkeys(places, which)) for which in ("earliest", "latest"))
    return sum(row.offset or 0 for row in end.values()) - sum(row.offset or 0 for row in first.values())


def formatted(backed: Backed, topic: str, formatter: str) -> list[Any]:
    """The records of a topic in the backend, as a formatter of Kafka prints them. The tool ends when it has read as
    many as there are; if some were compacted away, after its time-out."""
    command = ("kafka-console-consumer", "--bootstrap-server", backed.kafka.bootstrap_servers, "--topic", topic)
    ends = ("--max-messages", str(stored(backed, topic)), "--timeout-ms", str(int(PATIENCE_S * 1000)))
    options = ("--from-beginning", *ends, "--formatter", f"{PACKAGE}.{formatter}")
    text = tools.run(*command, *options, timeout=3 * PATIENCE_S).stdout
    found, at = [], 0
    while at < len(text.rstrip()):  # one object after the other, without a line end between them
        one, at = json.JSONDecoder().raw_decode(text, at)
        found.append(one)
    return found


def test_kafkas_formatter_prints_the_states(backed: Backed, group: str) -> None:
    name = "group.share.ShareGroupStateMessageFormatter"
    found = formatted(backed, "shareq-share-group-state", name)
    values = [one["value"]["data"] for one in found if one["key"]["data"]["groupId"] == group and one["value"]]
    batches = [batch for value in values for batch in value["stateBatches"]]
    accepted = {"firstOffset": 1, "lastOffset": 1, "deliveryState": 2, "deliveryCount": 1}
    assert accepted in batches


def test_kafkas_formatter_prints_the_group(backed: Backed, group: str) -> None:
    """The member, which has left, and what stays of the group."""
    found = formatted(backed, "shareq-group-metadata", "ShareGroupMessageFormatter")
    values: dict[int, list[Any]] = defaultdict(list)
    for one in found:
        if one["key"]["data"]["groupId"] == group:
            values[one["key"]["type"]].append(one["value"] and one["value"]["data"])
    member, left = values[RecordType.MEMBER_METADATA]
    assert (member["clientHost"], member["subscribedTopicNames"], left) == ("/127.0.0.1", [group], None)
    assert values[RecordType.METADATA][-1]["epoch"] > values[RecordType.METADATA][0]["epoch"] > 0
    (topic,) = values[RecordType.STATE_PARTITION_METADATA][-1]["initializedTopics"]
    assert (topic["topicName"], topic["partitions"]) == (group, [0])


def test_kafkas_tool_describes_the_group(backed: Backed, group: str) -> None:
    command = ("kafka-share-groups", "--bootstrap-server", backed.bootstrap_servers, "--describe", "--group", group)
    _, row = (line.split() for line in tools.run(*command, timeout=3 * PATIENCE_S).stdout.splitlines() if line.strip())
    assert row == [group, group, "0", "0", "2"]
