"""The test environment of the default persister: its calls are kept until the test answers them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, cast

from shareq.model.actor import Answer, Call, ImageChanged, Incoming, Message, Respond, Tick
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId, partition_for, topic_id_from_bytes
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.share_state import ReadShareGroupStateRequest, WriteShareGroupStateRequest
from shareq.persister.combined_response import RESPONSES
from shareq.persister.state_topic import StateTopicPersister

TOPIC, OTHER = topic_id_from_bytes(b"T" * 16), topic_id_from_bytes(b"U" * 16)
Read = ReadShareGroupStateRequest
Write = WriteShareGroupStateRequest


def cluster(*leaders: int, brokers: tuple[int, ...] = (1, 2, 3), dead: tuple[int, ...] = ()) -> ClusterImage:
    """An image with a state topic whose partitions are led by `leaders`; without leaders the topic does not exist."""
    partitions = tuple(
        PartitionImage(leader=leader, leader_epoch=0, replicas=(leader,), isr=(leader,)) for leader in leaders
    )
    topic = TopicImage(name=SHARE_STATE_TOPIC, topic_id=topic_id_from_bytes(b"S" * 16), partitions=partitions)
    hosts = {b: BrokerImage(broker_id=b, host=f"b{b}", port=9092, alive=b not in dead) for b in brokers}
    return replace(ClusterImage(brokers=hosts), topics={topic.name: topic} if leaders else {})


def led_by(node: int, leaders: tuple[int, ...] = (1, 2), group: str = "g", topic: TopicId = TOPIC) -> list[int]:
    """Partitions whose state `node` coordinates."""
    return [
        p for p in range(200) if leaders[partition_for(str(SharePartitionKey(group, topic, p)), len(leaders))] == node
    ]


def write(*partitions: int, group: str = "g", topic: TopicId = TOPIC, so: int = 0) -> Write:
    entries = tuple(Write.Partition(partition=p, state_epoch=1, leader_epoch=1, start_offset=so) for p in partitions)
    return Write(group_id=group, topics=(Write.Topic(topic_id=topic, partitions=entries),))


def read(*partitions: int, group: str = "g", topic: TopicId = TOPIC) -> Read:
    entries = tuple(Read.Partition(partition=p, leader_epoch=1) for p in partitions)
    return Read(group_id=group, topics=(Read.Topic(topic_id=topic, partitions=entries),))


def entries(message: Any) -> list[tuple[TopicId, int]]:
    """(topic id, partition) of each entry of a request or response."""
    topics = message.topics if hasattr(message, "topics") else message.results
    return [(topic.topic_id, entry.partition) for topic in topics for entry in topic.partitions]


def codes(response: Any) -> list[tuple[int, Errors]]:
    """(partition, error) of each entry of a response."""
    return [(entry.partition, entry.error_code) for topic in response.results for entry in topic.partitions]


def answer_to(request: Any, error: Errors = Errors.NONE, **failing: Errors) -> Any:
    """A coordinator's response: `error` for every partition, except those given as `p7=Errors...`."""
    response = RESPONSES[type(request)]
    return response(
        results=tuple(
            response.Topic(
                topic_id=topic.topic_id,
                partitions=tuple(
                    response.Partition(partition=e.partition, error_code=failing.get(f"p{e.partition}", error))
                    for e in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


class Stage:
    """Delivers messages to the persister and keeps its calls and responses."""

    def __init__(self, image: ClusterImage, seed: int = 1) -> None:
        self.persister = StateTopicPersister(1, random.Random(seed))
        self.now_ms = 0
        self.calls: list[Call] = []
        self.answers: dict[int, Any] = {}
        self.last_id = 0
        self.send(ImageChanged(image))

    def send(self, message: Message) -> None:
        for effect in self.persister.handle(message, self.now_ms):
            if isinstance(effect, Respond):
                assert effect.id not in self.answers, "a request has a second response"
                self.answers[effect.id] = effect.response
            else:
                assert isinstance(effect, Call)
                self.calls.append(effect)

    def ask(self, request: Request) -> int:
        self.last_id += 1
        self.send(Incoming(self.last_id, request))
        return self.last_id

    def taken(self) -> list[Call]:
        """The calls since the last call of this method."""
        calls, self.calls = self.calls, []
        return calls

    def only(self) -> Call:
        (call,) = self.taken()
        return call

    def reply(self, call: Call, error: Errors = Errors.NONE, **failing: Errors) -> None:
        self.send(Answer(call.id, answer_to(call.request, error, **failing)))

    def lose(self, call: Call, error: Errors) -> None:
        self.send(Answer(call.id, None, error))

    def found(self, call: Call, node: int = -1, error: Errors = Errors.NONE) -> None:
        """Answer a FindCoordinator call."""
        request = cast(FindCoordinatorRequest, call.request)
        (key,) = request.coordinator_keys
        coordinator = FindCoordinatorResponse.Coordinator(key=key, node_id=node, error_code=error)
        self.send(Answer(call.id, FindCoordinatorResponse(coordinators=(coordinator,))))

    def wait(self) -> int:
        """Advance the clock to the next retry; returns the milliseconds that this took."""
        wake_at_ms = self.persister.wake_at_ms
        assert wake_at_ms is not None
        waited, self.now_ms = wake_at_ms - self.now_ms, wake_at_ms
        self.send(Tick())
        return waited
