"""Members of a classic group: sends their requests and shows the responses as short text, over any transport."""

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
    """The subscription of a consumer, in version 0 of the embedded protocol."""
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def protocols(**given: Iterable[str]) -> tuple[JoinGroupRequest.Protocol, ...]:
    """Protocols with their subscribed topics: `protocols(range=["t1"])`."""
    return tuple(JoinGroupRequest.Protocol(name=name, metadata=subscription(*topics)) for name, topics in given.items())


RANGE = protocols(range=["t1"])


class Members(ABC):
    """Members have short names; `ids`: their member ids. `generation`: that of the last JoinGroup response. `senders`:
    the names that have sent a request."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.ids: dict[str, str] = {}
        self.senders: list[str] = []
        self.generation = -1

    @abstractmethod
    def send_as(self, name: str, request: Request, version: int) -> None:
        """Send a request of member `name`, in this version or in the newest one if that is lower."""

    @abstractmethod
    def responses_to(self, name: str) -> Sequence[Response]:
        """The responses to the last request of member `name`; empty while it waits."""

    @abstractmethod
    def await_response(self, name: str) -> None:
        """Wait for the response of member `name`, if the transport needs time."""

    @abstractmethod
    def ask(self, request: Request, kind: type[R], client: ClientContext = IN_PROCESS) -> R:
        """Send a request of another client; returns the response."""

    @abstractmethod
    def state(self) -> str:
        """The state of the group; "absent" if it does not exist."""

    # ---- requests ----------------------------------------------------------------------------------------------------

    def exchange(self, name: str, request: Request, version: int = NEWEST) -> str:
        """Send a request of member `name`; returns the response as short text, WAITING if there is none yet."""
        if name not in self.senders:
            self.senders.append(name)
        self.send_as(name, request, version)
        return self.response_to(name)

    def response_to(self, name: str) -> str:
        """The response to the last request of member `name` as short text; WAITING if there is none."""
        self.await_response(name)
        self._store_ids()
        answers = self.responses_to(name)
        assert len(answers) <= 1, f"{len(answers)} responses to one request of {name}"
        return self.brief(answers[0]) if answers else WAITING

    def join(
        self,
        name: str,
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
        """JoinGroup, with the stored member id of `name` if it has one."""
        return self.exchange(
            name,
            JoinGroupRequest(
                group_id=self.group_id if group is None else group,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                member_id=self.ids.get(name, "") if member_id is None else member_id,
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocols=given,
            ),
            version,
        )

    def join_as_new(
        self, name: str, *, given: tuple[JoinGroupRequest.Protocol, ...] = RANGE, session_ms: int = 10_000
    ) -> str:
        """JoinGroup without a member id, which returns one, then JoinGroup with it."""
        assert self.join(name, given=given, session_ms=session_ms) == "MEMBER_ID_REQUIRED"
        return self.join(name, given=given, session_ms=session_ms)

    def sync(
        self,
        name: str,
        assignments: Mapping[str, str] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        names: tuple[str | None, str | None] = ("consumer", "range"),
        version: int = NEWEST,
    ) -> str:
        """SyncGroup. `assignments`: of the leader, by short name. `names`: protocol type and protocol name."""
        given = tuple(
            SyncGroupRequest.Assignment(member_id=self.ids[name], assignment=text.encode())
            for name, text in (assignments or {}).items()
        )
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.ids.get(name, name),
            group_instance_id=instance,
            protocol_type=names[0],
            protocol_name=names[1],
            assignments=given,
        )
        return self.exchange(name, request, version)

    def classic_heartbeat(self, name: str, generation: int | None = None, instance: str | None = None) -> str:
        """Heartbeat."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.ids.get(name, name),
            group_instance_id=instance,
        )
        return self.exchange(name, request)

    def leave(self, *names: str) -> str:
        identity = LeaveGroupRequest.MemberIdentity
        members = tuple(identity(member_id=self.ids.get(name, name)) for name in names)
        return self.exchange("leaver", LeaveGroupRequest(group_id=self.group_id, members=members))

    def delete_group(self) -> str:
        response = self.ask(DeleteGroupsRequest(groups_names=(self.group_id,)), DeleteGroupsResponse)
        return response.results[0].error_code.name

    # ---- short text --------------------------------------------------------------------------------------------------

    def _store_ids(self) -> None:
        for name in self.senders:
            for answer in self.responses_to(name):
                if isinstance(answer, JoinGroupResponse) and answer.error_code in (0, Errors.MEMBER_ID_REQUIRED):
                    self.ids[name] = answer.member_id

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
