"""The content of the picture of a group: its members, its partitions, and the links between them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from shareq.model.configs import GROUP_CONFIGS
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, Place
from shareq.trace.analysis.groups import Assignment, GroupFold, MemberView
from shareq.trace.analysis.liveness import Departure, Heartbeat, Liveness
from shareq.trace.views.palette import member_colour
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.partitions import GroupPartitions, PartitionContent, group_partitions

RATE_WINDOW_MS: Final = 5_000
"""Throughput is that of the last five seconds of the journal's time."""
GONE_MS: Final = 30_000
"""A member that has gone is shown for this time."""

MemberState = Literal["alive", "silent", "crashed", "frozen", "gone", "not known"]
"""silent: no heartbeat for more than twice the heartbeat interval; crashed, frozen: by a fault on purpose, of which the
group does not know yet; not known: no heartbeat is recorded."""
SILENT: Final = ("silent", "crashed", "frozen")
"""The states of members of the group that send no heartbeats."""
LinkKind = Literal["assigned", "target", "held"]
"""target: only in the target assignment; held: in neither, but the member holds records."""


class MemberContent(NamedTuple):
    """A member. Times are ms since the epoch. None: not known.

    `group_epoch`: the group's, which `member_epoch` is behind while the member has not received its target assignment.
    `target` is None if it equals `assignment`. `session_left_ms`: the time until the coordinator removes the member
    unless it sends a heartbeat. `error`: of the last heartbeat, "" without one. `gone_ms` and `reason` are those of a
    member that has gone. `rate`: records accepted a second.
    """

    member_id: str
    letter: str
    name: str
    colour: str
    state: MemberState
    member_epoch: int | None = None
    group_epoch: int = 0
    subscribed: tuple[str, ...] = ()
    assignment: tuple[Place, ...] = ()
    target: tuple[Place, ...] | None = None
    heartbeat_ms: int | None = None
    silent_ms: int | None = None
    session_left_ms: int | None = None
    error: str = ""
    gone_ms: int | None = None
    reason: str = ""
    held: int | None = None
    rate: float | None = None

    @property
    def silent(self) -> bool:
        return self.state in SILENT

    @property
    def behind(self) -> bool:
        return self.member_epoch is not None and self.member_epoch < self.group_epoch


class Link(NamedTuple):
    """A member and a partition; `rate`: records of it that the member accepted a second, `held`: that it holds."""

    member_id: str
    at: Place
    kind: LinkKind
    rate: float | None
    held: int


class GroupContent(NamedTuple):
    """A group at a moment. `members`: by letter. None: not known; `observed`: seen from outside; `joining`: names of
    clients that have not joined yet, because their cluster's clock stands."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int | None
    session_timeout_ms: int | None
    heartbeat_interval_ms: int | None
    observed: bool
    members: tuple[MemberContent, ...]
    partitions: tuple[PartitionContent, ...]
    links: tuple[Link, ...]
    joining: tuple[str, ...] = ()


def content(instant: Instant) -> GroupContent:
    """The group at a moment."""
    found = group_partitions(instant)
    group = instant.history.group(instant.until)
    liveness = instant.history.liveness(instant.until)
    times = _Times(instant, liveness, group, observed=found.observed)
    loads = _Loads(instant, found, liveness)
    members = [_member(instant, view, group, times, loads) for view in group.members.values()]
    for member_id, departure in liveness.departures.items():
        if member_id not in group.members and instant.now_ms - departure.time_ms <= GONE_MS:
            members.append(_gone(instant, member_id, departure, loads))
    members.sort(key=lambda member: _place(instant, member.member_id))
    return GroupContent(
        group_id=group.group_id,
        state=str(group.state),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch or None,
        session_timeout_ms=times.session_timeout_ms,
        heartbeat_interval_ms=times.heartbeat_interval_ms,
        observed=found.observed,
        members=tuple(members),
        partitions=tuple(found.partitions),
        links=tuple(link for member in members for link in loads.links(member)),
    )


def member_states(instant: Instant, *, observed: bool) -> dict[str, MemberState]:
    """The members that are in the group, and if they are alive."""
    group, liveness = instant.history.group(instant.until), instant.history.liveness(instant.until)
    times = _Times(instant, liveness, group, observed=observed)
    return {member_id: times.of(member_id).state for member_id in group.members}


class _Pulse(NamedTuple):
    """The fields of a member's content that follow from its heartbeats."""

    state: MemberState
    heartbeat_ms: int | None = None
    silent_ms: int | None = None
    session_left_ms: int | None = None
    error: str = ""


class _Times:
    """The heartbeats and the session of each member."""

    def __init__(self, instant: Instant, liveness: Liveness, group: GroupFold, *, observed: bool) -> None:
        self._now_ms = instant.now_ms
        self._heartbeats, self._faults = liveness.heartbeats, liveness.faults
        partition = instant.history.cluster(instant.until).coordinating_partition(GROUP_METADATA_TOPIC, group.group_id)
        self._loaded_ms = -1 if partition is None else liveness.loaded_ms.get(partition, -1)
        configs = group.configs, liveness.broker_configs
        self.session_timeout_ms = _config_ms("session.timeout.ms", *configs, observed=observed)
        self.heartbeat_interval_ms = _config_ms("heartbeat.interval.ms", *configs, observed=observed)

    def of(self, member_id: str) -> _Pulse:
        heartbeat, fault = self._heartbeats.get(member_id), self._faults.get(member_id)
        if heartbeat is None:
            return _Pulse(fault or "not known")
        silent_ms, interval_ms = self._now_ms - heartbeat.time_ms, self.heartbeat_interval_ms
        end_ms = self._session_end_ms(heartbeat)
        return _Pulse(
            fault or ("silent" if interval_ms is not None and silent_ms > 2 * interval_ms else "alive"),
            heartbeat.time_ms,
            silent_ms,
            None if end_ms is None else max(end_ms - self._now_ms, 0),
            Errors(heartbeat.error).name if heartbeat.error else "",
        )

    def _session_end_ms(self, heartbeat: Heartbeat) -> int | None:
        """A new coordinator starts the sessions again when it loads the group."""
        start_ms = max(heartbeat.accepted_ms, self._loaded_ms)
        return None if start_ms < 0 or self.session_timeout_ms is None else start_ms + self.session_timeout_ms


def _config_ms(key: str, of_group: dict[str, str], of_brokers: dict[str, str], *, observed: bool) -> int | None:
    """A group's configuration, else the brokers' dynamic one, else the default; None if an observer has not read it.

    The journal does not have the configuration with which brokers were started.
    """
    value = of_group.get(f"share.{key}", of_brokers.get(f"group.share.{key}"))
    if value is None:
        return None if observed else int(GROUP_CONFIGS[f"share.{key}"].default)
    return int(value)


class _Loads:
    """The records that members hold, and the rates at which they accept records."""

    def __init__(self, instant: Instant, found: GroupPartitions, liveness: Liveness) -> None:
        self._held = found.held
        self._rates: dict[tuple[str, Place], float] = {}
        self._known: set[str] | None = set(liveness.heartbeats) if found.observed else None
        since_ms = instant.now_ms - RATE_WINDOW_MS
        for partition in found.partitions:
            accepted = instant.history.accepted(partition.topic, partition.partition)
            counts = accepted.by_member(since_ms, instant.until, observed=found.observed)
            for member_id, records in counts.items():
                self._rates[member_id, partition.at] = records * 1000 / RATE_WINDOW_MS
            if self._known is not None:
                self._known |= accepted.reporting(instant.until)
        self._at = [partition.at for partition in found.partitions]

    def of(self, member_id: str) -> tuple[int | None, float | None]:
        """The records that a member holds, and those that it accepts a second. An observer knows those of members of
        its process, which report, and of members whose heartbeats pass its proxy."""
        if self._known is not None and member_id not in self._known:
            return None, None
        held, rate = self._held, self._rates
        return sum([held[member_id, at] for at in self._at]), sum([rate.get((member_id, at), 0.0) for at in self._at])

    def links(self, member: MemberContent) -> list[Link]:
        """The partitions that the member is assigned, or will be, or holds records of; sorted."""
        assigned, target = set(member.assignment), set(member.target or ())
        links = []
        for at in self._at:
            held = self._held[member.member_id, at]
            if at in assigned or at in target or held:
                kind: LinkKind = "assigned" if at in assigned else "target" if at in target else "held"
                rate = None if member.rate is None else self._rates.get((member.member_id, at), 0.0)
                links.append(Link(member.member_id, at, kind, rate, held))
        return links


def _member(instant: Instant, view: MemberView, group: GroupFold, times: _Times, loads: _Loads) -> MemberContent:
    named = instant.names.member(view.member_id)
    assignment, target = _flat(view.assignment), None
    if group.assignment_epoch and view.target is not view.assignment:
        target = _flat(view.target)
    state, heartbeat_ms, silent_ms, session_left_ms, error = times.of(view.member_id)
    held, rate = loads.of(view.member_id)
    return MemberContent(
        view.member_id,
        named.letter,
        named.name,
        member_colour(named.place),
        state,
        view.member_epoch,
        group.group_epoch,
        view.subscribed_topic_names,
        assignment,
        None if target == assignment else target,
        heartbeat_ms,
        silent_ms,
        session_left_ms,
        error,
        held=held,
        rate=rate,
    )


def _gone(instant: Instant, member_id: str, departure: Departure, loads: _Loads) -> MemberContent:
    """A member that has gone: it may still hold records until its locks run out."""
    named = instant.names.member(member_id)
    held, rate = loads.of(member_id)
    return MemberContent(
        member_id,
        named.letter,
        named.name,
        member_colour(named.place),
        "gone",
        gone_ms=departure.time_ms,
        reason=departure.reason,
        error=Errors(departure.refused).name if departure.refused else "",
        held=held,
        rate=rate,
    )


def _place(instant: Instant, member_id: str) -> int:
    """Letters ascend with the places of the members."""
    return instant.names.member(member_id).place


def _flat(assignment: Assignment) -> tuple[Place, ...]:
    return tuple(sorted([(topic, partition) for topic, parts in assignment for partition in parts]))
