"""The test environment of classic and of consumer groups: that of a share group's coordinator, with their requests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shareq.coordinator.classic_group import records as classic_records
from shareq.coordinator.classic_group.state import ClassicGroup
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
from shareq.coordinator.group_coordinator import GroupCoordinator
from shareq.coordinator.offsets import records as offset_records
from shareq.model.actor import (
    IN_PROCESS,
    Answer,
    Appended,
    AppendRecords,
    Call,
    ClientContext,
    Effect,
    EndMarker,
    MarkerWritten,
    Message,
    ReadRecords,
    RecordsRead,
)
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from shareq.model.messages.cluster import (
    ListGroupsRequest,
    ListGroupsResponse,
)
from shareq.model.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from shareq.model.messages.share_group import MemberAssignment
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from shareq.model.records import CoordinatorRecord
from tests.coordinator.groups.members import Members
from tests.coordinator.share_group.stage import BROKER, GROUP, SHARDS, Stage

REBALANCE_TIMEOUT_MS = 60_000
NOTHING: tuple[MemberAssignment.TopicPartitions, ...] = ()


class ClassicStage(Stage, Members):
    """Members send their requests directly to the coordinator.

    `transaction_error` and `refusing`: the errors of the partitions and of the whole response with which the
    transaction coordinator answers; it does not answer while `verifying` is False. `verifications`: the transactions in
    its requests.
    """

    def __init__(self, *, configs: Mapping[str, object] | None = None, delay_ms: int = 0, **topics: int) -> None:
        Members.__init__(self, GROUP)
        self.last: dict[str, int] = {}
        self.producers: dict[int, dict[int, int]] = {partition: {} for partition in range(SHARDS)}
        self.markers: dict[int, list[EndMarker]] = {partition: [] for partition in range(SHARDS)}
        self.transaction_error = Errors.NONE
        self.refusing = Errors.NONE
        self.verifying = True
        self.verifications: list[AddPartitionsToTxnRequest.Transaction] = []
        Stage.__init__(
            self, configs={"group.initial.rebalance.delay.ms": delay_ms, **(configs or {})}, traced=True, **topics
        )

    def new_coordinator(self) -> GroupCoordinator:
        """Each coordinator has another seed, so that no two create the same member ids."""
        return GroupCoordinator(BROKER, random.Random(self.rng.random()), traced=self.traced)

    # ---- transactions ------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> Iterable[Message]:
        match effect:
            case Call(request=AddPartitionsToTxnRequest()) if not self.verifying:
                self.held.append(effect)
            case Call(call_id, _, AddPartitionsToTxnRequest() as request):
                self.calls.append(effect)
                yield Answer(call_id, self._verify(request))
            case ReadRecords(read_id, at, offset):
                stored = self.logs[at.partition]
                chunk = [(i, *stored[i]) for i in range(offset, len(stored)) if stored[i].key]
                producers, markers = self.producers[at.partition], self.markers[at.partition]
                yield RecordsRead(read_id, Errors.NONE, chunk, len(stored), True, producers, markers)
            case _:
                yield from super().perform(effect)

    def _verify(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        transaction = request.transactions[0]
        self.verifications.append(transaction)
        answer = AddPartitionsToTxnResponse
        if self.refusing:
            return answer(error_code=self.refusing)
        topics = tuple(
            answer.Topic(
                name=topic.name,
                results_by_partition=tuple(
                    answer.Partition(partition_index=index, partition_error_code=self.transaction_error)
                    for index in topic.partitions
                ),
            )
            for topic in transaction.topics
        )
        result = answer.Transaction(transactional_id=transaction.transactional_id, topic_results=topics)
        return answer(results_by_transaction=(result,))

    def append(self, effect: AppendRecords, error: Errors) -> Appended:
        done = super().append(effect, error)
        if effect.producer_id != -1 and not done.error:
            offsets = range(done.base_offset, done.base_offset + len(effect.records))
            self.producers[effect.topic_partition.partition].update(dict.fromkeys(offsets, effect.producer_id))
        return done

    def release(self) -> None:
        self.verifying = True
        super().release()

    def end_transaction(self, producer_id: int, *, committed: bool, group: str = GROUP) -> None:
        """Write a marker to the group's partition, and report it to the coordinator."""
        partition = self.shard_of(group)
        log = self.logs[partition]
        self.markers[partition].append(EndMarker(len(log), producer_id, committed))
        log.append(CoordinatorRecord(b"", None))
        self.handle(MarkerWritten(partition, producer_id, committed))

    # ---- requests of members -----------------------------------------------------------------------------------------

    def send_as(self, name: str, request: Request, version: int) -> None:
        self.last[name] = self.send(request, ClientContext(client_id=name.lower(), api_version=version))

    def await_response(self, name: str) -> None:
        """Nothing to wait for: the coordinator has answered if it can."""

    def responses_to(self, name: str) -> Sequence[Response]:
        return [self.answers[id_]] if (id_ := self.last[name]) in self.answers else []

    def form_group(self, *names: str) -> None:
        """Form a stable group of new members; the first one leads, and each is assigned its own name."""
        for name in names:
            self.join_as_new(name)
        self.wait(0)
        for name in names:
            self.response_to(name)
        self.sync_all(*names)

    def sync_all(self, *names: str) -> None:
        """SyncGroup of all members, the leader last; each is assigned its own name."""
        leader = self.name_of(self.group.leader_id or "")
        for name in sorted(names, key=lambda name: name == leader):
            self.sync(name, {each: each for each in names} if name == leader else None)
        assert self.group.state == "Stable"

    # ---- state -------------------------------------------------------------------------------------------------------

    @property
    def group(self) -> ClassicGroup:
        group = self.find_group()
        assert group is not None
        return group

    def find_group(self, group: str = GROUP) -> ClassicGroup | None:
        shard = self.coordinator._runtime.shard(self.shard_of(group))
        assert shard is not None
        return shard.find(ClassicGroup, group)

    def state(self) -> str:
        group = self.find_group()
        return str(group.state) if group else "absent"

    def describe_classic(self, group: str = GROUP, version: int = 6) -> DescribeGroupsResponse.DescribedGroup:
        request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=True)
        return self.ask(request, DescribeGroupsResponse, ClientContext(api_version=version)).groups[0]

    def listed(self, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
        response = self.ask(ListGroupsRequest(states_filter=states, types_filter=types), ListGroupsResponse)
        return sorted(f"{g.group_id} {g.group_type} {g.protocol_type} {g.group_state}" for g in response.groups)

    # ---- records -----------------------------------------------------------------------------------------------------

    def written(self) -> list[str]:
        """The records written since the last call: `Empty 0`, `Stable 1 A,B`, `t1-0=5`, tombstones with a T."""
        records, self._written = self._written, []
        return [self._brief_record(record) for record in records]

    def _brief_record(self, record: CoordinatorRecord) -> str:
        kind = int.from_bytes(record.key[:2], "big")
        if kind == classic_records.GROUP_METADATA:
            _, group = classic_records.decode(*record)
            if group is None:
                return "groupT"
            members = self.names(member.member_id for member in group.members)
            return f"Stable {group.generation} {members}" if members else f"Empty {group.generation}"
        if kind == offset_records.OFFSET_COMMIT:
            key, commit = offset_records.decode(*record)
            return f"{key.topic}-{key.partition}" + (f"={commit.offset}" if commit else "T")
        return f"R{kind}" + ("T" if record.value is None else "")


class ConsumerStage(Stage):
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

    def partitions(self, text: str) -> tuple[MemberAssignment.TopicPartitions, ...]:
        listed = (part.split(":") for part in text.split())
        return tuple(
            MemberAssignment.TopicPartitions(
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
