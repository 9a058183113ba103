"""Cleaning by groups (an experiment): of topics that want it, the records that all groups have finished are deleted.

The leader of a partition asks every group coordinator for its groups, and then for the durable start of each share
group and the commit of each consumer group that has the partition. Rules: BEHAVIOUR.md in `leader/experiments`,
"Cleaning by groups".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shareq.log.config import LogConfig
from shareq.model.actor import (
    Answer,
    Call,
    CleanByGroups,
    DeleteRecordsBefore,
    Effect,
    ImageChanged,
    Message,
    RecordsDeleted,
)
from shareq.model.events import LogKept
from shareq.model.experiments import BY_GROUPS
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.cluster import ListGroupsRequest, ListGroupsResponse
from shareq.model.messages.offsets import OffsetFetchRequest, OffsetFetchResponse
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from shareq.model.workflow import LATER, Reply, Send, Waiter, Workflow, Workflows

NO_OFFSET = -1


class Need(NamedTuple):
    """A group needs the records of a partition from `offset` on; NO_OFFSET: that is not known, for this reason."""

    group_id: str
    offset: int
    shares: bool
    reason: str = ""


Needs = dict[TopicPartition, list[Need]]


class Unknown(NamedTuple):
    """What the groups need is not known."""

    reason: str


class GroupRetention:
    """The actor. `wake_at_ms` is None: the broker delivers `CleanByGroups` when retention runs."""

    wake_at_ms: int | None = None

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._image = ClusterImage()
        self._effects: list[Effect] = []
        self._waiting: dict[int, Waiter] = {}
        self._last_id = 0
        self._cleans = False
        self._kept: dict[TopicPartition, tuple[str | None, str]] = {}
        self._workflows = Workflows({Send: self._send})

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Handle one message. KeyError for a message type that it does not handle."""
        del now_ms
        match message:
            case ImageChanged():
                self._image = message.image
            case CleanByGroups():
                self._clean()
            case Answer():
                self._waiting.pop(message.id).resume(Reply(message.response, message.error, message.reason))
            case RecordsDeleted():
                pass  # the next round tries again what has failed
            case _:
                raise KeyError(type(message))
        effects, self._effects = self._effects, []
        return effects

    def _send(self, send: Send, waiter: Waiter) -> object:
        self._last_id += 1
        self._waiting[self._last_id] = waiter
        self._effects.append(Call(self._last_id, send.node, send.request))
        return LATER

    # ---- a round -----------------------------------------------------------------------------------------------------

    def _clean(self) -> None:
        """Begin a round, unless one is under way."""
        partitions = list(self._partitions())
        self._kept = {at: why for at, why in self._kept.items() if at in partitions}
        if partitions and not self._cleans:
            self._cleans = True
            self._workflows.start(self._round(partitions))

    def _partitions(self) -> Iterator[TopicPartition]:
        """The partitions led here whose topic is to be cleaned by groups, and may be."""
        for name, topic in self._image.topics.items():
            if topic.configs.get(BY_GROUPS, "false").lower() == "true":
                if LogConfig.effective(topic.configs, self._image.broker_config).compact:
                    continue
                for index, partition in enumerate(topic.partitions):
                    if partition.leader == self._broker_id:
                        yield TopicPartition(name, index)

    def _round(self, partitions: list[TopicPartition]) -> Workflow[None]:
        coordinators = self._coordinators()
        try:
            needs = yield from self._needs(coordinators)
        finally:
            self._cleans = False
        if not isinstance(needs, Unknown) and self._coordinators() != coordinators:
            needs = Unknown("a group coordinator has moved meanwhile")
        for at in partitions:
            if isinstance(needs, Unknown):
                self._keep(at, NO_OFFSET, None, needs.reason)
            elif any(need.shares for need in needs.get(at, ())):
                self._decide(at, needs[at])

    def _decide(self, at: TopicPartition, needs: list[Need]) -> None:
        """Delete what no group needs; a need that is not known keeps all."""
        need = min(needs, key=lambda one: (one.offset, one.group_id))
        if need.offset != NO_OFFSET:
            self._last_id += 1
            self._effects.append(DeleteRecordsBefore(self._last_id, at, need.offset))
        self._keep(at, need.offset, need.group_id, need.reason or f"group {need.group_id} is not further")

    def _keep(self, at: TopicPartition, offset: int, group_id: str | None, reason: str) -> None:
        if self._kept.get(at) != (group_id, reason):
            self._kept[at] = group_id, reason
            self._effects.append(LogKept(*at, offset, group_id, reason))

    def _coordinators(self) -> tuple[tuple[int, int], ...]:
        """Leader and leader epoch of each group shard: as long as they stay, each group has one coordinator."""
        topic = self._image.topics.get(GROUP_METADATA_TOPIC)
        return tuple([(shard.leader, shard.leader_epoch) for shard in topic.partitions]) if topic else ()

    # ---- what the groups need ----------------------------------------------------------------------------------------

    def _needs(self, coordinators: tuple[tuple[int, int], ...]) -> Workflow[Needs | Unknown]:
        nodes = sorted({leader for leader, _ in coordinators})
        if any(node not in self._image.brokers for node in nodes):
            return Unknown("a group coordinator is not available")
        replies = yield [Send(node, ListGroupsRequest()) for node in nodes]
        asked = []
        for node, reply in zip(nodes, replies, strict=True):
            response = reply.response
            if not isinstance(response, ListGroupsResponse) or response.error_code:
                return Unknown(f"broker {node} does not list its groups")
            for group in response.groups:
                ask = _ask_share_group if group.group_type.lower() == "share" else _ask_consumer_group
                asked.append(ask(node, group.group_id))
        found: Needs = {}
        for answer in (yield asked) if asked else ():
            if isinstance(answer, Unknown):
                return answer
            for at, need in answer:
                found.setdefault(at, []).append(need)
        return found


_Answer = list[tuple[TopicPartition, Need]] | Unknown


def _ask_share_group(node: int, group_id: str) -> Workflow[_Answer]:
    """The durable starts of a share group; an error of one keeps its partition."""
    requested = DescribeShareGroupOffsetsRequest.Group(group_id=group_id)
    reply: Reply = yield Send(node, DescribeShareGroupOffsetsRequest(groups=(requested,)))
    groups = reply.response.groups if isinstance(reply.response, DescribeShareGroupOffsetsResponse) else ()
    if not groups or groups[0].error_code:
        return Unknown(f"group {group_id} does not return its offsets")
    found = []
    for topic in groups[0].topics:
        for part in topic.partitions:
            offset = NO_OFFSET if part.error_code else part.start_offset
            reason = f"group {group_id} has no durable start there" if offset == NO_OFFSET else ""
            found.append((TopicPartition(topic.topic_name, part.partition_index), Need(group_id, offset, True, reason)))
    return found


def _ask_consumer_group(node: int, group_id: str) -> Workflow[_Answer]:
    """The commits of a consumer group; one that a transaction may replace keeps its partition."""
    requested = OffsetFetchRequest.Group(group_id=group_id)
    reply: Reply = yield Send(node, OffsetFetchRequest(groups=(requested,), require_stable=True))
    groups = reply.response.groups if isinstance(reply.response, OffsetFetchResponse) else ()
    if not groups or groups[0].error_code:
        return Unknown(f"group {group_id} does not return its offsets")
    found = []
    for topic in groups[0].topics:
        for part in topic.partitions:
            at = TopicPartition(topic.name, part.partition_index)
            if part.error_code:
                found.append((at, Need(group_id, NO_OFFSET, False, f"group {group_id} has a commit under way")))
            elif part.committed_offset != NO_OFFSET:
                found.append((at, Need(group_id, part.committed_offset, False)))
    return found
