"""A coordinator of one classic group on virtual time, as Kafka's is, and members that may be paused or killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from shareq.broker.backend.identity import Identity
from shareq.broker.backend.lease import Lease
from shareq.broker.backend.membership import Membership
from shareq.broker.backend.processes import Fleet
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import Answer
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
from shareq.model.messages.cluster import FindCoordinatorRequest, FindCoordinatorResponse

Done = Callable[[Response], object]


@dataclass
class Member:
    metadata: bytes
    session_ms: int
    rebalance_ms: int
    deadline_ms: int
    join: Done | None = None
    sync: Done | None = None
    assignment: bytes = b""


class ClassicGroup:
    """The rules of Kafka's GroupMetadataManager for one group, with one protocol."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._members: dict[str, Member] = {}
        self.named: dict[str, int] = {}
        """Those that have got an id and have not joined with it -> when the group forgets them."""
        self._state = "Empty"
        self._leader = ""
        self._last = 0
        self._rebalance_ends_ms = 0
        self.generation = 0

    def handle(self, request: Request, done: Done) -> None:
        kinds: dict[type, Callable[[Any, Done], None]] = {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            DescribeGroupsRequest: self._describe,
        }
        self.expire()
        kinds[type(request)](request, done)

    def expire(self) -> None:
        """Remove the members whose session is over; in a rebalance also those that have not joined in time."""
        now_ms = self._loop.time_ms()
        self.named = {name: end_ms for name, end_ms in self.named.items() if end_ms > now_ms}
        late = self._state == "Preparing" and self._rebalance_ends_ms <= now_ms
        for member_id, member in list(self._members.items()):
            if member.join is None and (late or member.deadline_ms <= now_ms):
                self._remove(member_id)

    def _remove(self, member_id: str) -> None:
        del self._members[member_id]
        if self._state == "Preparing":
            self._complete()
        else:
            self._prepare()

    def _reset(self, member: Member) -> None:
        member.deadline_ms = self._loop.time_ms() + member.session_ms

    def _join(self, request: JoinGroupRequest, done: Done) -> None:
        member_id, metadata = request.member_id, request.protocols[0].metadata

        def refuse(error: Errors, new_id: str = "") -> None:
            done(JoinGroupResponse(error_code=error, member_id=new_id))

        if not member_id:
            self._last += 1
            self.named[f"member-{self._last}"] = self._loop.time_ms() + request.session_timeout_ms
            refuse(Errors.MEMBER_ID_REQUIRED, f"member-{self._last}")
            return
        member = self._members.get(member_id)
        if member is None:
            if member_id not in self.named:
                refuse(Errors.UNKNOWN_MEMBER_ID)
                return
            del self.named[member_id]
            member = Member(b"", request.session_timeout_ms, request.rebalance_timeout_ms, 0)
            self._members[member_id] = member
        same, member.metadata, member.join = member.metadata == metadata, metadata, done
        if self._state == "Preparing":
            self._complete()
        elif same and not (self._state == "Stable" and member_id == self._leader):
            self._reset(member)
            self._joined(member_id, member)
        else:
            self._prepare()

    def _prepare(self) -> None:
        self._state = "Preparing"
        longest_ms = max((member.rebalance_ms for member in self._members.values()), default=0)
        self._rebalance_ends_ms = self._loop.time_ms() + longest_ms
        for member in self._members.values():
            if member.sync is not None:
                sync, member.sync = member.sync, None
                sync(SyncGroupResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
        self._complete()

    def _complete(self) -> None:
        if not self._members:
            self._state = "Empty"
        elif all(member.join is not None for member in self._members.values()):
            self.generation += 1
            self._state = "Completing"
            if self._leader not in self._members:
                self._leader = next(iter(self._members))
            for member_id, member in self._members.items():
                self._reset(member)
                self._joined(member_id, member)

    def _joined(self, member_id: str, member: Member) -> None:
        assert member.join is not None
        join, member.join = member.join, None
        of = JoinGroupResponse.Member
        members = tuple(of(member_id=name, metadata=one.metadata) for name, one in self._members.items())
        join(
            JoinGroupResponse(
                generation_id=self.generation,
                leader=self._leader,
                member_id=member_id,
                members=members if member_id == self._leader else (),
            )
        )

    def _sync(self, request: SyncGroupRequest, done: Done) -> None:
        member = self._members.get(request.member_id)
        if member is None:
            done(SyncGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
        elif request.generation_id != self.generation:
            done(SyncGroupResponse(error_code=Errors.ILLEGAL_GENERATION))
        elif self._state == "Preparing":
            done(SyncGroupResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
        elif self._state == "Stable":
            self._reset(member)
            done(SyncGroupResponse(assignment=member.assignment))
        else:
            member.sync = done
            if request.member_id == self._leader:
                self._state = "Stable"
                for one in request.assignments:
                    self._members[one.member_id].assignment = one.assignment
                for each in self._members.values():
                    if each.sync is not None:
                        sync, each.sync = each.sync, None
                        self._reset(each)
                        sync(SyncGroupResponse(assignment=each.assignment))

    def _heartbeat(self, request: HeartbeatRequest, done: Done) -> None:
        member = self._members.get(request.member_id)
        if member is None:
            done(HeartbeatResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
        elif request.generation_id != self.generation:
            done(HeartbeatResponse(error_code=Errors.ILLEGAL_GENERATION))
        else:
            self._reset(member)
            preparing = self._state == "Preparing"
            done(HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS if preparing else Errors.NONE))

    def _describe(self, request: DescribeGroupsRequest, done: Done) -> None:
        """Metadata are described only of a stable group."""
        of = DescribeGroupsResponse.Member
        stable = self._state == "Stable"
        members = tuple(
            of(
                member_id=name,
                client_id="",
                client_host="",
                member_metadata=one.metadata if stable else b"",
                member_assignment=one.assignment,
            )
            for name, one in self._members.items()
        )
        group = DescribeGroupsResponse.DescribedGroup(
            group_id=request.groups[0], group_state=self._state, protocol_type="shareq", members=members
        )
        done(DescribeGroupsResponse(groups=(group,)))

    def _leave(self, request: LeaveGroupRequest, done: Done) -> None:
        for identity in request.members:
            if identity.member_id in self._members:
                self._remove(identity.member_id)
        done(LeaveGroupResponse())


class Participant:
    """A process: its membership, and the fleet by which it leads. It is the client of its membership, too.

    `lost_messages`: the share of requests that are lost, and that of responses.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        group: ClassicGroup,
        rng: Random,
        name: str,
        terms: list[int],
        *,
        lost_messages: float,
        identity: Identity | None,
        configs: Mapping[str, str],
    ) -> None:
        self.fleet: Fleet | None = None
        self.losses = 0
        self.alive = True
        self._loop = loop
        self._group = group
        self._rng = rng
        self._terms = terms
        self._lost_messages = lost_messages
        self._kept: list[Callable[[], object]] | None = None
        self.membership = Membership(
            self,
            name,
            draw_term=self._draw_term,
            assigned=self._assigned,
            lost=self._lost,
            lease=Lease(lambda: float(loop.time_ms())),
            identity=identity,
            configs=configs,
        )

    def _draw_term(self, done: Callable[[int], object]) -> None:
        self._terms.append(len(self._terms))
        self._after(partial(done, self._terms[-1]))

    def _assigned(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def _lost(self) -> None:
        self.losses += 1
        self.fleet = None

    def leads(self, name: str, partition: int) -> bool:
        """True if the process answers requests to a partition now, or would if it were not paused."""
        fleet, process = self.fleet, self.membership.process
        valid = self.alive and self.membership.lease.valid and fleet is not None
        return valid and fleet is not None and fleet.leader(name, partition) == process.slot

    # ---- faults ------------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        self._kept = self._kept or []

    def resume(self) -> None:
        kept, self._kept = self._kept or [], None
        for call in kept:
            self._run(call)

    def kill(self) -> None:
        self.alive = False

    def _run(self, call: Callable[[], object]) -> None:
        if self._kept is not None:
            self._kept.append(call)
        elif self.alive:
            call()

    # ---- the client --------------------------------------------------------------------------------------------------

    def _after(self, call: Callable[[], object]) -> None:
        """After the time of a message on its way."""
        self._loop.at(self._loop.time_ms() + self._rng.randint(0, 40), lambda: self._run(call))

    def call_any(self, request: Request, done: Callable[[Answer], object]) -> None:
        assert isinstance(request, FindCoordinatorRequest)
        found = FindCoordinatorResponse.Coordinator(key=request.coordinator_keys[0], node_id=7)
        self._after(lambda: done(Answer(0, FindCoordinatorResponse(coordinators=(found,)))))

    def call(
        self, node: int, request: Request, done: Callable[[Answer], object], *, lane: str, timeout_ms: int
    ) -> None:
        """A request that has been sent arrives, also if the process is paused or killed then."""
        assert (node, bool(lane)) == (7, True)
        answered: list[bool] = []

        def settle(answer: Answer) -> None:
            if not answered:
                answered.append(True)
                self._run(lambda: done(answer))

        def arrive() -> None:
            def respond(response: Response) -> None:
                due_ms = self._loop.time_ms() + self._rng.randint(0, 40)
                self._loop.at(due_ms, lambda: settle(Answer(0, response)))

            if self._rng.random() < self._lost_messages:
                settle(Answer(0, None, Errors.NETWORK_EXCEPTION))  # the request is lost
            elif self._rng.random() < self._lost_messages:
                self._group.handle(request, lambda _: settle(Answer(0, None, Errors.NETWORK_EXCEPTION)))
            else:
                self._group.handle(request, respond)

        self._loop.at(self._loop.time_ms() + self._rng.randint(0, 40), arrive)
        self._loop.at(self._loop.time_ms() + timeout_ms, lambda: settle(Answer(0, None, Errors.REQUEST_TIMED_OUT)))

    def later(self, delay_ms: float, call: Callable[[], object]) -> None:
        self._loop.at(self._loop.time_ms() + int(delay_ms), lambda: self._run(call))
