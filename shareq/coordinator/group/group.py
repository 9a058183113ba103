"""The interface of groups of all types: a group owns an id, and the offsets committed under it.

All types share one namespace. Source: Kafka's Group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.records import CoordinatorRecord


class GroupType(StrEnum):
    """The types, named as ListGroups names them."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


class Committer(NamedTuple):
    """The committer of offsets. No member id and a negative epoch: a client outside the group.

    `epoch` is the generation in a classic group, the member epoch in a consumer group.
    """

    member_id: str
    group_instance_id: str | None
    epoch: int
    transactional: bool = False


class Group(Protocol):
    """A group of any type. Its state changes by replay or after a commit, never while an operation computes."""

    TYPE: ClassVar[GroupType]

    @property
    def group_id(self) -> str: ...

    @property
    def state(self) -> StrEnum:
        """The state, with the name that ListGroups returns."""
        ...

    @property
    def protocol_type(self) -> str:
        """The type of the members' protocol, such as "consumer"; "" if there is none."""
        ...

    @property
    def is_simple(self) -> bool:
        """True if the group has offsets but no record of its own, so that a group of another type may take the id."""
        ...

    def refuse_commit(self, committer: Committer) -> Errors:
        """The error of an OffsetCommit or TxnOffsetCommit; NONE: allowed."""
        ...

    def needs_epochs(self, member_id: str) -> bool:
        """True if the member commits with a member epoch, which old versions of OffsetCommit do not have."""
        ...

    def refuse_partitions(self, committer: Committer, partitions: Iterable[tuple[TopicId, int]]) -> Errors:
        """The error of a commit that `refuse_commit` allows, for the partitions of its offsets; NONE: allowed."""
        ...

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> Errors:
        """The error of an OffsetFetch; GROUP_ID_NOT_FOUND is answered as a group without offsets."""
        ...

    def refuse_offset_delete(self) -> Errors:
        """The error of an OffsetDelete; NONE: allowed."""
        ...

    def refuse_delete(self) -> Errors:
        """The error of DeleteGroups; NONE: the group is empty and may be deleted."""
        ...

    def subscribes(self, topic: str) -> bool:
        """True if a member subscribes to the topic; then its offsets are neither deleted nor expired."""
        ...

    def expiry_base_ms(self, committed_at_ms: int) -> int | None:
        """The start of an offset's retention; None: the offset does not expire in the current state."""
        ...

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        """The records that delete the group, without its offsets."""
        ...


class WithoutMemberEpochs:
    """What follows for a group whose members do not commit offsets with a member epoch: all but consumer groups."""

    __slots__ = ()

    def needs_epochs(self, member_id: str) -> bool:
        del member_id
        return False

    def refuse_partitions(self, committer: Committer, partitions: Iterable[tuple[TopicId, int]]) -> Errors:
        del committer, partitions
        return Errors.NONE


G = TypeVar("G", bound=Group)


def find(groups: dict[str, Group], kind: type[G], group_id: str) -> G | None:
    """The group, if it exists and is of this type; else None."""
    group = groups.get(group_id)
    return group if isinstance(group, kind) else None


def claim(groups: dict[str, Group], group: G) -> G:
    """For replay: add the group. Raises UnreadableRecordError if the id belongs to a group of another type."""
    former = groups.get(group.group_id)
    if former is not None and not former.is_simple:
        raise UnreadableRecordError(f"{group.group_id} is of type {former.TYPE}, not {group.TYPE}")
    groups[group.group_id] = group
    return group
