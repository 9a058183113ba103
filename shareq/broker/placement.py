"""Placement of replicas, and the rules for topic names and counts, as in Kafka.

Source: Kafka's ReplicationControlManager, StripedReplicaPlacer and Topic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, illegal_topic_name
from shareq.model.image import NO_LEADER, BrokerImage, PartitionImage
from shareq.model.state_designs import PERSISTER_CLASS, design_of

ErrorWithMessage = tuple[Errors, str | None]
NO_ERROR: ErrorWithMessage = (Errors.NONE, None)

MAX_NEW_PARTITIONS = 10_000
"""The largest number of new partitions in one request (Kafka: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH)."""

Replicas = tuple[int, ...]
"""The brokers of one partition; the first is its preferred leader."""

_NONE: Mapping[str, str] = MappingProxyType({})


def metric_name(name: str) -> str:
    """A topic's name in metrics, where '.' and '_' are equal."""
    return name.replace(".", "_")


def refuse_name(name: str, others: Collection[str] = (), by_metric_name: Mapping[str, str] = _NONE) -> ErrorWithMessage:
    """The error of a new topic name beside `others`, of which none may have the same name in metrics."""
    if why := illegal_topic_name(name):
        return Errors.INVALID_TOPIC_EXCEPTION, why
    if name in others:
        return Errors.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists"
    clash = by_metric_name.get(metric_name(name))
    if clash is not None:
        return (
            Errors.INVALID_TOPIC_EXCEPTION,
            f"topic {name!r} collides with {clash!r}: '.' and '_' are equal in metrics",
        )
    return NO_ERROR


def refuse_counts(name: str, count: int, factor: int, brokers: int) -> ErrorWithMessage:
    if not 1 <= factor <= brokers:
        return (
            Errors.INVALID_REPLICATION_FACTOR,
            f"topic {name!r}: replication factor {factor}: must be 1..{brokers}, there are {brokers} brokers",
        )
    if count < 1:
        return Errors.INVALID_PARTITIONS, f"topic {name!r}: {count} partitions: must be 1 or more"
    return NO_ERROR


def refuse_replicas(assigned: Sequence[Replicas], factor: int, brokers: Mapping[int, BrokerImage]) -> ErrorWithMessage:
    """The error of assigned replicas; each partition must have `factor` of them."""
    for replicas in assigned:
        if not replicas:
            why = "a partition has no replicas"
        elif len(set(replicas)) < len(replicas):
            why = f"replicas {list(replicas)} name a broker twice"
        elif unknown := [b for b in replicas if b not in brokers]:
            why = f"replicas {list(replicas)}: there is no broker {unknown[0]}"
        elif len(replicas) != factor:
            why = f"replicas {list(replicas)}: every partition of the topic must have {factor}"
        elif not any(brokers[b].alive for b in replicas):
            why = f"replicas {list(replicas)}: none of these brokers is alive"
        else:
            continue
        return Errors.INVALID_REPLICA_ASSIGNMENT, why
    return NO_ERROR


def striped(brokers: Mapping[int, BrokerImage], start: int, indexes: Iterable[int], factor: int) -> list[Replicas]:
    """The replicas of new partitions, round robin over all brokers."""
    ids = sorted(brokers)
    return [tuple(ids[(start + index + k) % len(ids)] for k in range(factor)) for index in indexes]


def placed(assigned: Iterable[Replicas], brokers: Mapping[int, BrokerImage]) -> tuple[PartitionImage, ...]:
    """New partitions, each led by its first live replica."""
    partitions = []
    for replicas in assigned:
        alive = tuple(b for b in replicas if brokers[b].alive)
        leader = next(iter(alive), NO_LEADER)
        partitions.append(PartitionImage(leader=leader, leader_epoch=0, replicas=replicas, isr=alive))
    return tuple(partitions)


_PREFIXES = {
    GROUP_METADATA_TOPIC: "offsets.topic.",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.",
    TRANSACTION_STATE_TOPIC: "transaction.state.log.",
}


def internal_topic(name: str, config: BrokerConfig) -> tuple[int, int, dict[str, str]]:
    """Partition count, replication factor and configurations of a coordinators' topic, from the broker's ones."""
    prefix = _PREFIXES[name]
    configs = {"cleanup.policy": "compact", "segment.bytes": str(config[prefix + "segment.bytes"])}
    if name == SHARE_STATE_TOPIC:
        configs |= {"cleanup.policy": design_of(config[PERSISTER_CLASS]).cleanup_policy, "retention.ms": "-1"}
    if name != GROUP_METADATA_TOPIC:
        configs["min.insync.replicas"] = str(config[prefix + "min.isr"])
    return config[prefix + "num.partitions"], config[prefix + "replication.factor"], configs
