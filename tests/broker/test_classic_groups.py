"""Classic groups in a cluster, over connections of clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from shareq.broker import Cluster
from shareq.model.actor import IN_PROCESS, ClientContext
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import DescribeGroupsRequest
from shareq.model.messages.cluster import FindCoordinatorRequest
from tests.broker.requester import Requester
from tests.coordinator.groups.members import WAITING, Members, R


class ClusterMembers(Members):
    """All members send over one connection; time passes only by `cluster.advance`."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("g")
        self.requester = Requester(cluster)
        self.last: dict[str, int] = {}
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        while self.requester.ask(find, 6).coordinators[0].error_code:
            cluster.advance(10)

    def send_as(self, name: str, request: Request, version: int) -> None:
        self.last[name] = self.requester.send(request, version)

    def responses_to(self, name: str) -> Sequence[Response]:
        call_id = self.last[name]
        return [self.requester.response(call_id)] if self.requester.answered(call_id) else []

    def await_response(self, name: str) -> None:
        self.requester.cluster.advance(0)

    def ask(self, request: Request, kind: type[R], client: ClientContext = IN_PROCESS) -> R:
        response = self.requester.ask(request, client.api_version)
        assert isinstance(response, kind)
        return response

    def state(self) -> str:
        described = self.requester.ask(DescribeGroupsRequest(groups=("g",)), 5).groups[0]
        return str(described.group_state)


@pytest.fixture
def members() -> Iterator[ClusterMembers]:
    with Cluster(brokers=1, seed=1) as cluster:
        yield ClusterMembers(cluster)


def test_member_joins_after_the_only_member_left_within_the_initial_delay(members: ClusterMembers) -> None:
    assert members.join_as_new("A") == WAITING
    members.requester.cluster.advance(500)
    assert members.leave("A") == "NONE"
    assert members.state() == "PreparingRebalance"
    assert members.join_as_new("B") == WAITING
    members.requester.cluster.advance(6000)
    assert members.response_to("B") == "1 range leads B"
