"""Requests that the backend does not answer: the connections of share consumers stay, on virtual time. BEHAVIOUR.md of
the backend, 5.3."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shareq.broker.backend.forwarding import View
from shareq.broker.backend.processes import NO_ADDRESSES, Fleet, Process
from shareq.broker.backend.services import Exchanges, Services
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import ANY_NODE, Answer, ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.data import ListOffsetsRequest, ProduceRequest, ProduceResponse
from shareq.model.messages.passed import PassedRequest, PassedResponse
from tests.backend.stage import backend_node

AWAY = Errors.NETWORK_EXCEPTION
CLIENT = ClientContext(connection_id=4)
PLAIN = View(ClusterImage(), Fleet(1, (Process("p", 0, NO_ADDRESSES),)), 0)


class OneNode:
    """A node with a backend that answers each request with the next one of `answers`."""

    def __init__(self, *answers: Response | Errors) -> None:
        self.loop = VirtualLoop()
        self.asked: list[int] = []
        """The brokers, in the order of the requests."""
        self._backend = list(answers)
        self._found: list[Response | Errors] = []
        stub: Any = SimpleNamespace(
            call=self._call,
            has_lane=lambda lane: lane == "client-4",
            close_lane=lambda *_: None,
            answer=lambda node, exchange, response: self._found.append(response),
            fail=lambda node, exchange, error: self._found.append(error),
            image=ClusterImage(),
            place=lambda _: None,
        )
        services = Services(stub, stub, stub, Exchanges(), mirror=stub, ask_leader=lambda *_: None)
        self._node = backend_node(0, stub, services, stub, self.loop, view=lambda: PLAIN)

    def _call(self, node: int, request: Request, done: Any, **options: Any) -> None:
        del request, options
        self.asked.append(node)
        found = self._backend.pop(0)
        answer = Answer(1, None, found) if isinstance(found, Errors) else Answer(1, found)
        self.loop.post(done, answer)

    def ask(self, request: Request) -> Any:
        """The response that the client gets; the error with which its connection ends."""
        self.loop.enter(lambda: self._node.receive(1, request, CLIENT))
        assert self.loop.wait(lambda: bool(self._found), 60_000)
        return self._found.pop()


@pytest.mark.parametrize("kind", [CoordinatorType.GROUP, CoordinatorType.TRANSACTION])
def test_a_coordinator_is_not_available_while_the_backend_does_not_answer(kind: CoordinatorType) -> None:
    """The client asks again by itself, and its connection keeps the share session."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("a", "b"))
    node = OneNode(AWAY, AWAY)
    found = node.ask(request)
    assert node.asked == [0, ANY_NODE]
    assert isinstance(found, FindCoordinatorResponse)
    assert [(one.key, one.node_id, one.error_code) for one in found.coordinators] == [
        (key, -1, Errors.COORDINATOR_NOT_AVAILABLE) for key in ("a", "b")
    ]


def test_a_coordinator_is_looked_up_at_another_broker_if_one_does_not_answer() -> None:
    coordinator = FindCoordinatorResponse.Coordinator(key="a", node_id=1, host="kafka", port=1)
    node = OneNode(AWAY, FindCoordinatorResponse(coordinators=(coordinator,)))
    found = node.ask(FindCoordinatorRequest(key_type=CoordinatorType.TRANSACTION, coordinator_keys=("a",)))
    assert [(one.key, one.node_id) for one in found.coordinators] == [("a", 1)]
    assert node.asked == [0, ANY_NODE]


METADATA = MetadataResponse(brokers=(), cluster_id="", controller_id=0, topics=())


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        pytest.param(MetadataRequest(), METADATA, id="Metadata"),
        *(
            pytest.param(PassedRequest(api_key=key, api_version=0, frame=b""), PassedResponse(frame=b"x"), id=name)
            for key, name in ((71, "GetTelemetrySubscriptions"), (72, "PushTelemetry"))
        ),
    ],
)
def test_what_clients_with_share_sessions_ask_is_sent_again(request_: Request, response: Response) -> None:
    node = OneNode(AWAY, AWAY, response)
    assert type(node.ask(request_)) is type(response)
    assert node.asked == [0, ANY_NODE, ANY_NODE]


@pytest.mark.parametrize("acks", [-1, 1])
def test_records_without_an_answer_are_sent_again_by_their_producer(acks: int) -> None:
    """An end of its connection would be a refused login to a producer that begins."""
    parts = tuple(ProduceRequest.Partition(index=index, records=b"") for index in (0, 2))
    topic = ProduceRequest.Topic(topic_id=TopicId("t-id"), name="t", partitions=parts)
    found = OneNode(AWAY).ask(ProduceRequest(acks=acks, topics=(topic,)))
    assert isinstance(found, ProduceResponse)
    (produced,) = found.responses
    assert (produced.name, produced.topic_id) == ("t", TopicId("t-id"))
    assert [(one.index, one.error_code, one.base_offset) for one in produced.partitions] == [
        (index, Errors.NOT_LEADER_OR_FOLLOWER, -1) for index in (0, 2)
    ]


def test_another_request_ends_the_connection_of_its_client() -> None:
    assert OneNode(AWAY).ask(ListOffsetsRequest(topics=())) is AWAY


def test_a_refusal_ends_the_connection() -> None:
    refused = Errors.UNSUPPORTED_VERSION
    assert OneNode(refused).ask(FindCoordinatorRequest(coordinator_keys=("a",))) is refused
