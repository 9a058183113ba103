"""Events of brokers, topics, configurations and logs."""

from __future__ import annotations

from typing import NamedTuple


class BrokerStarted(NamedTuple):
    broker_id: int


class BrokerStopped(NamedTuple):
    """`killed`: True if the broker stopped without a controlled shutdown."""

    broker_id: int
    killed: bool


class TopicCreated(NamedTuple):
    topic: str
    topic_id: str
    partition_count: int


class TopicDeleted(NamedTuple):
    topic: str
    topic_id: str


class PartitionsAdded(NamedTuple):
    topic: str
    topic_id: str
    partition_count: int


class LeaderElected(NamedTuple):
    """`leader` -1: no replica is alive."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int


class ConfigChanged(NamedTuple):
    """`value` None: the default applies again. `resource` such as "group:payments", "topic:orders" or "broker"."""

    resource: str
    key: str
    value: str | None


class FaultInjected(NamedTuple):
    """A fault was injected on purpose."""

    text: str


class RecordsAppended(NamedTuple):
    topic: str
    partition: int
    first: int
    end: int


class LogStartMoved(NamedTuple):
    topic: str
    partition: int
    log_start_offset: int
