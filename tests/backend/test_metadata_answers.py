"""The leaders that a process names while it may have been removed from the group, on virtual time. BEHAVIOUR.md of the
backend, 6.5."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from shareq.broker.backend.forwarding import View
from shareq.broker.backend.processes import Fleet, Process, node_id, owner
from shareq.broker.backend.services import Exchanges, Services
from shareq.broker.loop import VirtualLoop
from shareq.model.actor import Answer, ClientContext
from shareq.model.ids import TopicId
from shareq.model.image import BrokerImage, ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.data import ListOffsetsRequest, ListOffsetsResponse
from tests.backend.stage import backend_node

HOME = {0: ("127.0.0.1", 9192)}
PARTITION = MetadataResponse.Partition(partition_index=0, leader_id=0, leader_epoch=3, replica_nodes=(0,))
METADATA = MetadataResponse(
    brokers=(MetadataResponse.Broker(node_id=0, host="kafka", port=9092),),
    cluster_id="c",
    controller_id=0,
    topics=(MetadataResponse.Topic(name="t", topic_id=TopicId("t-id"), partitions=(PARTITION,)),),
)


def view(*slots: int) -> View:
    """What the processes in these slots show."""
    fleet = Fleet(1, tuple(Process(f"p{slot}", slot, HOME) for slot in slots))
    nodes = [BrokerImage(broker_id=node_id(slot, 0), host="127.0.0.1", port=9192 + slot) for slot in slots]
    return View(ClusterImage(brokers={node.broker_id: node for node in nodes}), fleet, slots[0])


class Paused:
    """A node of a process that continues after a pause: the backend answers it, and its lease has ended."""

    def __init__(self, response: Response) -> None:
        self.view = view(0, 1, 2)
        self.waiting: list[Callable[[], object]] = []
        """What waits for the lease."""
        self.answers: list[Any] = []
        self.loop = VirtualLoop()
        stub: Any = SimpleNamespace(
            call=lambda node, request, done, **_: self.loop.post(done, Answer(1, response)),
            answer=lambda node, exchange, found: self.answers.append(found),
            image=ClusterImage(),
            place=lambda _: None,
        )
        services = Services(stub, stub, stub, Exchanges(), mirror=stub, ask_leader=lambda *_: None)
        more = {"view": lambda: self.view, "when_held": self.waiting.append}
        self._node = backend_node(0, stub, services, stub, self.loop, **more)

    def ask(self, request: Request) -> list[Any]:
        """The answers within ten seconds."""
        self.loop.enter(lambda: self._node.receive(1, request, ClientContext()))
        self.loop.wait(lambda: bool(self.answers), 10_000)
        return self.answers


def test_metadata_wait_until_the_group_confirms_the_process() -> None:
    """A client that gets the leaders of a former fleet and those of the present one in one moment may stay at a former
    leader: librdkafka 2.16 does, until it asks for the metadata again after five minutes."""
    former = owner("t", 0, (0, 1, 2))
    present = tuple(slot for slot in (0, 1, 2) if slot != former)
    paused = Paused(METADATA)
    assert paused.ask(MetadataRequest()) == []
    paused.view = view(*present)
    for call in paused.waiting:
        call()
    (found,) = paused.answers
    assert found.topics[0].partitions[0].leader_id == node_id(owner("t", 0, present), 0)
    assert [broker.node_id for broker in found.brokers] == [node_id(slot, 0) for slot in present]


def test_other_answers_of_the_backend_do_not_wait() -> None:
    assert Paused(ListOffsetsResponse()).ask(ListOffsetsRequest(topics=())) == [ListOffsetsResponse()]
