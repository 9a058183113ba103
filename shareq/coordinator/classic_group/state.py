"""The state of a classic group: its members, its generation, and its state in the rebalance protocol.

Only Empty and Stable groups are recorded. The other states are soft: after a failover the members join again. A group
is never changed in place: a request changes a copy, which replaces the group after the commit (see `transition`).
Source: Kafka's ClassicGroup, ClassicGroupMember and ClassicGroupState.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from enum import StrEnum
from typing import ClassVar, NamedTuple

from shareq.coordinator.classic_group import records
from shareq.coordinator.classic_group.protocol import CONSUMER, subscribed_topics
from shareq.coordinator.group.group import Committer, GroupType, WithoutMemberEpochs
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Promise

Protocols = tuple[JoinGroupRequest.Protocol, ...]


class ClassicGroupState(StrEnum):
    """As described to admins. DEAD is the state shown for an absent group; a group never enters it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroupEvent(StrEnum):
    """The events that change the state: a rebalance begins, its join phase ends with members or without, the assignment
    is stored."""

    REBALANCE = "rebalance"
    JOINED = "joined"
    EMPTIED = "emptied"
    ASSIGNED = "assigned"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _ = ClassicGroupState

TRANSITIONS: dict[tuple[ClassicGroupState, ClassicGroupEvent], ClassicGroupState] = {
    (_EMPTY, ClassicGroupEvent.REBALANCE): _PREPARING,
    (_PREPARING, ClassicGroupEvent.JOINED): _COMPLETING,
    (_PREPARING, ClassicGroupEvent.EMPTIED): _EMPTY,
    (_COMPLETING, ClassicGroupEvent.ASSIGNED): _STABLE,
    (_COMPLETING, ClassicGroupEvent.REBALANCE): _PREPARING,
    (_STABLE, ClassicGroupEvent.REBALANCE): _PREPARING,
}
"""The next state by state and event. Pairs without an entry cannot occur."""


class ClassicGroupMember(NamedTuple):
    """A member. `awaiting_join` and `awaiting_sync`: the responses to its waiting JoinGroup and SyncGroup.

    `is_new`: its first JoinGroup is not answered yet, so it cannot send heartbeats.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    awaiting_join: Promise[JoinGroupResponse] | None = None
    awaiting_sync: Promise[SyncGroupResponse] | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for a protocol; b"" if it does not support the protocol."""
        return next((known.metadata for known in self.protocols if known.name == protocol), b"")

    def vote(self, candidates: Iterable[str]) -> str:
        """The first of the member's protocols that is among the candidates."""
        return next(known.name for known in self.protocols if known.name in candidates)


class InitialDelay(NamedTuple):
    """The initial rebalance delay of a group that was empty: `delay_ms` for this wait, `remaining_ms` at most after it.

    `member_added`: a member has joined during this wait.
    """

    delay_ms: int
    remaining_ms: int
    member_added: bool = False


class ClassicGroup(WithoutMemberEpochs):
    """One group.

    `pending`: member ids given out by MEMBER_ID_REQUIRED that have not joined yet. `pending_sync`: members of the
    generation that have not sent SyncGroup yet. `state_since_ms`: when the group entered its state; None if its record
    is older than version 2, which introduced the timestamp.
    """

    TYPE: ClassVar[GroupType] = GroupType.CLASSIC

    __slots__ = (
        "generation_id",
        "group_id",
        "initial_delay",
        "leader_id",
        "members",
        "pending",
        "pending_sync",
        "protocol_name",
        "protocol_type",
        "state",
        "state_since_ms",
        "topics",
    )

    def __init__(self, group_id: str, now_ms: int | None = None) -> None:
        self.group_id = group_id
        self.state = ClassicGroupState.EMPTY
        self.state_since_ms = now_ms
        self.generation_id = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        self.pending: frozenset[str] = frozenset()
        self.pending_sync: frozenset[str] = frozenset()
        self.initial_delay: InitialDelay | None = None
        self.topics: frozenset[str] | None = None
        """The topics that the members subscribe to; None if unknown (another protocol type, or no generation yet)."""

    def copy(self) -> ClassicGroup:
        """A copy that can be changed without changing this group: members are immutable, their dict is copied."""
        other = copy(self)
        other.members = dict(self.members)
        return other

    def step(self, event: ClassicGroupEvent, now_ms: int) -> None:
        self.state = TRANSITIONS[self.state, event]
        self.state_since_ms = now_ms

    # ---- questions ---------------------------------------------------------------------------------------------------

    @property
    def is_simple(self) -> bool:
        return not self.protocol_type and self.state is _EMPTY and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of all members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.awaiting_join for member in self.members.values())

    def static_member(self, instance_id: str | None) -> ClassicGroupMember | None:
        """The present owner of the instance id."""
        if instance_id is None:
            return None
        return next((m for m in self.members.values() if m.group_instance_id == instance_id), None)

    def refuse_member(self, member_id: str, instance_id: str | None) -> Errors:
        """NONE if the member exists and owns the instance id; else FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member and instance_id in (None, member.group_instance_id):
            return Errors.NONE
        return Errors.FENCED_INSTANCE_ID if self.static_member(instance_id) else Errors.UNKNOWN_MEMBER_ID

    def refuse_protocols(self, protocol_type: str, protocols: Protocols) -> Errors:
        """INCONSISTENT_GROUP_PROTOCOL unless the type is the group's and one of the protocols is supported by all
        members. A group without members accepts any type and protocols; it may be Empty or PreparingRebalance."""
        if not self.members:
            fits = bool(protocol_type and protocols)
        else:
            common = self._common_protocols()
            fits = protocol_type == self.protocol_type and any(known.name in common for known in protocols)
        return Errors.NONE if fits else Errors.INCONSISTENT_GROUP_PROTOCOL

    def _common_protocols(self) -> set[str]:
        counts = Counter(name for m in self.members.values() for name in {known.name for known in m.protocols})
        return {name for name, count in counts.items() if count == len(self.members)}

    def select_protocol(self) -> str:
        """The protocol with most votes among those that all members support; the first one in a tie."""
        candidates = self._common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def subscribed(self) -> frozenset[str] | None:
        """The topics that the members subscribe to under the chosen protocol; None for other protocol types than
        "consumer".

        An empty set if a subscription cannot be read.
        """
        if self.protocol_type != CONSUMER:
            return None
        try:
            each = [subscribed_topics(member.metadata(self.protocol_name)) for member in self.members.values()]
        except UnreadableRecordError:
            return frozenset()
        return frozenset[str]().union(*each)

    def record(self) -> CoordinatorRecord:
        """The record of the whole group."""
        members = tuple(
            records.MemberMetadata(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                m.rebalance_timeout_ms,
                m.session_timeout_ms,
                m.metadata(self.protocol_name),
                m.assignment,
            )
            for m in self.members.values()
        )
        since_ms = -1 if self.state_since_ms is None else self.state_since_ms
        head = self.protocol_type, self.generation_id, self.protocol_name, self.leader_id, since_ms
        return records.encode(self.group_id, records.GroupMetadata(*head, members))

    # ---- offsets and deletion ----------------------------------------------------------------------------------------

    def refuse_commit(self, committer: Committer) -> Errors:
        """NONE for a member in its generation, for a commit without member in an Empty group, and for a transactional
        commit without member."""
        member_id, instance_id, generation_id, transactional = committer
        if generation_id < 0 and self.state is _EMPTY:
            return Errors.NONE
        if generation_id >= 0 or member_id or instance_id is not None:
            error = self.refuse_member(member_id, instance_id)
            if error:
                return error
            if generation_id != self.generation_id:
                return Errors.ILLEGAL_GENERATION
        elif not transactional:
            return Errors.UNKNOWN_MEMBER_ID
        if self.state is _COMPLETING and not transactional:
            return Errors.REBALANCE_IN_PROGRESS
        return Errors.NONE

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> Errors:
        del member_id, member_epoch
        return Errors.NONE

    def refuse_offset_delete(self) -> Errors:
        """NON_EMPTY_GROUP if the group is in use and its subscribed topics are unknown (type not "consumer")."""
        in_use = self.state is not _EMPTY and self.protocol_type != CONSUMER
        return Errors.NON_EMPTY_GROUP if in_use else Errors.NONE

    def refuse_delete(self) -> Errors:
        return Errors.NONE if self.state is _EMPTY else Errors.NON_EMPTY_GROUP

    def subscribes(self, topic: str) -> bool:
        """True if a member subscribes to the topic. Before the first generation of a "consumer" group: any topic."""
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    def expiry_base_ms(self, committed_at_ms: int) -> int | None:
        """The time (ms) from which the retention of an offset counts; None if the offset cannot expire now.

        An Empty group: when it became Empty. A Stable group of known topics, and one that never had members: the
        commit.
        """
        if not self.protocol_type:
            return committed_at_ms
        if self.state is _EMPTY:
            return committed_at_ms if self.state_since_ms is None else self.state_since_ms
        if self.state is _STABLE and self.topics is not None:
            return committed_at_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [records.tombstone(self.group_id)]


def restored(group_id: str, value: records.GroupMetadata) -> ClassicGroup:
    """The group of a record, Stable with the recorded members and generation; Empty without members."""
    group = ClassicGroup(group_id, None if value.current_state_timestamp == -1 else value.current_state_timestamp)
    group.protocol_type = value.protocol_type
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    for member in value.members:
        protocols = (JoinGroupRequest.Protocol(name=value.protocol or "", metadata=member.subscription),)
        rebalance_ms = member.session_timeout_ms if member.rebalance_timeout_ms == -1 else member.rebalance_timeout_ms
        times = rebalance_ms, member.session_timeout_ms
        group.members[member.member_id] = ClassicGroupMember(*member[:4], *times, protocols, member.assignment)
    group.state = _STABLE if group.members else _EMPTY
    group.topics = group.subscribed()
    return group
