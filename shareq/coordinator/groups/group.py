"""What every group is, whichever type it is of: the owner of an id, and of the offsets committed under it.

All types share one namespace. Source: Kafka's Group.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from shareq.coordinator.shard import UnreadableRecordError
from shareq.model.errors import Errors
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
    """A group as the parts see it that do not care for its type. State that changes does so by replay or after a
    commit, never while an operation computes."""

    TYPE: ClassVar[GroupType]

    @property
    def group_id(self) -> str: ...

    @property
    def state(self) -> StrEnum:
        """As ListGroups names it."""
        ...

    @property
    def protocol_type(self) -> str:
        """Of the members' protocol, such as "consumer"; "" where there is none."""
        ...

    @property
    def is_simple(self) -> bool:
        """Whether the group is only a name for offsets: it has no record of its own, another type may take the id."""
        ...

    def refuse_commit(self, committer: Committer) -> Errors:
        """Why an OffsetCommit or TxnOffsetCommit is refused."""
        ...

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> Errors:
        """Why an OffsetFetch is refused; GROUP_ID_NOT_FOUND makes it look like a group without offsets."""
        ...

    def refuse_offset_delete(self) -> Errors:
        """Why an OffsetDelete is refused."""
        ...

    def refuse_delete(self) -> Errors:
        """Why DeleteGroups is refused; NONE: the group is empty."""
        ...

    def subscribes(self, topic: str) -> bool:
        """Whether a member reads the topic: its offsets are neither deleted nor expired."""
        ...

    def expiry_base_ms(self, committed_at_ms: int) -> int | None:
        """From when on the retention of an offset counts; None: it does not expire as things are."""
        ...

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        """The records that end the group, offsets left out."""
        ...


G = TypeVar("G", bound=Group)


def find(groups: dict[str, Group], kind: type[G], group_id: str) -> G | None:
    """The group, where it exists and is of this type."""
    group = groups.get(group_id)
    return group if isinstance(group, kind) else None


def claim(groups: dict[str, Group], group: G) -> G:
    """For replay: a group that a record brings up. UnreadableRecordError where the id belongs to another one."""
    former = groups.get(group.group_id)
    if former is not None and not former.is_simple:
        raise UnreadableRecordError(f"{group.group_id} is of type {former.TYPE}, not {group.TYPE}")
    groups[group.group_id] = group
    return group
