"""The leaders that a node's errors name, for a node on virtual time. BEHAVIOUR.md of the backend, section 6.9."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from shareq.broker.backend.leader_hints import UNKNOWN, without_other_processes
from shareq.broker.backend.processes import NODES
from shareq.broker.loop import VirtualLoop
from shareq.leader.share_requests import AcknowledgeResult, acknowledge_response
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.base import Request
from shareq.model.messages.share_fetch import (
    LeaderIdAndEpoch,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.backend.stage import backend_node

Respond = Callable[[int], ShareFetchResponse | ShareAcknowledgeResponse]

TOPIC = TopicId("B" * 22)
EPOCH = 5
HERE = NODES + 1
"""The node of the second process for broker 1. It leads partition 0 of the topic, and not partition 1."""


def image(leader: int) -> ClusterImage:
    nodes = [slot * NODES + broker for slot in (0, 1) for broker in (1, 2)]
    parts = tuple(PartitionImage(leader=one, leader_epoch=EPOCH, replicas=(), isr=()) for one in (HERE, leader))
    topic = TopicImage(name="t", topic_id=TOPIC, partitions=parts)
    brokers = {node: BrokerImage(broker_id=node, host="localhost", port=9000 + node % NODES) for node in nodes}
    return ClusterImage(brokers=brokers, topics={"t": topic}, topics_by_id={TOPIC: topic})


class OneNode:
    """The node HERE, in a cluster in which `leader` leads partition 1; there is no backend."""

    def __init__(self, leader: int) -> None:
        self.loop = VirtualLoop()
        self._answers: list[Any] = []
        nothing: Any = SimpleNamespace(call=lambda *_, **__: None, close_lane=lambda *_: None)
        network: Any = SimpleNamespace(answer=lambda node, exchange, response: self._answers.append(response))
        self._node = backend_node(HERE, nothing, nothing, network, self.loop, view=lambda: nothing)
        self._node.image_changed(image(leader))

    def ask(self, request: Request) -> Any:
        self._node.receive(1, request, ClientContext())
        assert self.loop.wait(lambda: bool(self._answers), 10_000)
        return self._answers.pop()


def fetched(leader: int) -> ShareFetchResponse:
    """The response to a fetch of partition 1."""
    topic = ShareFetchRequest.Topic(topic_id=TOPIC, partitions=(ShareFetchRequest.Partition(partition_index=1),))
    response = OneNode(leader).ask(
        ShareFetchRequest(group_id="g", member_id="m" * 22, share_session_epoch=0, topics=(topic,))
    )
    assert isinstance(response, ShareFetchResponse)
    return response


def acknowledged(leader: int) -> ShareAcknowledgeResponse:
    """The response to an acknowledgement whose state write has shown that `leader` leads partition 1."""
    at = TopicIdPartition(TOPIC, 1)
    refused = AcknowledgeResult(Errors.NOT_LEADER_OR_FOLLOWER)
    response = without_other_processes(acknowledge_response(image(leader), 1_000, {at: refused}), HERE)
    assert isinstance(response, ShareAcknowledgeResponse)
    return response


@pytest.mark.parametrize("respond", [fetched, acknowledged])
@pytest.mark.parametrize(
    "leader",
    [
        pytest.param(1, id="the same broker through another process"),
        pytest.param(2, id="another broker through another process"),
        pytest.param(NO_LEADER, id="none"),
    ],
)
def test_errors_name_no_leader_in_another_process(respond: Respond, leader: int) -> None:
    """Its leader epoch may be one that clients know already: then Java's since 4.4 would stay at the former leader."""
    response = respond(leader)
    (part,) = response.responses[0].partitions
    assert part.error_code is Errors.NOT_LEADER_OR_FOLLOWER
    assert part.current_leader == UNKNOWN
    assert response.node_endpoints == ()


@pytest.mark.parametrize("respond", [fetched, acknowledged])
def test_errors_name_another_broker_through_this_process(respond: Respond) -> None:
    """Its leader epoch is newer than all that clients know of this node."""
    leader = NODES + 2
    response = respond(leader)
    (part,) = response.responses[0].partitions
    assert part.error_code is Errors.NOT_LEADER_OR_FOLLOWER
    assert part.current_leader == LeaderIdAndEpoch(leader_id=leader, leader_epoch=EPOCH)
    assert [one.node_id for one in response.node_endpoints] == [leader]
