"""The areas of the panel, and what its controls act on."""

from __future__ import annotations

from typing import Protocol

from shareq.broker import Cluster
from shareq.team import Feed, Team
from shareq.trace.views.member_names import MemberNames
from shareq_widgets.steering.control import Executor

RECORDS, CONSUMERS, BROKERS, STATE_WRITES, CLOCK, LOGS = (
    "records",
    "consumers",
    "brokers",
    "state writes",
    "clock",
    "offsets and logs",
)
"""The areas, in order of display; those of the configurations follow."""


class ControlTarget(Executor, Protocol):
    """What the controls act on."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def group(self) -> str: ...
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def team(self) -> Team: ...
    @property
    def feeds(self) -> dict[str, Feed]: ...
    def feed_name(self, topic: str) -> str: ...
    def members(self) -> list[str]: ...
    def joining(self) -> list[str]: ...
    def seen_members(self) -> MemberNames: ...
