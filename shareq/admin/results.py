"""Results of administration: frozen rows, and dicts of them that display as tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Self, TypeVar

from shareq.client.topic_partition import TopicPartition
from shareq.model.acls import AclBinding
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.frozen import frozen
from shareq.model.printable import escape
from shareq.model.scram import ScramCredentialInfo

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound="Result")


@frozen
class Shown:
    """Shows its fields in `repr`; `error` only if it is set."""

    def __repr__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self) if field.name != "error"]
        error = getattr(self, "error", None)
        if error is not None:
            values.append(("error", error))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values)})"


@frozen
class Result(Shown):
    """The result of one item. The other fields are valid if `error` is None."""

    error: KafkaError | None = None


class Results(dict[K, R]):
    """Results by item, in the order of the request. Errors of single items are values; `check()` raises the first."""

    def check(self) -> Self:
        for row in self.values():
            if row.error is not None:
                raise KafkaException(row.error)
        return self

    def _table(self) -> list[list[str]]:
        """The heading and the rows as text; with a column for errors only if there are any."""
        rows = list(self.values())
        if not rows:
            return [["(nothing)"]]
        names = [field.name for field in fields(rows[0]) if field.name not in _NOT_IN_TABLES]
        if any(row.error for row in rows):
            names.append("error")
        heads = [name.replace("_", " ") for name in names]
        return [heads, *([_text(getattr(row, name)) for name in names] for row in rows)]

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        heads, *rows = ([escape(cell) for cell in line] for line in self._table())
        head = "".join(f"<th>{cell}</th>" for cell in heads)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>"


_NOT_IN_TABLES = frozenset({"error", "sensitive", "synonyms"})
"""Fields of rows without a column; errors have one if there are any."""


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, KafkaError):
        return f"{value.name()}: {value.str()}"
    if isinstance(value, TopicPartition):
        return f"{value.topic}:{value.partition}"
    if isinstance(value, ScramCredentialInfo):
        return f"{value.mechanism.sasl_name} ({value.iterations} iterations)"
    if isinstance(value, AclBinding):
        return str(value)
    if isinstance(value, tuple):
        return ", ".join(_text(part) for part in value)
    return str(value)


@frozen
class Done(Result):
    """The result of an operation without a value."""

    name: str


@frozen
class ClientQuotas(Shown):
    """The quotas of an entity, such as {"user": "alice"}; the name None is that of the default."""

    entity: Mapping[str, str | None]
    quotas: Mapping[str, float]


@frozen
class UserScramCredentialsDescription(Result):
    """The credentials of a user, without what proves a password."""

    user: str
    scram_credential_infos: tuple[ScramCredentialInfo, ...] = ()


@frozen
class DeletedAcls(Result):
    """The access control lists that a filter matched, and that are gone."""

    acls: tuple[AclBinding, ...]


@frozen
class CreatedTopic(Result):
    name: str
    topic_id: str
    partitions: int
    replication_factor: int


@frozen
class PartitionDescription(Shown):
    """`leader` is -1 if there is none. `elr`, `last_known_elr`: replicas that may become leader without being in sync
    (KIP-966); None if the brokers were not asked, or keep none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.partition}@{self.leader}"


@frozen
class TopicDescription(Result):
    """`partitions` are displayed as partition@leader."""

    name: str
    topic_id: str
    internal: bool
    partitions: tuple[PartitionDescription, ...]


@frozen
class NodeDescription(Shown):
    """A broker. In a cluster of this process, `host` and `port` are names without a socket."""

    id: int
    host: str
    port: int
    rack: str | None


@frozen
class ClusterDescription(Shown):
    """`nodes`: the brokers that are alive, by id. `controller` is one of them: the broker that takes changes of topics
    and configurations; -1 if none is known."""

    cluster_id: str
    controller: int
    nodes: tuple[NodeDescription, ...]


@frozen
class GroupListing(Result):
    group_id: str
    type: str
    protocol: str
    state: str


class GroupListings(Results[str, GroupListing]):
    """The groups of the brokers that answered, by id. `errors`: the error of each other broker, by node."""

    def __init__(self, groups: Mapping[str, GroupListing], errors: Mapping[int, KafkaError]) -> None:
        super().__init__(sorted(groups.items()))
        self.errors = dict(errors)

    def check(self) -> Self:
        for error in self.errors.values():
            raise KafkaException(error)
        return super().check()

    def _table(self) -> list[list[str]]:
        table = super()._table()
        rest = [""] * (len(table[0]) - 1)
        return table + [[f"broker {node}: {_text(error)}", *rest] for node, error in self.errors.items()]


@frozen
class MemberDescription(Shown):
    """`assignment`: the partitions that the member may fetch from; several members may share a partition."""

    member_id: str
    client_id: str
    host: str
    rack_id: str | None
    member_epoch: int
    topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"{self.client_id} ({', '.join(f'{tp.topic}:{tp.partition}' for tp in self.assignment) or 'nothing'})"


@frozen
class ShareGroupDescription(Result):
    """`members` are displayed as client id (assignment)."""

    group_id: str
    state: str
    coordinator: int
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[MemberDescription, ...]


@frozen
class ShareGroupOffset(Result):
    """The start offset of a share-partition (None: not initialized), and the number of records yet to be delivered
    (None: unknown)."""

    topic: str
    partition: int
    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class Lag(Results[TopicPartition, ShareGroupOffset]):
    """A group's lag by partition."""

    @property
    def total(self) -> int:
        """The sum over all partitions with a known lag."""
        return sum(row.lag or 0 for row in self.values())


@frozen
class AlteredOffset(Result):
    """`start_offset`: the new one, with `earliest`, `latest` and times resolved."""

    topic: str
    partition: int
    start_offset: int | None


@frozen
class OffsetInfo(Result):
    """All fields are None if there is no such record."""

    topic: str
    partition: int
    offset: int | None
    timestamp: int | None
    leader_epoch: int | None


@frozen
class DeletedRecords(Result):
    """`low_watermark`: the first remaining offset."""

    topic: str
    partition: int
    low_watermark: int | None


@frozen
class Reassignment(Result):
    """A partition whose replicas move: `replicas` are all of them, those that are added and removed included."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@frozen
class ConfigSynonym(Shown):
    """A configuration that sets the value of another one, or would without those before it."""

    name: str
    value: str | None
    source: str


@frozen
class ConfigEntry(Result):
    """`source` such as "group", "topic", "static_broker", "default". A `sensitive` value is None. `synonyms`: all
    configurations that set the value, the one in force first."""

    name: str
    value: str | None
    source: str
    read_only: bool
    documentation: str | None
    sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
