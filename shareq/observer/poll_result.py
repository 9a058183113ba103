"""Result of one poll of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from shareq.admin.core import Reply
from shareq.coordinator.share_state.records import StateRecord
from shareq.coordinator.share_state.state import KeyState
from shareq.model.errors import Errors
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.share_group import ShareGroupDescribeResponse
from shareq.model.messages.share_state import StateBatch

PartitionId = tuple[str, int]
"""(topic, partition)."""


@dataclass(slots=True, kw_only=True)
class Incomplete:
    """A result that names why it is incomplete: `trouble` is the first reason. `records`: those of the state topic.

    `unanswered`: a request had no response. `unauthorized`: the state topic must not be read.
    """

    trouble: str = ""
    unanswered: bool = False
    unreachable: bool = False
    unauthorized: bool = False
    records: list[StateRecord] = field(default_factory=list)

    def fail(self, subject: str, reply: Reply, error: Errors = Errors.NONE) -> None:
        """Keep the first trouble: no response, or an error in one."""
        unanswered = reply.response is None
        self.unanswered |= unanswered
        if not self.trouble:
            self.trouble = f"{subject}: {(unanswered and reply.reason) or (error or reply.error).name}"


@dataclass(slots=True, kw_only=True)
class PollResult(Incomplete):
    """What one poll has read. Values that could not be read are absent.

    `unreachable`: no broker answered. `topics`: None for a topic that does not exist. `group`: None if there is no such
    group, or it could not be described (then `group_described` is False). `states`: None for a share-partition without
    durable state. `passed`: the finished runs below their start offsets that the topic has named since the last poll.
    `log_starts`, `log_ends`: those that are known.
    """

    topics: dict[str, MetadataResponse.Topic | None] = field(default_factory=dict)
    group: ShareGroupDescribeResponse.DescribedGroup | None = None
    group_described: bool = False
    configs: dict[str, str] = field(default_factory=dict)
    states: dict[PartitionId, KeyState | None] = field(default_factory=dict)
    passed: dict[PartitionId, tuple[StateBatch, ...]] = field(default_factory=dict)
    log_starts: dict[PartitionId, int] = field(default_factory=dict)
    log_ends: dict[PartitionId, int] = field(default_factory=dict)
