"""Polling until what was asked for is there, for tests on brokers that take their time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

PATIENCE_S = 60.0
"""How long a test waits for what has to come; nothing is ever waited for that must not come."""

QUICK = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.assignment.interval.ms": 0,
}
"""Brokers that give members of share groups their first partitions, with the second heartbeat, as soon as may be."""


def take(consumer: Any, count: int) -> list[Any]:
    """The records of as many polls as it takes to have so many."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came: {found}"
        found += consumer.poll(1)
    return found


def eventually(look: Callable[[], object], expected: object) -> None:
    """Look until it is as expected: what a controller has written its brokers hear of a little later."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) != expected:
        assert time.monotonic() < deadline, f"{found} instead of {expected}"


def configure(admin: Any, group: str, configs: Mapping[str, object]) -> None:
    """Set a group's configurations, and wait until the broker has heard of them."""
    admin.alter_group_configs(group, configs)
    wanted = {key: str(value) for key, value in configs.items()}
    eventually(lambda: {k: v.value for k, v in admin.describe_configs("group", group, list(wanted)).items()}, wanted)


def commits(consumer: Consumer) -> bool:
    """Whether what it has read can be committed: its coordinator is there, and known to it."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        return False
    return True
