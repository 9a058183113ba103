"""A fetch of a topic that the process does not know yet. BEHAVIOUR.md of the backend, 1.7."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from shareq.broker.loop import VirtualLoop
from shareq.model.actor import ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.share_fetch import ShareFetchRequest
from tests.backend.stage import backend_node

NODE, CONNECTION, TOPIC = 0, 4, TopicId("A" * 22)
BEFORE = ClusterImage(brokers={NODE: BrokerImage(broker_id=NODE, host="localhost", port=9092)})


def known() -> ClusterImage:
    """The image with the topic, which a node leads that is not there."""
    partition = PartitionImage(leader=7, leader_epoch=0, replicas=(), isr=())
    topic = TopicImage(name="t", topic_id=TOPIC, partitions=(partition,))
    return ClusterImage(brokers=BEFORE.brokers, topics={"t": topic}, topics_by_id={TOPIC: topic})


class Late:
    """A node that gets a fetch of the topic before its image has it. `calls`: what waits for the topic."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.calls: list[Callable[[], object]] = []
        self.answers: list[Any] = []
        nothing: Any = SimpleNamespace(call=lambda *_, **__: None, close_lane=lambda *_: None)
        network: Any = SimpleNamespace(
            answer=lambda node, exchange, response: self.answers.append(response),
            fail=lambda node, exchange, error: self.answers.append(error),
        )
        waits = lambda _, call: self.calls.append(call)  # noqa: E731
        self.node = backend_node(NODE, nothing, nothing, network, self.loop, when_known=waits)
        self.node.image_changed(BEFORE)
        part = ShareFetchRequest.Partition(partition_index=0)
        topic = ShareFetchRequest.Topic(topic_id=TOPIC, partitions=(part,))
        fetch = ShareFetchRequest(
            group_id="g", member_id="m" * 22, share_session_epoch=0, max_wait_ms=0, topics=(topic,)
        )
        self.loop.enter(lambda: self.node.receive(1, fetch, ClientContext(connection_id=CONNECTION)))

    def go_on(self) -> Any:
        """The end of the wait, and the answer."""
        self.loop.enter(self.calls.pop())
        assert self.loop.wait(lambda: bool(self.answers), 10_000)
        return self.answers.pop()


@pytest.mark.parametrize(
    ("image", "error"),
    [
        pytest.param(known(), Errors.NOT_LEADER_OR_FOLLOWER, id="the image has it then"),
        pytest.param(BEFORE, Errors.UNKNOWN_TOPIC_ID, id="no broker knows it"),
    ],
)
def test_a_fetch_waits_for_a_topic_that_the_image_lacks(image: ClusterImage, error: Errors) -> None:
    late = Late()
    assert not late.answers
    late.node.image_changed(image)
    (topic,) = late.go_on().responses
    assert [part.error_code for part in topic.partitions] == [error]


def test_a_client_that_has_gone_meanwhile_gets_no_session() -> None:
    late = Late()
    late.loop.enter(lambda: late.node.connection_closed(CONNECTION))
    assert late.answers.pop() is Errors.NETWORK_EXCEPTION
    late.node.image_changed(known())
    late.loop.enter(late.calls.pop())
    assert not late.loop.wait(lambda: bool(late.answers), 10_000)
