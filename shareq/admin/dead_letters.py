"""Dead-letter queues from the outside: which groups have one, and the letters in it. `redrive` has their way back.

A letter is a record of the queue; its headers name the record that it stands for. Source: KIP-1191; Kafka 4.4's
ShareGroupDLQManager.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shareq.admin.broker_routing import BrokerRouting, failure
from shareq.admin.configs import describe_many, list_resources
from shareq.admin.core import Operation
from shareq.admin.groups import list_groups
from shareq.admin.results import Result, Results, Shown
from shareq.admin.topics import list_offsets
from shareq.client.topic_partition import TopicPartition
from shareq.log.records import Record
from shareq.model.dead_letter_configs import COPY, TOPIC_NAME
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.frozen import frozen
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from shareq.model.messages.topics import ResourceType

PREFIX = "__dlq.errors."
"""The names of a letter's headers begin with this."""


@frozen
class DeadLetterQueue(Result):
    """The dead-letter queue of a group. `copies`: letters have the keys and values of their records. `records`: those
    in the topic, of all groups that share it; an offset that compaction has emptied counts. Errors: the topic does not
    exist, or cannot be read."""

    group_id: str
    topic: str
    copies: bool
    partitions: int
    records: int


@frozen
class DeadLetter(Shown):
    """A record of a dead-letter queue, and the record that it stands for: `topic`, `partition` and `offset` are those
    of the source. `key` and `value` are None if they were not copied, or if the record has none. `timestamp`: when the
    letter was written, ms since the epoch."""

    queue: str
    queue_partition: int
    queue_offset: int
    timestamp: int
    group_id: str
    topic: str
    partition: int
    offset: int
    delivery_count: int
    message: str
    key: bytes | None
    value: bytes | None


def dead_letter(queue: str, partition: int, record: Record) -> DeadLetter | None:
    """The letter in a record of a queue; None if the headers of a letter are missing or malformed."""
    found = {name.removeprefix(PREFIX): value for name, value in record.headers if name.startswith(PREFIX)}
    try:
        texts = {name: value.decode() for name, value in found.items() if value is not None}
        return DeadLetter(
            queue=queue,
            queue_partition=partition,
            queue_offset=record.offset,
            timestamp=record.timestamp,
            group_id=texts["group"],
            topic=texts["topic"],
            partition=int(texts["partition"]),
            offset=int(texts["offset"]),
            delivery_count=int(texts["delivery.count"]),
            message=texts["message"],
            key=record.key,
            value=record.value,
        )
    except (KeyError, ValueError):  # UnicodeDecodeError is a ValueError
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Which letters are meant. None, and an empty `message`, leave nothing out.

    `topics`, `partitions`, `offsets`: the place of the source record. `message`: a part of the reason.
    """

    topics: Container[str] | None = None
    partitions: Container[int] | None = None
    offsets: Container[int] | None = None
    delivery_counts: Container[int] | None = None
    queue_partitions: Container[int] | None = None
    queue_offsets: Container[int] | None = None
    message: str = ""

    def accepts(self, letter: DeadLetter) -> bool:
        """True if the letter is meant."""
        checks = (
            (self.topics, letter.topic),
            (self.partitions, letter.partition),
            (self.offsets, letter.offset),
            (self.delivery_counts, letter.delivery_count),
            (self.queue_partitions, letter.queue_partition),
            (self.queue_offsets, letter.queue_offset),
        )
        return self.message in letter.message and all(given is None or value in given for given, value in checks)


EVERY_LETTER = LetterFilter()

Route = tuple[str, int, str]
"""Topic and partition of the source, and the topic of the target."""


@dataclass(slots=True)
class Redriven:
    """The result of a redrive. `counts`: the letters that are redriven, or would be if nothing is `executed`, by route;
    those of earlier runs are not counted. `markers`: letters that stand for transaction markers. `skipped`: letters
    that cannot be redriven, with the reasons; a later run tries them again."""

    queue: str
    executed: bool
    counts: dict[Route, int] = field(default_factory=dict)
    markers: int = 0
    skipped: list[tuple[DeadLetter, str]] = field(default_factory=list)


def list_queues(routing: BrokerRouting) -> Operation[Results[str, DeadLetterQueue]]:
    """The queues that groups name, by group: groups that exist, and those that have only a configuration."""
    listed = yield from list_groups(routing, ["share"], [])
    resources = yield from list_resources(routing, ResourceType.GROUP)
    configs = yield from group_configs(routing, sorted({*listed, *resources}))
    named = {group: found for group, found in configs.items() if found.get(TOPIC_NAME)}
    counts = yield from _record_counts(routing, {found[TOPIC_NAME] for found in named.values()})
    return Results({group: _queue(group, found, counts[found[TOPIC_NAME]]) for group, found in named.items()})


def queue_of(routing: BrokerRouting, group_id: str) -> Operation[str]:
    """The topic that the group names as its dead-letter queue; empty if there is none."""
    configs = yield from group_configs(routing, [group_id])
    return configs[group_id].get(TOPIC_NAME, "")


def group_configs(routing: BrokerRouting, groups: Sequence[str]) -> Operation[dict[str, dict[str, str]]]:
    """The configurations about dead-letter queues by group. Those that a broker does not know are missing."""
    if not groups:
        return {}
    described = yield from describe_many(routing, ResourceType.GROUP, groups, (TOPIC_NAME, COPY))
    return {
        group: {name: entry.value for name, entry in found.items() if entry.value is not None}
        for group, found in described.items()
    }


def _record_counts(
    routing: BrokerRouting, topics: set[str]
) -> Operation[Mapping[str, tuple[int, int, KafkaError | None]]]:
    """The number of partitions and of records, and the error, by topic."""
    if not topics:
        return {}
    image = yield from routing.metadata(topics)
    partitions = {
        (topic.name, partition.partition_index): topic.error_code
        for topic in image.topics
        for partition in topic.partitions
        if topic.name is not None
    }
    rows: dict[str, Any] = {topic: [0, 0, None] for topic in topics}
    for topic in image.topics:
        if topic.name is not None and topic.error_code:
            rows[topic.name][2] = failure(topic.error_code, f"topic {topic.name!r}: {topic.error_code.name}")
    starts = yield from list_offsets(routing, dict.fromkeys(partitions, EARLIEST_TIMESTAMP), 0)
    ends = yield from list_offsets(routing, dict.fromkeys(partitions, LATEST_TIMESTAMP), 0)
    for name, index in partitions:
        start, end = starts[TopicPartition(name, index)], ends[TopicPartition(name, index)]
        rows[name][0] += 1
        rows[name][1] += (end.offset or 0) - (start.offset or 0)
        rows[name][2] = rows[name][2] or start.error or end.error
    return {topic: tuple(found) for topic, found in rows.items()}


def _queue(group: str, configs: Mapping[str, str], counted: tuple[int, int, KafkaError | None]) -> DeadLetterQueue:
    partitions, records, error = counted
    return DeadLetterQueue(
        group_id=group,
        topic=configs[TOPIC_NAME],
        copies=configs.get(COPY, "").lower() == "true",
        partitions=partitions,
        records=records,
        error=error,
    )


def no_queue(group_id: str) -> KafkaException:
    """The error of a group without a dead-letter queue."""
    why = f"group {group_id!r} has no dead-letter queue: {TOPIC_NAME} is not set"
    return KafkaException(KafkaError(Errors.RESOURCE_NOT_FOUND, why))
