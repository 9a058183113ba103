"""A test environment for consumer groups, with the short text of the share groups' `World`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shareq.coordinator.consumer_group.records import (
    CurrentMemberAssignment,
    MemberMetadata,
    Metadata,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    decode,
)
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.model.actor import IN_PROCESS, ClientContext
from shareq.model.ids import TopicId
from shareq.model.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.share_group.world import GROUP, World

REBALANCE_TIMEOUT_MS = 60_000
NOTHING: tuple[ConsumerGroupHeartbeatRequest.TopicPartitions, ...] = ()


class ConsumerWorld(World):
    """`join` and `next_heartbeat` send heartbeats and return the response as short text: `3 {t1:0,1}` (epoch and
    assignment), `3 null`, or the name of an error."""

    def request(
        self, member: str, epoch: int, topics: Iterable[str] | None = None, owns: str | None = None, **fields: Any
    ) -> ConsumerGroupHeartbeatRequest:
        """`owns`: the owned partitions, such as `t1:0,1 t2:0`; "" for none, None for null."""
        given: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": member,
            "member_epoch": epoch,
            "subscribed_topic_names": None if topics is None else tuple(topics),
            "topic_partitions": None if owns is None else self.partitions(owns),
        }
        return ConsumerGroupHeartbeatRequest(**(given | fields))

    def partitions(self, text: str) -> tuple[ConsumerGroupHeartbeatRequest.TopicPartitions, ...]:
        listed = (part.split(":") for part in text.split())
        return tuple(
            ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.image.topics[name].topic_id, partitions=tuple(map(int, indexes.split(",")))
            )
            for name, indexes in listed
        )

    def exchange(self, request: ConsumerGroupHeartbeatRequest, client: ClientContext = IN_PROCESS) -> str:
        """Send a heartbeat; the response as short text, and in `last_response`."""
        self.last_response = self.ask(request, ConsumerGroupHeartbeatResponse, client)
        if self.last_response.error_code:
            return self.last_response.error_code.name
        if self.last_response.assignment is None:
            return f"{self.last_response.member_epoch} null"
        held = {topic.topic_id: topic.partitions for topic in self.last_response.assignment.topic_partitions}
        return f"{self.last_response.member_epoch} {self.short_assignment(held)}"

    def join(self, member: str, topics: Iterable[str] | None = ("t1",), **fields: Any) -> str:
        """A heartbeat with epoch 0, after the assignment interval."""
        self.wait(1000)
        joining: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "topic_partitions": NOTHING}
        return self.exchange(self.request(member, 0, topics, **(joining | fields)))

    def next_heartbeat(
        self, member: str, epoch: int, topics: Iterable[str] | None = None, owns: str | None = None, **fields: Any
    ) -> str:
        """A heartbeat after the assignment interval."""
        self.wait(1000)
        return self.exchange(self.request(member, epoch, topics, owns, **fields))

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        for _, shard in self.coordinator._runtime.active():
            found = shard.find(ConsumerGroup, group_id)
            if found is not None:
                return found
        raise LookupError(group_id)

    def described(self, group: str = GROUP) -> ConsumerGroupDescribeResponse.DescribedGroup:
        request = ConsumerGroupDescribeRequest(group_ids=(group,))
        return self.ask(request, ConsumerGroupDescribeResponse).groups[0]

    # ---- short text --------------------------------------------------------------------------------------------------

    def short_assignment(self, held: Mapping[TopicId, Iterable[int]]) -> str:
        topics = (f"{self.name(topic_id)}:{','.join(map(str, indexes))}" for topic_id, indexes in held.items())
        return "{" + " ".join(sorted(topics)) + "}"

    def written(self) -> list[str]:
        """The records written since the last call, such as `R3(2)` or `R7T(A)`: type, content, T for a tombstone."""
        records, self._written = self._written, []
        return [self._show(*record) for record in records]

    def _show(self, key: bytes, value_bytes: bytes | None) -> str:
        record = decode(key, value_bytes)
        kind = f"R{int(record.type)}"
        match record.value:
            case None:
                return f"{kind}T({record.name})" if record.name else f"{kind}T"
            case Metadata(epoch, _) | TargetAssignmentMetadata(epoch, _):
                return f"{kind}({epoch})"
            case MemberMetadata(subscribed_topic_names=names, subscribed_topic_regex=regex):
                return f"{kind}({record.name} [{','.join(names)}]{f' /{regex}/' if regex else ''})"
            case TargetAssignmentMember(assignment):
                return f"{kind}({record.name} {self.short_assignment(assignment)})"
            case CurrentMemberAssignment(epoch, previous, state, assigned, revoking):
                going = f" -{self.short_assignment(revoking)}" if revoking else ""
                return f"{kind}({record.name} {epoch}<{previous} {state.name} {self.short_assignment(assigned)}{going})"
            case RegularExpression(topics, _, _):
                return f"{kind}(/{record.name}/ [{','.join(topics)}])"
        raise AssertionError(record)
