"""Kafka's tools and formatters on what a cluster stores in its backend. BEHAVIOUR.md of the backend, section 1.2."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shareq import Admin, Producer, ShareConsumer
from shareq.kafka import tools
from tests.kafka.fixtures import Backed
from tests.polling import configure, take
from tests.tools.side_by_side import execute

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


def formatted(backed: Backed, topic: str, formatter: str) -> list[Any]:
    """The records of a topic in the backend, as a formatter of Kafka prints them."""
    command = ("kafka-console-consumer", "--bootstrap-server", backed.kafka.bootstrap_servers, "--topic", topic)
    options = ("--from-beginning", "--timeout-ms", "3000", "--formatter", f"{PACKAGE}.{formatter}")
    text = execute(tools.command(*command, *options)).stdout
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
    found = formatted(backed, "shareq-group-metadata", "ShareGroupMessageFormatter")
    assert [one for one in found if one["key"]["data"]["groupId"] == group and one["value"]] != []


def test_kafkas_tool_describes_the_group(backed: Backed, group: str) -> None:
    command = ("kafka-share-groups", "--bootstrap-server", backed.bootstrap_servers, "--describe", "--group", group)
    _, row = (line.split() for line in execute(tools.command(*command)).stdout.splitlines() if line.strip())
    assert row == [group, group, "0", "0", "2"]
