"""Helpers that poll until an expected result is there, for tests on brokers in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

PATIENCE_S = 60.0
"""How long a test waits for an expected result; no test waits to see that something does not happen."""

QUICK = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.assignment.interval.ms": 0,
}
"""Broker configurations under which members of share groups get their first partitions soonest: with the second
heartbeat, without delay."""


def take(consumer: Any, count: int) -> list[Any]:
    """Poll until there are `count` records; return all of them."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came: {found}"
        found += consumer.poll(1)
    return found


def eventually(look: Callable[[], object], expected: object) -> None:
    """Call `look` until it returns `expected`: brokers receive what their controller has written with a delay."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) != expected:
        assert time.monotonic() < deadline, f"{found} instead of {expected}"


def configure(admin: Any, group: str, configs: Mapping[str, object]) -> None:
    """Set a group's configurations, and wait until the broker describes them."""
    admin.alter_group_configs(group, configs)
    wanted = {key: str(value) for key, value in configs.items()}
    eventually(lambda: {k: v.value for k, v in admin.describe_configs("group", group, list(wanted)).items()}, wanted)


def commits(consumer: Consumer) -> bool:
    """True if a commit of the consumer's position succeeds, which needs a coordinator that the consumer knows."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        return False
    return True
