"""What members of a classic group ask, and what they are told, in short text; over whatever there is to speak over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from shareq.model.actor import IN_PROCESS, ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from shareq.model.messages.cluster import DeleteGroupsRequest, DeleteGroupsResponse

R = TypeVar("R", bound=Response)

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


class Members(ABC):
    """Members have short names; `ids` has the member ids behind them. `generation` is the last one heard of."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.ids: dict[str, str] = {}
        self.told: list[str] = []
        self.generation = -1

    @abstractmethod
    def send_as(self, who: str, request: Request, version: int) -> None:
        """Send a request of `who`, in this version or the next one below that there is."""

    @abstractmethod
    def heard(self, who: str) -> Sequence[Response]:
        """What has come in answer to the last request of `who`."""

    @abstractmethod
    def listen(self, who: str) -> None:
        """Give the answer time to come, where it needs any."""

    @abstractmethod
    def ask(self, request: Request, kind: type[R], client: ClientContext = IN_PROCESS) -> R:
        """What somebody else asks, and is answered."""

    @abstractmethod
    def state(self) -> str:
        """Where the group stands; "absent" where there is none."""

    # ---- requests ----------------------------------------------------------------------------------------------------

    def tell(self, who: str, request: Request, version: int = NEWEST) -> str:
        """Send a request of `who`; the answer in short, as far as it is there."""
        if who not in self.told:
            self.told.append(who)
        self.send_as(who, request, version)
        return self.said(who)

    def said(self, who: str) -> str:
        """What `who` was answered last, in short."""
        self.listen(who)
        self._learn_ids()
        answers = self.heard(who)
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
        group: str | None = None,
    ) -> str:
        """JoinGroup under the id that `who` has, if any."""
        return self.tell(
            who,
            JoinGroupRequest(
                group_id=self.group_id if group is None else group,
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
            group_id=self.group_id,
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
            group_id=self.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.ids.get(who, who),
            group_instance_id=instance,
        )
        return self.tell(who, request)

    def leave(self, *who: str) -> str:
        identity = LeaveGroupRequest.MemberIdentity
        members = tuple(identity(member_id=self.ids.get(name, name)) for name in who)
        return self.tell("leaver", LeaveGroupRequest(group_id=self.group_id, members=members))

    def delete_group(self) -> str:
        response = self.ask(DeleteGroupsRequest(groups_names=(self.group_id,)), DeleteGroupsResponse)
        return response.results[0].error_code.name

    # ---- in short ----------------------------------------------------------------------------------------------------

    def _learn_ids(self) -> None:
        for who in self.told:
            for answer in self.heard(who):
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
            members = ",".join(sorted(self.name_of(member.member_id) for member in response.members))
            return f"{response.generation_id} {response.protocol_name} leads {members}{skip}"
        assert not response.members
        return f"{response.generation_id} {response.protocol_name} follows {self.name_of(response.leader)}{skip}"

    def name_of(self, member_id: str) -> str:
        return next((name for name, known in self.ids.items() if known == member_id), member_id)

    def names(self, member_ids: Iterable[str]) -> str:
        return ",".join(map(self.name_of, member_ids))
