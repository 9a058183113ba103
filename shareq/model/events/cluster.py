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


class AuthenticationFailed(NamedTuple):
    """A client was refused before its first request. `peer`: its address, without the port. `user`: the name that it
    claims, empty if it has named none. `mechanism`: empty for TLS. `reason` has no part of a password or token."""

    broker_id: int
    peer: str
    mechanism: str
    user: str
    reason: str


class FaultInjected(NamedTuple):
    """A fault was injected on purpose. `member_id`: the member of a share group that it disturbs; `fault`: "crashed",
    "frozen" or "unfrozen", for a client."""

    text: str
    member_id: str | None = None
    fault: str | None = None


class RecordsAppended(NamedTuple):
    topic: str
    partition: int
    first: int
    end: int


class LogKept(NamedTuple):
    """Cleaning by groups (an experiment) keeps the log from `offset` on (-1: all of it) since now, for this reason.
    `needed_by`: the group that needs it; None: what the groups need is not known."""

    topic: str
    partition: int
    offset: int
    needed_by: str | None
    reason: str


class LogStartMoved(NamedTuple):
    topic: str
    partition: int
    log_start_offset: int
