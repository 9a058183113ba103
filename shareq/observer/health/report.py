"""The report on share groups after a poll: figures and diagnoses as plain values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from shareq.model.waits import Wait


class Verdict(StrEnum):
    """The state of a share-partition, or the worst one of a group's. The order is that of urgency.

    IDLE: no record waits. MOVING: records wait, and the SPSO has moved within the lock duration. WAITING: records wait
    for no longer than the lock duration, for an open transaction, or for a member that was seen with them for the first
    time within the lock duration. UNKNOWN: it cannot be read. UNATTENDED: records wait, and no member is assigned.
    STUCK: a member has been assigned, and the SPSO has not moved, for longer than the lock duration.
    """

    IDLE = "idle"
    MOVING = "moving"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    UNATTENDED = "unattended"
    STUCK = "stuck"


URGENCY = {verdict: order for order, verdict in enumerate(Verdict)}


class Kind(StrEnum):
    """The kinds of diagnoses."""

    WINDOW_STUCK = "window_stuck"
    STATE_NOT_MOVING = "state_not_moving"
    POISON = "poison"
    NO_MEMBERS = "no_members"
    PARTITION_UNASSIGNED = "partition_unassigned"
    MEMBER_UNASSIGNED = "member_unassigned"
    NOT_INITIALIZED = "not_initialized"
    OPEN_TRANSACTION = "open_transaction"
    LEADER_UNAVAILABLE = "leader_unavailable"
    GROUP_UNKNOWN = "group_unknown"
    NOT_READABLE = "not_readable"


ALARMS = frozenset({Kind.WINDOW_STUCK, Kind.STATE_NOT_MOVING, Kind.POISON, Kind.NO_MEMBERS, Kind.PARTITION_UNASSIGNED})
"""The kinds that a person should look at; the others explain."""


class Diagnosis(NamedTuple):
    """`topic` None: of the whole group. `since_ms`: the time since which it holds, None if unknown."""

    kind: Kind
    group: str
    sentence: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    since_ms: int | None = None


class PartitionReport(NamedTuple):
    """One share-partition. Figures are None where they are unknown.

    `start_offset`: the SPSO. `lag_records`: records below the end that are not finished. `finished_records`: those at
    or above the SPSO that are acknowledged or archived. Acquired records are not durable, so the number of records in
    flight is known by its bounds only. `returned_records`: available again after a delivery; `poison_records` of them
    have one delivery left. `members`: the number of members with this partition. `since_ms`: records have been waiting
    since then without a move of the SPSO; None if no record waits. `waits`: what the share-partition certainly waits
    for.
    """

    topic: str
    partition: int
    verdict: Verdict
    leader: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    lag_records: int | None = None
    finished_records: int | None = None
    in_flight_at_least_records: int | None = None
    in_flight_at_most_records: int | None = None
    returned_records: int | None = None
    poison_records: int | None = None
    delivery_count_max: int | None = None
    oldest_unfinished_timestamp_ms: int | None = None
    oldest_unfinished_age_ms: int | None = None
    members: int | None = None
    since_ms: int | None = None
    moved_ms: int | None = None
    waits: Wait | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class GroupReport(NamedTuple):
    """One group. `lag_records`: the sum of the known lags of its partitions. `members` None: unknown."""

    group: str
    state: str
    verdict: Verdict
    members: int | None
    unassigned_members: int | None
    lag_records: int
    partitions_of_unknown_lag: int
    oldest_unfinished_age_ms: int | None
    since_ms: int | None
    partitions: tuple[PartitionReport, ...]
    diagnoses: tuple[Diagnosis, ...]


class Report(NamedTuple):
    """All groups at `time_ms`. While the cluster is unreachable, the groups are those of the last complete poll."""

    bootstrap_servers: str
    time_ms: int
    groups: tuple[GroupReport, ...] = ()
    trouble: str = ""
    unreachable_since_ms: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as values of JSON; the keys are the names of the fields."""
        return _plain(self)  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key: _plain(each) for key, each in value._asdict().items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
