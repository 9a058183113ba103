"""Random histories of a classic group: clients join, stop, leave and rejoin; appends fail, the coordinator moves.

The clients react to each response as Kafka's do. After the faults, the live clients are in one stable generation.
"""

import random
import sys

import pytest

from shareq.coordinator.classic_group.state import ClassicGroupState
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.coordinator.groups.members import RANGE
from tests.coordinator.groups.stage import ClassicStage
from tests.coordinator.quiet import check_group_coordinator
from tests.coordinator.share_group.stage import GROUP

FORGETTING = frozenset({Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION})
"""The errors after which a client joins without its member id."""


class Client:
    """The group membership of one consumer. `generation` is -1 without an assignment."""

    def __init__(self, stage: ClassicStage, instance: str | None) -> None:
        self.stage, self.instance = stage, instance
        self.member_id = ""
        self.request_epoch = 0
        self.joined_epoch = sys.maxsize  # of the coordinator that created its member id
        self.generation = -1
        self.waits_for: int | None = None
        self.synced = -1
        self.assigned = ""

    @property
    def name(self) -> str:
        """The name in the leader's assignment: the instance id if static, as the member id may have changed since."""
        return self.instance or self.member_id

    def send(self, request: Request) -> None:
        self.request_epoch = self.stage.epoch
        self.waits_for = self.stage.send(request, ClientContext(client_id="c", api_version=9))

    def act(self) -> None:
        """Handle the response of the last request; without a request under way, join or send a heartbeat."""
        if self.waits_for is None:
            self.join() if self.generation < 0 else self.beat()
            return
        if answer := self.stage.answers.get(self.waits_for):
            self.waits_for = None
            self.take(answer)

    def take(self, answer: Response) -> None:
        match answer:
            case JoinGroupResponse(error_code=Errors.MEMBER_ID_REQUIRED):
                self.member_id = answer.member_id
            case JoinGroupResponse(error_code=Errors.NONE):
                if answer.member_id != self.member_id:
                    self.joined_epoch = self.request_epoch
                self.member_id = answer.member_id
                self.sync(answer)
            case SyncGroupResponse(error_code=Errors.NONE):
                self.assigned = answer.assignment.decode()
                self.generation = self.synced
            case HeartbeatResponse(error_code=Errors.NONE):
                pass
            case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse():
                fenced = answer.error_code is Errors.FENCED_INSTANCE_ID
                # A new member id may be lost in a failover: then the next coordinator has an older id of the instance.
                assert not fenced or self.stage.epoch > self.joined_epoch, "instances are not shared"
                self.generation = -1
                if fenced or answer.error_code in FORGETTING:
                    self.member_id = ""

    def join(self) -> None:
        self.send(
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=20_000,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocols=RANGE,
            )
        )

    def sync(self, joined: JoinGroupResponse) -> None:
        """SyncGroup; the leader assigns each member a text that is unique for the member and the generation."""
        self.synced = joined.generation_id
        names = {member.member_id: member.group_instance_id or member.member_id for member in joined.members}
        given = tuple(
            SyncGroupRequest.Assignment(member_id=member_id, assignment=f"{self.synced}:{name}".encode())
            for member_id, name in names.items()
        )
        self.send(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=() if joined.skip_assignment else given,
            )
        )

    def beat(self) -> None:
        self.send(
            HeartbeatRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
            )
        )

    def leave(self) -> None:
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        self.send(LeaveGroupRequest(group_id=GROUP, members=(identity,)))


class Trial:
    """One run: clients start, stop, rejoin, leave; appends fail, the coordinator moves."""

    def __init__(self, seed: int) -> None:
        self.rng, self.stalls = random.Random(seed), random.Random(seed)
        self.stage = ClassicStage(t1=1, delay_ms=1000)
        self.clients: list[Client] = []
        self.instances = 0

    def disturb(self) -> None:
        pick = self.rng.choice
        match self.rng.randrange(12):
            case 0 | 1 if len(self.clients) < 6:
                self.clients.append(Client(self.stage, None))
            case 2 if len(self.clients) < 6:
                self.instances += 1
                self.clients.append(Client(self.stage, f"i{self.instances}"))
            case 3 if self.clients:
                self.clients.remove(pick(self.clients))
            case 4 if self.clients:
                index = self.rng.randrange(len(self.clients))
                if self.clients[index].instance:
                    self.clients[index] = Client(self.stage, self.clients[index].instance)
            case 5 if self.clients:
                client = pick(self.clients)
                self.clients.remove(client)
                client.leave()
            case 6:
                self.stage.fail_over()
            case 7:
                self.stage.append_error = pick([Errors.NONE, Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR])

    def stall(self) -> None:
        """Hold or release appends."""
        match self.stalls.randrange(8):
            case 0:
                self.stage.appending = False
            case 1 | 2:
                self.stage.release()

    def step(self, duration_ms: int) -> None:
        for client in self.rng.sample(self.clients, len(self.clients)):
            client.act()
        self.stage.wait(duration_ms)
        self.check()

    def check(self) -> None:
        """Each member has the assignment by the leader of its generation; a stable group has a leader among its
        members."""
        for client in self.clients:
            if client.generation >= 0:
                assert client.assigned == f"{client.generation}:{client.name}"
        group = self.stage.find_group()
        if group is not None and group.state is ClassicGroupState.STABLE:
            assert group.leader_id in group.members
            assert not any(member.awaiting_join or member.awaiting_sync for member in group.members.values())

    def settle(self) -> None:
        """End the faults; then the live clients are the members of one stable generation."""
        self.stage.append_error = Errors.NONE
        self.stage.release()
        for _ in range(60):
            self.step(2000)
        check_group_coordinator(self.stage.coordinator)
        living = {client.member_id for client in self.clients}
        group = self.stage.find_group()
        members = set(group.members) if group else set()
        assert members == living
        if living and group:
            assert group.state == "Stable"
            assert {client.generation for client in self.clients} == {group.generation_id}
        assert len({client.member_id for client in self.clients}) == len(self.clients)


@pytest.mark.parametrize("seed", range(40))
def test_live_clients_end_in_one_stable_generation(seed: int) -> None:
    trial = Trial(seed)
    for _ in range(60):
        trial.disturb()
        trial.stall()
        trial.step(trial.rng.choice([0, 300, 2000, 4000]))
    trial.settle()
