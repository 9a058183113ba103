"""Checks of the arguments of an Admin: names, partitions, new topics, configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shareq.admin.broker_routing import PartitionKey
from shareq.admin.configs import RESOURCES, Change, ConfigChange
from shareq.admin.record_reader import Span
from shareq.admin.topics import NewTopic
from shareq.client.arguments import INT16_MAX, INT32_MAX, INT64_MAX, items, mapping, text, whole
from shareq.client.topic_partition import TopicPartition
from shareq.model.messages.topics import ResourceType
from shareq.model.numbers import plain

PartitionLike = TopicPartition | tuple[str, int]

LEAST_TIMESTAMP = -6
"""The lowest special timestamp of ListOffsets (earliest pending upload)."""


def name_of(what: str, name: object) -> str:
    return text(f"the name of a {what}", name)


def names_of(what: str, names: Iterable[str]) -> list[str]:
    found = [name_of(what, name) for name in items(f"{what}s", names)]
    if not found:
        raise ValueError(f"{what}s must not be empty")
    return found


def partition_of(place: object) -> PartitionKey:
    """A partition from a TopicPartition or (topic, partition)."""
    if isinstance(place, TopicPartition):
        topic, index = place.topic, place.partition
    elif isinstance(place, tuple) and len(place) == 2:
        topic, index = place
    else:
        raise TypeError(f"a partition must be a TopicPartition or (topic, partition), not {place!r:.100}")
    return name_of("topic", topic), whole(f"the partition of topic {topic!r}", index, 0, INT32_MAX)


def by_topic(partitions: Iterable[PartitionLike]) -> dict[str, list[int]]:
    """The indexes of partitions by topic."""
    places: dict[str, list[int]] = {}
    for topic, index in map(partition_of, items("partitions", partitions)):
        places.setdefault(topic, []).append(index)
    return places


def offsets_before(before: Mapping[Any, int]) -> dict[PartitionKey, int]:
    """The offsets below which records are to be deleted; ValueError for one that is neither an offset nor -1."""
    found = {partition_of(place): plain(offset) for place, offset in mapping("before", before).items()}
    for (topic, index), offset in found.items():
        if isinstance(offset, bool) or not isinstance(offset, int) or not -1 <= offset <= INT64_MAX:
            raise ValueError(f"{topic} [{index}]: {offset!r} must be an offset of 0..{INT64_MAX}, or -1")
    return found


def replicas_of(topic: str, replicas: Sequence[Sequence[int]]) -> list[list[int]]:
    """The brokers of each partition's replicas."""
    name = f"a replica of topic {topic!r}"
    return [[whole(name, broker, 0, INT32_MAX) for broker in brokers] for brokers in replicas]


def spans_of(spans: Mapping[PartitionLike, Sequence[Span]]) -> dict[PartitionKey, list[Span]]:
    """Ranges of offsets by partition: each not empty, and above the one before."""
    found: dict[PartitionKey, list[Span]] = {}
    for place, given in mapping("spans", spans).items():
        checked = found[partition_of(place)] = [
            (whole(f"an offset of {place!r}", first, 0, INT64_MAX), whole(f"an offset of {place!r}", end, 0, INT64_MAX))
            for first, end in given
        ]
        bounds = [bound for span in checked for bound in span]
        if not checked or any(first >= end for first, end in checked) or bounds != sorted(bounds):
            raise ValueError(f"{place!r}: {given!r:.100} must be ascending ranges [first, end)")
    return found


def kind_of(kind: object) -> ResourceType:
    if not isinstance(kind, str) or kind not in RESOURCES:
        raise ValueError(f"kind={kind!r:.100}: must be one of {', '.join(RESOURCES)}")
    return RESOURCES[kind]


def new_topics_of(new_topics: Iterable[NewTopic | str]) -> list[NewTopic]:
    """Topics to create. Only the type of counts is checked here; the broker refuses invalid counts."""
    found = [new if isinstance(new, NewTopic) else NewTopic(new) for new in items("new_topics", new_topics)]
    if not found:
        raise ValueError("topics must not be empty")
    return [_new_topic(new) for new in found]


def _new_topic(new: NewTopic) -> NewTopic:
    name = name_of("topic", new.topic)
    count = whole(f"num_partitions of topic {name!r}", new.num_partitions, -INT32_MAX, INT32_MAX)
    factor = whole(f"replication_factor of topic {name!r}", new.replication_factor, -INT16_MAX, INT16_MAX)
    config = mapping(f"config of topic {name!r}", new.config)
    replicas = replicas_of(name, new.replica_assignment)
    checked = replace(new, replica_assignment=replicas, num_partitions=count, replication_factor=factor)
    return replace(checked, config={name_of("key", key): config_text(key, value) for key, value in config.items()})


def changes_of(changes: Mapping[str, ConfigChange]) -> dict[str, Change]:
    """Configuration changes with their values as text."""
    found = {name_of("key", key): _change(key, change) for key, change in mapping("changes", changes).items()}
    if not found:
        raise ValueError("changes must not be empty")
    return found


GROUP_TYPES = ("classic", "consumer", "share", "streams")
GROUP_STATES = (
    *("Empty", "Stable", "Dead", "Unknown", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"),
    "NotReady",
)
"""Kafka's names, whose case does not matter."""


def group_filters(types: Iterable[str], states: Iterable[str]) -> tuple[list[str], list[str]]:
    """The types and states by which groups are filtered. ValueError: a filter by another name would find nothing."""
    return _known_names("type", types, GROUP_TYPES), _known_names("state", states, GROUP_STATES)


def _known_names(what: str, given: Iterable[str], known: Sequence[str]) -> list[str]:
    names = [text(what, name) for name in items(f"{what}s", given)]
    for name in names:
        if name.lower() not in {one.lower() for one in known}:
            raise ValueError(f"{what}={name!r}: must be one of {', '.join(known)}")
    return names


def _change(key: str, change: ConfigChange) -> Change:
    if not isinstance(change, tuple):
        return config_text(key, change)
    if len(change) != 2 or change[0] not in ("append", "subtract"):
        raise ValueError(f"{key}={change!r:.100}: the operation must be ('append', value) or ('subtract', value)")
    return change[0], config_text(key, change[1])


def config_text(key: str, value: object) -> str | None:
    """A configuration value as text, from text, a number or a bool; None means the default."""
    value = plain(value)
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return text(key, value, empty=True)
