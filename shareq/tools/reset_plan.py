"""The new start offsets of a reset: which partitions, and to which offset.

Offsets beyond a log are moved to its nearest end, as Kafka's tool does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import ConfigException

if TYPE_CHECKING:
    from shareq.admin import Admin

Plan = dict[TopicPartition, int]
"""The new start offset of each partition."""


def partitions_of(admin: Admin, names: Iterable[str], timeout: float) -> list[TopicPartition]:
    """The partitions that `--topic` names: those of a topic, or with `topic:0,1` some of them."""
    chosen: list[TopicPartition] = []
    whole: list[str] = []
    for name in names:
        topic, colon, indexes = name.partition(":")
        if not colon:
            whole.append(topic)
            continue
        if not topic or not all(index.isdecimal() for index in indexes.split(",")):
            raise ConfigException(f"--topic {name}: must be a topic, or a topic and partitions such as orders:0,1")
        chosen += [TopicPartition(topic, int(index)) for index in indexes.split(",")]
    described = admin.describe_topics(whole, timeout=timeout).check() if whole else {}
    chosen += [TopicPartition(name, p.partition) for name, topic in described.items() for p in topic.partitions]
    return chosen


def at(admin: Admin, partitions: Iterable[TopicPartition], spec: str, timeout: float) -> Plan:
    """`spec`: "earliest" or "latest"."""
    found = admin.list_offsets(dict.fromkeys(partitions, spec), timeout=timeout).check()
    return {place: info.offset or 0 for place, info in found.items()}


def at_time(
    admin: Admin, partitions: Collection[TopicPartition], moment: datetime, timeout: float
) -> tuple[Plan, list[TopicPartition]]:
    """The first record at or after `moment`; and the partitions without such a record, which get their end."""
    found = admin.list_offsets(dict.fromkeys(partitions, moment), timeout=timeout).check()
    plan = {place: info.offset for place, info in found.items() if info.offset is not None}
    without = [place for place in partitions if place not in plan]
    return plan | (at(admin, without, "latest", timeout) if without else {}), without


def within_the_log(admin: Admin, wanted: Mapping[TopicPartition, int], timeout: float) -> Plan:
    """The wanted offsets, none below the start of its log or above its end."""
    starts, ends = at(admin, wanted, "earliest", timeout), at(admin, wanted, "latest", timeout)
    return {place: max(starts[place], min(offset, ends[place])) for place, offset in wanted.items()}


def current(
    admin: Admin, group: str, partitions: Collection[TopicPartition], timeout: float
) -> tuple[Plan, list[TopicPartition]]:
    """The stored start offsets; a partition that the group does not have gets its end. And the partitions of the group
    without a start offset, which are left out: the group chooses it later."""
    stored = admin.list_share_group_offsets(group, timeout=timeout).check()
    plan = {place: row.start_offset for place, row in stored.items() if row.start_offset is not None}
    unknown = [place for place in partitions if place not in stored]
    plan |= at(admin, unknown, "latest", timeout) if unknown else {}
    return {p: plan[p] for p in partitions if p in plan}, [p for p in partitions if p not in plan]


def moment_of(text: str) -> datetime:
    """A time in ISO 8601, such as 2026-01-31T12:00:00.000; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigException(f"--to-datetime {text}: must be a time such as 2026-01-31T12:00:00.000") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_plan(path: Path, group: str) -> Plan:
    """The lines `topic,partition,offset`, or `group,topic,partition,offset` of which only those of `group` count."""
    import csv

    plan: Plan = {}
    with path.open(encoding="utf-8", newline="") as file:
        for number, cells in enumerate(csv.reader(file), 1):
            if not cells:
                continue
            *before, topic, partition, offset = ("", "", *cells)[-4:] if len(cells) in {3, 4} else ("", "", "", "")
            if not topic or not partition.isdecimal() or not offset.lstrip("-").isdecimal():
                raise ConfigException(
                    f"{path}, line {number}: {','.join(cells)!r} must be topic,partition,offset or "
                    "group,topic,partition,offset"
                )
            if len(cells) == 3 or before[-1] == group:
                plan[TopicPartition(topic, int(partition))] = int(offset)
    return plan
