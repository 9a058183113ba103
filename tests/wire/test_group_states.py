"""The table of classic groups, every request in every state, over TCP: on a shareq cluster and on Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

import pytest

from shareq.model.actor import IN_PROCESS, ClientContext
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import DescribeGroupsRequest, DescribeGroupsResponse, JoinGroupRequest
from shareq.model.messages.cluster import FindCoordinatorRequest
from shareq.model.messages.topics import CreateTopicsRequest
from shareq.wire.apis import API_BY_KEY
from tests.coordinator.groups.classic_table import STATES, TABLE
from tests.coordinator.groups.members import WAITING, Members
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S
from tests.wire.raw import Raw

R = TypeVar("R", bound=Response)
NOT_READY = (Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR)

SESSION_MS, LONG_MS = 10_000, 1_000_000
"""Session timeout of the table's members in ms, and the longer one here: no member may expire on the wall clock."""

LEFT_BEHIND = {("join: no protocols", "absent"): "Empty"}
"""Steps that leave a group of Apache Kafka in a state that cannot be joined."""


class Wire(Members):
    """Members on their own connections. `expected` is the next response, as a waiting request shows no sign."""

    def __init__(self, bootstrap_servers: str, group_id: str, stack: ExitStack) -> None:
        super().__init__(group_id)
        host, _, port = bootstrap_servers.partition(",")[0].partition(":")
        self.address = int(port), host
        self.stack = stack
        self.expected = ""
        self.others = self._connection("others")
        self.waiting: dict[str, Raw] = {}
        self.come: dict[str, list[Response]] = {}

    def _connection(self, client_id: str) -> Raw:
        return self.stack.enter_context(Raw(*self.address, client_id=client_id))

    def send_as(self, name: str, request: Request, version: int) -> None:
        self.waiting[name] = self._connection(name.lower())
        self.come[name] = []
        if isinstance(request, JoinGroupRequest) and request.session_timeout_ms == SESSION_MS:
            request = replace(request, session_timeout_ms=LONG_MS, rebalance_timeout_ms=LONG_MS)
        self.waiting[name].send(request, min(version, API_BY_KEY[request.API_KEY].max_version))

    def await_response(self, name: str) -> None:
        """Wait for the response; if none is expected, check after a later one has arrived on another connection."""
        if name not in self.waiting:
            return
        if self.expected == WAITING:
            self.state()
        if self.expected != WAITING or not self.waiting[name].silent:
            self.come[name].append(self.waiting.pop(name).receive()[1])

    def responses_to(self, name: str) -> Sequence[Response]:
        return self.come[name]

    def ask(self, request: Request, kind: type[R], client: ClientContext = IN_PROCESS) -> R:
        answer = self.others.ask(request, min(client.api_version, API_BY_KEY[request.API_KEY].max_version))
        assert isinstance(answer, kind)
        return answer

    def state(self) -> str:
        (group,) = self.ask(DescribeGroupsRequest(groups=(self.group_id,)), DescribeGroupsResponse).groups
        return "absent" if group.error_code is Errors.GROUP_ID_NOT_FOUND else group.group_state

    def until(self, state: str) -> None:
        """Wait until the group has this state; requests of other connections can still be in flight."""
        deadline = time.monotonic() + PATIENCE_S
        while (now := self.state()) != state:
            assert time.monotonic() < deadline, f"{now} instead of {state}"

    # ---- the states --------------------------------------------------------------------------------------------------

    def expecting(self, expected: str, send: Callable[[], str]) -> str:
        self.expected = expected
        try:
            return send()
        finally:
            self.expected = ""

    def waits(self, send: Callable[[], str]) -> None:
        assert self.expecting(WAITING, send) == WAITING

    def make(self, state: str) -> None:
        """Bring the group into the state; member C has an id."""
        if state == "absent":
            self.ids = {"A": "a-1", "B": "b-1", "C": "c-1"}
            self.generation = 1
            return
        self.join_as_new("A")
        self.sync("A", {"A": "A"})
        self.join("B")
        self.waits(lambda: self.join("B"))
        self.join("A")
        assert self.response_to("B").endswith("range follows A")
        if state != "CompletingRebalance":
            self.waits(lambda: self.sync("B"))
            assert (self.sync("A", {"A": "A", "B": "B"}), self.response_to("B")) == ("A", "B")
        if state == "PreparingRebalance":
            self.join("D")
            self.waits(lambda: self.join("D"))
        if state == "Empty":
            assert self.leave("A", "B") == "NONE NONE"
        self.join("C")
        self.until(state)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture(scope="session")
def ready() -> set[str]:
    """Brokers that `_make_ready` has prepared."""
    return set()


@pytest.fixture
def wire(broker: Reachable, fresh: Callable[[str], str], stack: ExitStack, ready: set[str]) -> Wire:
    made = Wire(broker.bootstrap_servers, fresh("group"), stack)
    if broker.bootstrap_servers not in ready:
        _make_ready(made)
        ready.add(broker.bootstrap_servers)
    return made


def _make_ready(wire: Wire) -> None:
    """Create the topic of the table and wait until the group coordinator responds."""
    topic = CreateTopicsRequest.Topic(name="t1", num_partitions=2, replication_factor=-1)
    wire.others.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000))
    deadline = time.monotonic() + PATIENCE_S
    while wire.others.ask(FindCoordinatorRequest(coordinator_keys=("g",))).coordinators[0].error_code:
        assert time.monotonic() < deadline
    describe = DescribeGroupsRequest(groups=("g",))
    while wire.ask(describe, DescribeGroupsResponse).groups[0].error_code in NOT_READY:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("request_name", TABLE)
def test_every_request_in_every_state(
    wire: Wire, request: pytest.FixtureRequest, request_name: str, state: str
) -> None:
    send, expected = TABLE[request_name]
    answer, _, goes_to = expected[STATES.index(state)].partition(" > ")
    if answer == WAITING and state in ("absent", "Empty"):
        answer, goes_to = "range leads", "CompletingRebalance"  # shareq does not delay the first rebalance here
    wire.make(state)
    got = wire.expecting(answer, lambda: send(wire))
    if answer.startswith("range"):
        assert f"{wire.generation} {answer}" in got
    else:
        assert got == answer
    kept = LEFT_BEHIND.get((request_name, state)) if "kafka" in request.node.callspec.id else None
    wire.until(kept or goes_to or state)
