"""A world for classic groups and committed offsets: members have short names, what they are told is short text."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from shareq.coordinator.group.classic import records as classic_records
from shareq.coordinator.group.classic.state import ClassicGroup
from shareq.coordinator.group.coordinator import GroupCoordinator
from shareq.coordinator.group.offsets import records as offset_records
from shareq.model.actor import (
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
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from shareq.model.messages.cluster import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from shareq.model.records import CoordinatorRecord
from tests.coordinator.group.world import BROKER, GROUP, SHARDS, World

WAITING = "waiting"
NEWEST = 9


def subscription(*topics: str) -> bytes:
    """What a consumer says of itself, in version 0."""
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def protocols(**given: Iterable[str]) -> tuple[JoinGroupRequest.Protocol, ...]:
    """Assignors with the topics subscribed: `protocols(range=["t1"])`."""
    return tuple(JoinGroupRequest.Protocol(name=name, metadata=subscription(*topics)) for name, topics in given.items())


RANGE = protocols(range=["t1"])


class ClassicWorld(World):
    """`ids` has the member ids behind the short names; what is said of ids is said in short names."""

    def __init__(self, *, configs: Mapping[str, object] | None = None, delay_ms: int = 0, **topics: int) -> None:
        self.ids: dict[str, str] = {}
        self.last: dict[str, int] = {}
        self.generation = -1
        self.producers: dict[int, dict[int, int]] = {partition: {} for partition in range(SHARDS)}
        self.markers: dict[int, list[EndMarker]] = {partition: [] for partition in range(SHARDS)}
        self.transaction_error = Errors.NONE
        self.verifications: list[AddPartitionsToTxnRequest.Transaction] = []
        super().__init__(
            configs={"group.initial.rebalance.delay.ms": delay_ms, **(configs or {})}, traced=True, **topics
        )

    def _new_coordinator(self) -> GroupCoordinator:
        """No two coordinators give away the same member ids."""
        return GroupCoordinator(BROKER, random.Random(self.rng.random()), traced=self.traced)

    # ---- transactions ------------------------------------------------------------------------------------------------

    def _carry_out(self, effect: Effect) -> Iterable[Message]:
        match effect:
            case Call(call_id, _, AddPartitionsToTxnRequest() as request):
                self.calls.append(effect)
                yield Answer(call_id, self._verify(request))
            case ReadRecords(read_id, at, offset):
                stored = self.log[at.partition]
                chunk = [(i, *stored[i]) for i in range(offset, len(stored)) if stored[i].key]
                producers, markers = self.producers[at.partition], self.markers[at.partition]
                yield RecordsRead(read_id, Errors.NONE, chunk, len(stored), True, producers, markers)
            case _:
                yield from super()._carry_out(effect)

    def _verify(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        asked = request.transactions[0]
        self.verifications.append(asked)
        answer = AddPartitionsToTxnResponse
        topics = tuple(
            answer.Topic(
                name=topic.name,
                results_by_partition=tuple(
                    answer.Partition(partition_index=index, partition_error_code=self.transaction_error)
                    for index in topic.partitions
                ),
            )
            for topic in asked.topics
        )
        result = answer.Transaction(transactional_id=asked.transactional_id, topic_results=topics)
        return answer(results_by_transaction=(result,))

    def _append(self, effect: AppendRecords) -> Appended:
        done = super()._append(effect)
        if effect.producer_id != -1 and not done.error:
            offsets = range(done.base_offset, done.base_offset + len(effect.records))
            self.producers[effect.topic_partition.partition].update(dict.fromkeys(offsets, effect.producer_id))
        return done

    def end_transaction(self, producer_id: int, *, committed: bool, group: str = GROUP) -> None:
        """The marker is written to the partition of the group, and the coordinator told so."""
        partition = self.shard_of(group)
        self.markers[partition].append(EndMarker(len(self.log[partition]), producer_id, committed))
        self.log[partition].append(CoordinatorRecord(b"", None))
        self.handle(MarkerWritten(partition, producer_id, committed))

    # ---- requests of members -----------------------------------------------------------------------------------------

    def tell(self, who: str, request: Request, version: int = NEWEST) -> str:
        """Send a request of `who`; the answer in short, as far as it is there."""
        self.last[who] = self.send(request, ClientContext(client_id=who.lower(), api_version=version))
        return self.said(who)

    def said(self, who: str) -> str:
        """What `who` was answered last, in short."""
        self._learn_ids()
        answers = self.responses[self.last[who]]
        assert len(answers) <= 1, f"{who} was answered {len(answers)} times"
        return self.brief(answers[0]) if answers else WAITING

    def join(
        self,
        who: str,
        *,
        member_id: str | None = None,
        instance: str | None = None,
        protocol_type: str = "consumer",
        given: tuple[JoinGroupRequest.Protocol, ...] = RANGE,
        version: int = NEWEST,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        group: str = GROUP,
    ) -> str:
        """JoinGroup under the id that `who` has, if any."""
        return self.tell(
            who,
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                member_id=self.ids.get(who, "") if member_id is None else member_id,
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocols=given,
            ),
            version,
        )

    def enter(self, who: str, *, given: tuple[JoinGroupRequest.Protocol, ...] = RANGE, session_ms: int = 10_000) -> str:
        """Ask for a member id, then join with it."""
        assert self.join(who, given=given, session_ms=session_ms) == "MEMBER_ID_REQUIRED"
        return self.join(who, given=given, session_ms=session_ms)

    def sync(
        self,
        who: str,
        assignments: Mapping[str, str] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        names: tuple[str | None, str | None] = ("consumer", "range"),
        version: int = NEWEST,
    ) -> str:
        """SyncGroup; the leader's has assignments by short name."""
        given = tuple(
            SyncGroupRequest.Assignment(member_id=self.ids[name], assignment=text.encode())
            for name, text in (assignments or {}).items()
        )
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation if generation is None else generation,
            member_id=self.ids.get(who, who),
            group_instance_id=instance,
            protocol_type=names[0],
            protocol_name=names[1],
            assignments=given,
        )
        return self.tell(who, request, version)

    def alive(self, who: str, generation: int | None = None, instance: str | None = None) -> str:
        """Heartbeat."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation if generation is None else generation,
            member_id=self.ids.get(who, who),
            group_instance_id=instance,
        )
        return self.tell(who, request)

    def leave(self, *who: str) -> str:
        identity = LeaveGroupRequest.MemberIdentity
        members = tuple(identity(member_id=self.ids.get(name, name)) for name in who)
        return self.tell("leaver", LeaveGroupRequest(group_id=GROUP, members=members))

    def stable(self, *who: str) -> None:
        """These members join, the first one leads; each is assigned its own name."""
        for name in who:
            self.enter(name)
        self.wait(0)
        for name in who:
            self.said(name)
        self.settle(*who)

    def settle(self, *who: str) -> None:
        """All sync, the leader last."""
        leader = self.name_of(self.group.leader_id or "")
        for name in sorted(who, key=lambda name: name == leader):
            self.sync(name, {name: name for name in who} if name == leader else None)
        assert self.group.state == "Stable"

    # ---- what is seen ------------------------------------------------------------------------------------------------

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

    def name_of(self, member_id: str) -> str:
        return next((name for name, known in self.ids.items() if known == member_id), member_id)

    def names(self, member_ids: Iterable[str]) -> str:
        return ",".join(map(self.name_of, member_ids))

    def describe_classic(self, group: str = GROUP, version: int = 6) -> DescribeGroupsResponse.DescribedGroup:
        request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=True)
        return self.ask(request, DescribeGroupsResponse, ClientContext(api_version=version)).groups[0]

    def listed(self, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
        response = self.ask(ListGroupsRequest(states_filter=states, types_filter=types), ListGroupsResponse)
        return sorted(f"{g.group_id} {g.group_type} {g.protocol_type} {g.group_state}" for g in response.groups)

    def delete_group(self, group: str = GROUP) -> str:
        response = self.ask(DeleteGroupsRequest(groups_names=(group,)), DeleteGroupsResponse)
        return response.results[0].error_code.name

    # ---- in short ----------------------------------------------------------------------------------------------------

    def _learn_ids(self) -> None:
        for who, request_id in self.last.items():
            for answer in self.responses[request_id]:
                if isinstance(answer, JoinGroupResponse) and answer.error_code in (0, Errors.MEMBER_ID_REQUIRED):
                    self.ids[who] = answer.member_id

    def brief(self, response: Response) -> str:
        match response:
            case JoinGroupResponse():
                return self._brief_join(response)
            case SyncGroupResponse():
                return response.error_code.name if response.error_code else response.assignment.decode() or "nothing"
            case HeartbeatResponse():
                return response.error_code.name
            case LeaveGroupResponse():
                members = " ".join(member.error_code.name for member in response.members)
                return members if not response.error_code else response.error_code.name
        raise AssertionError(response)

    def _brief_join(self, response: JoinGroupResponse) -> str:
        if response.error_code:
            return response.error_code.name
        self.generation = response.generation_id
        skip = ", skip" if response.skip_assignment else ""
        if response.leader == response.member_id:
            members = self.names(member.member_id for member in response.members)
            return f"{response.generation_id} {response.protocol_name} leads {members}{skip}"
        assert not response.members
        return f"{response.generation_id} {response.protocol_name} follows {self.name_of(response.leader)}{skip}"

    def written(self) -> list[str]:
        """The records written since the last question: `Empty 0`, `Stable 1 A,B`, `t1-0=5`, tombstones with a T."""
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
