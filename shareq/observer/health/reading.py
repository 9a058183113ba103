"""What one poll has read of several share groups: plain values, absent where they could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from shareq.model.messages.share_state import StateBatch
from shareq.observer.poll_result import Incomplete, PartitionId


class Durable(NamedTuple):
    """The durable state of one share-partition. Times are those of the brokers' clocks, ms since the epoch.

    `start_offset` is the SPSO: the stored one, moved past the finished records that follow it; -1: none is stored.
    `finished`: the number of acknowledged and archived records at or above the SPSO. `batches`: those at or above it.
    `moved_ms`: the SPSO was there at that time. `changed_ms`: the last change of the state. `waiting_ms`: the earliest
    time at which the record at the SPSO is known to have been in the log, None if the state does not show it.
    """

    start_offset: int
    finished: int = 0
    batches: tuple[StateBatch, ...] = ()
    moved_ms: int | None = None
    changed_ms: int | None = None
    waiting_ms: int | None = None


class Member(NamedTuple):
    member_id: str
    client_id: str
    host: str
    assignment: frozenset[PartitionId]


class Head(NamedTuple):
    """The timestamp of the first record at or above an offset."""

    offset: int
    timestamp_ms: int


@dataclass(slots=True)
class GroupReading:
    """One group. `members` None: not described. `exists` None: unknown. `state_read` False: the durable state is known
    from its summary only, without batches and times."""

    exists: bool | None = None
    state: str = ""
    members: tuple[Member, ...] | None = None
    configs: dict[str, str] = field(default_factory=dict)
    durable: dict[PartitionId, Durable | None] = field(default_factory=dict)
    state_read: bool = False
    heads: dict[PartitionId, Head] = field(default_factory=dict)
    trouble: str = ""


@dataclass(slots=True, kw_only=True)
class Reading(Incomplete):
    """One poll. `leaders`: -1 for a partition without a leader.

    `stable_ends`: the last stable offsets, read for topics of groups with read_committed.
    """

    groups: dict[str, GroupReading] = field(default_factory=dict)
    leaders: dict[PartitionId, int] = field(default_factory=dict)
    log_starts: dict[PartitionId, int] = field(default_factory=dict)
    ends: dict[PartitionId, int] = field(default_factory=dict)
    stable_ends: dict[PartitionId, int] = field(default_factory=dict)
