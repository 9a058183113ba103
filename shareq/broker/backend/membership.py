"""This process as a member of the group of processes on the backend, a classic group of Kafka. BEHAVIOUR.md, section 6.

The group's leader forms a `Fleet` of all members, and every member gets it. A member that stops for longer than its
lease leads nothing until the group has confirmed that it still is a member.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from shareq.broker.backend.identity import Identity, has_ended
from shareq.broker.backend.lease import REBALANCE_MS, SESSION_MS, Lease
from shareq.broker.backend.processes import (
    NO_LISTENERS,
    NO_SLOT,
    Fleet,
    Listeners,
    Process,
    decode_fleet,
    decode_process,
    formed,
)
from shareq.model.actor import Answer
from shareq.model.errors import Errors
from shareq.model.image import Addresses
from shareq.model.messages.base import Request
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse

_log = logging.getLogger("shareq.backend")

GROUP_ID = "shareq-processes"
PROTOCOL_TYPE = "shareq"
PROTOCOL = "shareq-1"

HEARTBEAT_MS = 1_000
RETRY_MS = 100

JOIN_TIMEOUT_MS = REBALANCE_MS + SESSION_MS
"""How long a JoinGroup waits for its response: other members may have to be removed first."""

CALL_TIMEOUT_MS = 2_000

JOINS, BEATS = "group-join", "group-heartbeat"
"""The lanes: a JoinGroup waits at the backend, and heartbeats must not wait for it."""


class Client(Protocol):
    """What a member needs of `BackendClient`; `later` is in real time."""

    def call(
        self, node: int, request: Request, done: Callable[[Answer], object], *, lane: str, timeout_ms: int
    ) -> None: ...
    def call_any(self, request: Request, done: Callable[[Answer], object]) -> None: ...
    def later(self, delay_ms: float, call: Callable[[], object]) -> None: ...


class Membership:
    """Joins the group with `start()`, and stays in it until `leave()`.

    `assigned(fleet)` is called with each assignment, and `lost()` when the group has removed this process, which then
    joins again. `draw_term(done)` finds the term of a new fleet, for the group's leader.
    """

    def __init__(
        self,
        client: Client,
        process_id: str,
        *,
        draw_term: Callable[[Callable[[int], object]], object],
        assigned: Callable[[Fleet], object],
        lost: Callable[[], object],
        lease: Lease | None = None,
        identity: Identity | None = None,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.process = Process(process_id, identity=identity, configs=configs)
        self.lease = lease or Lease()
        self.trouble = ""
        """Why the last attempt to join failed; empty if it did not."""
        self.left = True
        self._client = client
        self._draw_term = draw_term
        self._assigned = assigned
        self._lost = lost
        self._member_id = ""
        self._generation = -1
        self._node = -1
        self._round = 0
        """The number of the attempt to join; answers to former attempts are ignored."""
        self._joining = self._again = self._closed = False
        self._beat_ms: float | None = None
        """When the heartbeat that has no answer yet was sent."""
        self._fleet: Fleet | None = None
        self._waiting: list[Callable[[], object]] = []

    # ---- for the process ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Join the group, and begin to send heartbeats."""
        self.left = False
        self._join_anew()
        self._client.later(HEARTBEAT_MS, self._beat_regularly)

    def readdress(self, addresses: Addresses, listeners: Listeners = NO_LISTENERS) -> None:
        """Show other addresses to the members."""
        self.process = self.process._replace(addresses=addresses, listeners=listeners)
        if self._generation >= 0:
            self._join_soon()

    def require_term(self, term: int) -> None:
        """The next fleet, which is formed soon, must have at least this term."""
        if term > self.process.least_term:
            self.process = self.process._replace(least_term=term)
            if self._generation >= 0:
                self._join_soon()

    def leave(self) -> None:
        """Leave the group; `left` is True when it has answered."""
        self._closed = True
        self._round += 1
        self._waiting.clear()
        self.lease.end()
        if not self._member_id or self._node < 0:
            self.left = True
            return
        self._leave([self._member_id], "the process ends", self._has_left)

    def _leave(self, members: Iterable[str], reason: str, done: Callable[[Answer], object]) -> None:
        named = LeaveGroupRequest.MemberIdentity
        identities = tuple(named(member_id=member, reason=reason) for member in members)
        self._call(LeaveGroupRequest(group_id=GROUP_ID, members=identities), BEATS, done)

    def _has_left(self, answer: Answer) -> None:
        del answer
        self.left = True

    def when_held(self, call: Callable[[], object]) -> None:
        """Call now if the lease is valid, else as soon as the group has confirmed it. If this process has been removed
        from the group, the call is dropped."""
        if self.lease.valid:
            call()
        else:
            self._waiting.append(call)
            self.confirm()

    def confirm(self) -> None:
        """Ask the group soon whether this process still is a member."""
        if self._beat_ms is None or not self.lease.would_renew(self._beat_ms):
            self._beat()

    def _held(self) -> None:
        """Carry out what has waited for the lease."""
        while self._waiting and self.lease.valid:
            self._waiting.pop(0)()

    # ---- joining -----------------------------------------------------------------------------------------------------

    def _call(self, request: Request, lane: str, done: Callable[[Answer], object], timeout_ms: int = 0) -> None:
        self._client.call(self._node, request, done, lane=lane, timeout_ms=timeout_ms or CALL_TIMEOUT_MS)

    def _of_round(self, done: Callable[..., None]) -> Callable[..., None]:
        """The same call, unless another attempt to join has begun meanwhile."""
        return partial(self._unless_outdated, self._round, done)

    def _unless_outdated(self, begun: int, done: Callable[..., None], *arguments: Any) -> None:
        if begun == self._round and not self._closed:
            done(*arguments)

    def _join_soon(self) -> None:
        """Join the next generation, after the present attempt if there is one."""
        if self._joining:
            self._again = True
        else:
            self._join()

    def _join_anew(self) -> None:
        """Find the coordinator of the group, then join."""
        self._round += 1
        self._joining, self._node = True, -1
        request = FindCoordinatorRequest(key_type=CoordinatorType.GROUP, coordinator_keys=(GROUP_ID,))
        self._client.call_any(request, self._of_round(self._found))

    def _found(self, answer: Answer) -> None:
        response = answer.response
        found = response.coordinators if isinstance(response, FindCoordinatorResponse) else ()
        self._node = next((one.node_id for one in found if not one.error_code), -1)
        if self._node < 0:
            self._failed(found[0].error_code if found else answer.error, answer.reason)
        else:
            self._call(DescribeGroupsRequest(groups=(GROUP_ID,)), JOINS, self._of_round(self._described))

    def _described(self, answer: Answer) -> None:
        """Remove the members that have ended, for which the group would wait; then join. A group that is not stable
        shows no metadata, but the last assignment."""
        groups = answer.response.groups if isinstance(answer.response, DescribeGroupsResponse) else ()
        members = {one.member_id: one for group in groups for one in group.members}
        fleets = [decode_fleet(one.member_assignment) for one in members.values() if one.member_assignment]
        known = {process.member: process for fleet in fleets for process in fleet.processes}
        known |= {name: decode_process(one.member_metadata) for name, one in members.items() if one.member_metadata}
        self._bury({name: process for name, process in known.items() if name in members})
        self._join()

    def _bury(self, members: Mapping[str, Process]) -> None:
        """Let the members of this machine leave whose program has ended: the group need not wait for the end of their
        session. A program that is stopped has not ended."""
        ended = [name for name, process in members.items() if has_ended(process.identity, self.process.identity)]
        if ended:
            self._leave(ended, "the process has ended", lambda _: None)

    def _failed(self, error: Errors, reason: str = "") -> None:
        """Begin again after a pause."""
        self.trouble = f"the group {GROUP_ID} cannot be joined: {reason or error.name}"
        self._client.later(RETRY_MS, self._of_round(self._join_anew))

    def _join(self) -> None:
        self._round += 1
        self._joining, self._again = True, False
        request = JoinGroupRequest(
            group_id=GROUP_ID,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequest.Protocol(name=PROTOCOL, metadata=self.process.encode()),),
        )
        self._call(request, JOINS, self._of_round(self._joined), JOIN_TIMEOUT_MS)

    def _joined(self, answer: Answer) -> None:
        response = answer.response
        if not isinstance(response, JoinGroupResponse):
            self._failed(answer.error, answer.reason)
        elif response.error_code is Errors.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            self._join()
        elif response.error_code is Errors.UNKNOWN_MEMBER_ID:
            self._removed()
        elif response.error_code:
            self._failed(response.error_code)
        else:
            self._member_id, self._generation = response.member_id, response.generation_id
            if response.leader == response.member_id:
                self._draw_term(self._of_round(partial(self._form, response)))
            else:
                self._sync(())

    def _form(self, response: JoinGroupResponse, term: int) -> None:
        """As the group's leader, assign the fleet to all members."""
        members = [decode_process(one.metadata)._replace(member=one.member_id) for one in response.members]
        fleet = formed(term, members).encode()
        assignment = SyncGroupRequest.Assignment
        self._sync(tuple(assignment(member_id=one.member_id, assignment=fleet) for one in response.members))

    def _sync(self, assignments: tuple[SyncGroupRequest.Assignment, ...]) -> None:
        request = SyncGroupRequest(
            group_id=GROUP_ID,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        sent_ms = self.lease.clock()
        self._call(request, JOINS, self._of_round(partial(self._synced, sent_ms)), JOIN_TIMEOUT_MS)

    def _synced(self, sent_ms: float, answer: Answer) -> None:
        response = answer.response
        error = response.error_code if isinstance(response, SyncGroupResponse) else answer.error
        if error in (Errors.REBALANCE_IN_PROGRESS, Errors.ILLEGAL_GENERATION):
            self._join()
        elif error is Errors.UNKNOWN_MEMBER_ID:
            self._removed()
        elif error or not isinstance(response, SyncGroupResponse):
            self._failed(error, answer.reason)
        else:
            self.lease.confirm(sent_ms)
            self._take(decode_fleet(response.assignment))
            self._held()

    def _take(self, fleet: Fleet) -> None:
        """Lead as the fleet has it. If members wait for partitions that others have led until now, the next generation
        is formed at once: then these partitions are free."""
        before = self.process
        self.trouble, self._joining = "", False
        least_term = max(before.least_term, fleet.term + 1)
        self.process = before._replace(slot=fleet.find(before.id).slot, held=fleet.workers, least_term=least_term)
        self._compare(fleet)
        self._fleet = fleet
        self._assigned(fleet)
        if self._again or not (fleet.settled or before.held == fleet.workers):
            self._join()

    def _compare(self, fleet: Fleet) -> None:
        """Warn of each new process that has other configurations: a group's behaviour would depend on its leader."""
        known = {one.id for one in self._fleet.processes} if self._fleet is not None else set()
        for process in fleet.processes:
            if process.id not in known and (keys := self.process.differing(process)):
                _log.warning("the process in slot %s has other configurations: %s", process.slot, ", ".join(keys))

    # ---- staying -----------------------------------------------------------------------------------------------------

    def _beat_regularly(self) -> None:
        if not self._closed:
            self._client.later(HEARTBEAT_MS, self._beat_regularly)
            if self._beat_ms is None:
                self._beat()
            if self._fleet is not None and self._node >= 0:
                self._bury({one.member: one for one in self._fleet.processes})

    def _beat(self) -> None:
        if self._member_id and self._generation >= 0 and self._node >= 0:
            sent_ms = self._beat_ms = self.lease.clock()
            generation = self._generation
            request = HeartbeatRequest(group_id=GROUP_ID, generation_id=generation, member_id=self._member_id)
            self._call(request, BEATS, partial(self._beaten, sent_ms, generation, self._member_id))

    def _beaten(self, sent_ms: float, generation: int, member_id: str, answer: Answer) -> None:
        response = answer.response
        if self._beat_ms == sent_ms:
            self._beat_ms = None
        if self._closed or (generation, member_id) != (self._generation, self._member_id):
            return
        error = response.error_code if isinstance(response, HeartbeatResponse) else answer.error
        if not error:
            self.lease.confirm(sent_ms)
        elif error is Errors.REBALANCE_IN_PROGRESS:
            self.lease.extend(sent_ms)
            if not self._joining:
                self._join()
        elif error is Errors.UNKNOWN_MEMBER_ID:
            self._removed()
        elif not self._joining:  # a broker that does not answer, a coordinator that has moved, a lost response
            self._join_anew()
        self._held()
        if self._waiting and not self._joining and not error:
            self.confirm()

    def _removed(self) -> None:
        """Join as a new member: other processes may lead what this one has led."""
        had = self._generation >= 0
        self.lease.end()
        self._member_id, self._generation, self._beat_ms, self._fleet = "", -1, None, None
        self.process = self.process._replace(slot=NO_SLOT, held=None)
        if had:
            self._waiting.clear()
            self._lost()
        self._join_anew()
