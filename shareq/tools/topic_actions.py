"""What `shareq topics` does: each action calls the admin client and prints what kafka-topics prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import click

from shareq.admin import Admin, NewTopic, Results
from shareq.admin.results import ConfigEntry, PartitionDescription, Reassignment, TopicDescription
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, KafkaException
from shareq.tools.rows import print_json

COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)
MAX_REPLICATION = 32767


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one call; see the help of each. `reports`: which partitions are described."""

    action: str
    topic: str | None
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    replica_assignment: list[list[int]]
    configs: dict[str, str]
    if_exists: bool
    if_not_exists: bool
    exclude_internal: bool
    overrides_only: bool
    reports: Sequence[str]
    page_size: int
    as_json: bool
    timeout_s: float


def _create(admin: Admin, options: Options) -> None:
    name = options.topic or ""
    if {".", "_"} & set(name):
        click.echo(COLLISION, err=options.as_json)
    if options.replication_factor is not None and not 1 <= options.replication_factor <= MAX_REPLICATION:
        raise click.ClickException(f"The replication factor must be between 1 and {MAX_REPLICATION} inclusive")
    if options.partitions is not None and options.partitions < 1:
        raise click.ClickException("The partitions must be greater than 0")
    new = NewTopic(
        name,
        -1 if options.partitions is None else options.partitions,
        -1 if options.replication_factor is None else options.replication_factor,
        dict(options.configs),
        options.replica_assignment,
    )
    created = admin.create_topics([new], timeout=options.timeout_s)[name]
    existed = created.error is not None and created.error.code() == Errors.TOPIC_ALREADY_EXISTS
    if created.error is not None and not (existed and options.if_not_exists):
        raise KafkaException(created.error)
    if options.as_json:
        print_json([{"topic": name, "created": not existed}])
    elif not existed:
        click.echo(f"Created topic {name}.")


def _list(admin: Admin, options: Options) -> None:
    names = _names(_topics(admin, options))
    if options.as_json:
        print_json([{"topic": name} for name in names])
    else:
        click.echo("\n".join(names))


def _alter(admin: Admin, options: Options) -> None:
    found = _existing(admin, options)
    assert options.partitions is not None
    names = _names(found)
    if names:
        assigned = {}
        if options.replica_assignment:
            assigned = {name: options.replica_assignment[len(found[name].partitions) :] for name in names}
        counts = dict.fromkeys(names, options.partitions)
        admin.create_partitions(counts, replica_assignments=assigned, timeout=options.timeout_s).check()
    if options.as_json:
        print_json([{"topic": name, "partitions": options.partitions} for name in names])


def _delete(admin: Admin, options: Options) -> None:
    names = _names(_existing(admin, options))
    if names:
        admin.delete_topics(names, timeout=options.timeout_s).check()
    if options.as_json:
        print_json([{"topic": name} for name in names])


# ---- which topics ----------------------------------------------------------------------------------------------------


def _topics(admin: Admin, options: Options) -> dict[str, TopicDescription]:
    """The topics that the expression matches as a whole; commas stand for "or"."""
    listed = admin.list_topics(timeout=options.timeout_s)
    pattern = None
    if options.topic is not None:
        text = options.topic.replace(",", "|").replace(" ", "").strip("\"'")
        try:
            pattern = re.compile(text)
        except re.error as problem:
            raise click.UsageError(f"--topic {options.topic}: {problem}") from None
    return {
        name: topic
        for name, topic in sorted(listed.items())
        if (pattern is None or pattern.fullmatch(name)) and not (topic.internal and options.exclude_internal)
    }


def _existing(admin: Admin, options: Options) -> dict[str, TopicDescription]:
    """The topics that are meant. ClickException: there is none."""
    if options.topic_id is not None:
        listed = admin.list_topics(timeout=options.timeout_s)
        found = {name: topic for name, topic in listed.items() if topic.topic_id == options.topic_id}
        if not found and not options.if_exists:
            raise click.ClickException(f"TopicId '{options.topic_id}' does not exist as expected")
        return found
    found = _topics(admin, options)
    if options.topic and not found and not options.if_exists:
        raise click.ClickException(f"Topic '{options.topic}' does not exist as expected")
    return found


def _names(found: Mapping[str, TopicDescription]) -> list[str]:
    return list(found)


# ---- describe --------------------------------------------------------------------------------------------------------


def _describe(admin: Admin, options: Options) -> None:
    names = _names(_existing(admin, options))
    if not names:
        if options.as_json:
            print_json([])
        return
    described = _described(admin, names, options)
    configs = admin.describe_configs_of("topic", names, timeout=options.timeout_s)
    alive = {node.id for node in admin.describe_cluster(timeout=options.timeout_s).nodes}
    moving = admin.list_partition_reassignments(timeout=options.timeout_s)
    rows = [_Topic(described[name], configs[name], moving, alive, options) for name in sorted(names)]
    if options.as_json:
        print_json([row.as_object() for row in rows if row.is_shown or row.partitions])
        return
    for row in rows:
        row.print()


def _described(admin: Admin, names: list[str], options: Options) -> Results[str, TopicDescription]:
    try:
        found = admin.describe_partitions(names, page_size=options.page_size, timeout=options.timeout_s)
    except KafkaException as failure:
        if failure.error.code() != Errors.UNSUPPORTED_VERSION:
            raise
        found = admin.describe_topics(names, timeout=options.timeout_s)
    return found.check()


class _Topic:
    """A described topic, and its partitions that are to be shown."""

    def __init__(
        self,
        topic: TopicDescription,
        configs: Results[str, ConfigEntry],
        moving: Mapping[TopicPartition, Reassignment],
        alive: set[int],
        options: Options,
    ) -> None:
        self._topic = topic
        self._moving = moving
        self._alive = alive
        self._min_isr = int(configs["min.insync.replicas"].value or 1)
        self._configs = {name: entry.value for name, entry in configs.items() if entry.source != "default"}
        self.is_shown = not options.reports and (bool(self._configs) or not options.overrides_only)
        partitions = sorted(topic.partitions, key=lambda partition: partition.partition)
        self.partitions: list[PartitionDescription] = []
        if not options.overrides_only:
            checks = [getattr(self, REPORTS[report]) for report in options.reports]
            self.partitions = [p for p in partitions if not checks or any(check(p) for check in checks)]
        self._factor = self._replication(partitions[0]) if partitions else 0

    def _reassignment(self, partition: PartitionDescription) -> Reassignment | None:
        return self._moving.get(TopicPartition(self._topic.name, partition.partition))

    def _replication(self, partition: PartitionDescription) -> int:
        """The number of replicas, without those that a reassignment in progress adds."""
        moving = self._reassignment(partition)
        if moving and {*moving.adding_replicas, *moving.removing_replicas} & {*partition.replicas}:
            return len(moving.replicas) - len(moving.adding_replicas)
        return len(partition.replicas)

    def under_replicated(self, partition: PartitionDescription) -> bool:
        return self._replication(partition) > len(partition.isr)

    def unavailable(self, partition: PartitionDescription) -> bool:
        return partition.leader not in self._alive

    def under_min_isr(self, partition: PartitionDescription) -> bool:
        return partition.leader < 0 or len(partition.isr) < self._min_isr

    def at_min_isr(self, partition: PartitionDescription) -> bool:
        return len(partition.isr) == self._min_isr

    def print(self) -> None:
        topic = self._topic
        if self.is_shown:
            configs = ",".join(f"{name}={value}" for name, value in self._configs.items())
            click.echo(
                f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {len(topic.partitions)}"
                f"\tReplicationFactor: {self._factor}\tConfigs: {configs}"
            )
        for partition in self.partitions:
            cells = [
                f"\tTopic: {topic.name}",
                f"Partition: {partition.partition}",
                f"Leader: {'none' if partition.leader < 0 else partition.leader}",
                f"Replicas: {_ids(partition.replicas)}",
                f"Isr: {_ids(partition.isr)}",
            ]
            moving = self._reassignment(partition)
            if moving is not None:
                cells += [f"Adding Replicas: {_ids(moving.adding_replicas)}"]
                cells += [f"Removing Replicas: {_ids(moving.removing_replicas)}"]
            cells += [f"Elr: {_ids(partition.elr)}", f"LastKnownElr: {_ids(partition.last_known_elr)}"]
            click.echo("\t".join(cells))

    def as_object(self) -> dict[str, object]:
        topic = self._topic
        return {
            "topic": topic.name,
            "topic_id": topic.topic_id,
            "partition_count": len(topic.partitions),
            "replication_factor": self._factor,
            "configs": self._configs,
            "partitions": [self._partition(partition) for partition in self.partitions],
        }

    def _partition(self, partition: PartitionDescription) -> dict[str, object]:
        moving = self._reassignment(partition)
        return {
            "partition": partition.partition,
            "leader": None if partition.leader < 0 else partition.leader,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "adding_replicas": moving.adding_replicas if moving else (),
            "removing_replicas": moving.removing_replicas if moving else (),
            "elr": partition.elr,
            "last_known_elr": partition.last_known_elr,
        }


def _ids(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


REPORTS = {
    "under_replicated_partitions": "under_replicated",
    "unavailable_partitions": "unavailable",
    "under_min_isr_partitions": "under_min_isr",
    "at_min_isr_partitions": "at_min_isr",
}
"""The options that choose partitions, and the checks of `_Topic`."""

ACTIONS: dict[str, Callable[[Admin, Options], None]] = {
    "list_": _list,
    "describe": _describe,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}
