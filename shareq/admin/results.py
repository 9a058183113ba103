"""What administration returns: small frozen rows, and dicts of them that show themselves as tables."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from html import escape
from typing import Self, TypeVar

from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import KafkaError, KafkaException

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound="Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One item's result. `error` is None where all is well; other fields then hold."""

    error: KafkaError | None = None


class Results(dict[K, R]):
    """Results by item, in the order of asking. Errors of single items are values; `check()` raises the first."""

    def check(self) -> Self:
        for row in self.values():
            if row.error is not None:
                raise KafkaException(row.error)
        return self

    def _repr_html_(self) -> str:
        rows = list(self.values())
        if not rows:
            return "<p>nothing</p>"
        names = [field.name for field in fields(rows[0]) if field.name != "error"]
        if any(row.error for row in rows):
            names.append("error")
        heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
        return f"<table><tr>{heads}</tr>{''.join(_html_row(row, names) for row in rows)}</table>"


def _html_row(row: Row, names: list[str]) -> str:
    cells = "".join(f"<td>{escape(_text(getattr(row, name)))}</td>" for name in names)
    return f"<tr>{cells}</tr>"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, KafkaError):
        return f"{value.name()}: {value.str()}"
    if isinstance(value, TopicPartition):
        return f"{value.topic}:{value.partition}"
    if isinstance(value, tuple):
        return ", ".join(_text(part) for part in value)
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Row):
    """Something was done, or was not; nothing else is to be told."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic(Row):
    name: str
    topic_id: str
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.partition}@{self.leader}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription(Row):
    """`partitions` show themselves as partition@leader."""

    name: str
    topic_id: str
    internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing(Row):
    group_id: str
    type: str
    protocol: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """`assignment`: the partitions that the member may fetch from; others may have them too."""

    member_id: str
    client_id: str
    host: str
    rack_id: str | None
    member_epoch: int
    topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"{self.client_id} ({', '.join(f'{tp.topic}:{tp.partition}' for tp in self.assignment) or 'nothing'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupDescription(Row):
    """`members` show themselves as client id (assignment)."""

    group_id: str
    state: str
    coordinator: int
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[MemberDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupOffset(Row):
    """Where a share-partition starts (None: not initialised yet), and how many records it has still to deliver (None:
    unknown)."""

    topic: str
    partition: int
    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class Lag(Results[TopicPartition, ShareGroupOffset]):
    """A group's lag by partition."""

    @property
    def total(self) -> int:
        """Over all partitions whose lag is known."""
        return sum(row.lag or 0 for row in self.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredOffset(Row):
    """`start_offset`: what was asked for, `earliest`, `latest` and times resolved."""

    topic: str
    partition: int
    start_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetInfo(Row):
    """None where there is no such record."""

    topic: str
    partition: int
    offset: int | None
    timestamp: int | None
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRecords(Row):
    """The first offset that is left."""

    topic: str
    partition: int
    low_watermark: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry(Row):
    """`source` such as "group", "topic", "static_broker", "default"."""

    name: str
    value: str | None
    source: str
    read_only: bool
    documentation: str | None
