"""The heartbeats of a group's members, and the members that have gone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, Self

from shareq.model.events import (
    ConfigChanged,
    CoordinatorLoaded,
    FaultInjected,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
)
from shareq.model.ids import GROUP_METADATA_TOPIC
from shareq.trace.journal import Entry

KEPT_DEPARTURES = 64
"""Number of newest departures that are kept."""

Fault = Literal["crashed", "frozen"]
_FAULTS: Final[dict[str, Fault]] = {"crashed": "crashed", "frozen": "frozen"}


class Heartbeat(NamedTuple):
    """The last heartbeat of a member. `accepted_ms`: the time of the last one without an error, -1 if there is none."""

    time_ms: int
    error: int
    accepted_ms: int


class Departure(NamedTuple):
    """The end of a membership. `refused`: the error of a heartbeat since then, 0 if there is none."""

    time_ms: int
    reason: str
    refused: int = 0


@dataclass(slots=True)
class Liveness:
    """The heartbeats and departures of a group after an entry.

    `departures`: those of members that have not joined again, oldest first. `loaded_ms`: the times at which group
    coordinators loaded partitions of `__consumer_offsets`; sessions start again then. `broker_configs`: the dynamic
    broker configurations. `faults`: those of members.
    """

    heartbeats: dict[str, Heartbeat] = field(default_factory=dict)
    departures: dict[str, Departure] = field(default_factory=dict)
    loaded_ms: dict[int, int] = field(default_factory=dict)
    broker_configs: dict[str, str] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)

    def copy(self) -> Self:
        """An independent copy."""
        return replace(
            self,
            heartbeats=dict(self.heartbeats),
            departures=dict(self.departures),
            loaded_ms=dict(self.loaded_ms),
            broker_configs=dict(self.broker_configs),
            faults=dict(self.faults),
        )

    def apply(self, entry: Entry) -> None:
        """Apply the next entry about the group, its coordinators or the broker configuration."""
        event = entry.event
        if isinstance(event, HeartbeatReceived):
            self._heartbeat(entry.time_ms, event)
        elif isinstance(event, MemberJoined):
            self.departures.pop(event.member_id, None)
        elif isinstance(event, MemberLeft):
            self._left(entry.time_ms, event)
        elif isinstance(event, CoordinatorLoaded):
            if event.topic == GROUP_METADATA_TOPIC:
                self.loaded_ms[event.partition] = entry.time_ms
        elif isinstance(event, ConfigChanged):
            _configure(self.broker_configs, event)
        elif isinstance(event, FaultInjected):
            self._disturbed(event)

    def _heartbeat(self, time_ms: int, event: HeartbeatReceived) -> None:
        member_id, error = event.member_id, int(event.error)
        departure = self.departures.get(member_id)
        if departure is not None:  # the answer to a leave request is a heartbeat without an error
            if error:
                self.departures[member_id] = departure._replace(refused=error)
            return
        before = self.heartbeats.get(member_id)
        accepted_ms = time_ms if not error else before.accepted_ms if before else -1
        self.heartbeats[member_id] = Heartbeat(time_ms, error, accepted_ms)

    def _left(self, time_ms: int, event: MemberLeft) -> None:
        self.heartbeats.pop(event.member_id, None)
        self.faults.pop(event.member_id, None)
        self.departures.pop(event.member_id, None)
        self.departures[event.member_id] = Departure(time_ms, event.reason)
        if len(self.departures) > KEPT_DEPARTURES:
            del self.departures[next(iter(self.departures))]

    def _disturbed(self, event: FaultInjected) -> None:
        if event.member_id is None or event.fault is None:
            return
        if event.fault == "unfrozen":
            self.faults.pop(event.member_id, None)
        elif event.fault in _FAULTS:
            self.faults[event.member_id] = _FAULTS[event.fault]


def _configure(configs: dict[str, str], event: ConfigChanged) -> None:
    if event.resource != "broker":
        return
    if event.value is None:
        configs.pop(event.key, None)
    else:
        configs[event.key] = event.value


OF_LIVENESS = (HeartbeatReceived, MemberJoined, MemberLeft, CoordinatorLoaded, ConfigChanged, FaultInjected)
