"""Topics of the backend while its brokers follow the metadata at their own pace. BEHAVIOUR.md of the backend, 1.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shareq.broker.backend.known_topics import KnownTopics
from shareq.model.actor import Answer
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse

OLD, NEW = TopicId("A" * 22), TopicId("B" * 22)


class Brokers:
    """A stand-in for the backend's brokers, each with metadata of its own: topic name -> id and partitions."""

    def __init__(self, *brokers: int) -> None:
        self.metadata: dict[int, dict[str, tuple[TopicId, int]]] = {broker: {} for broker in brokers}
        self.asked: list[tuple[int, MetadataRequest, Callable[[Answer], Any]]] = []
        self.reports = 0
        self.topics = KnownTopics(self, self.report)

    def report(self) -> None:
        self.reports += 1

    def call(self, node: int, request: Any, done: Callable[[Answer], Any]) -> None:
        self.asked.append((node, request, done))

    def know(self, topics: Mapping[str, tuple[TopicId, int]], *brokers: int) -> None:
        """These brokers' metadata have these topics now."""
        for broker in brokers or self.metadata:
            self.metadata[broker] = dict(topics)

    def show(self, broker: int) -> dict[str, tuple[TopicId, int]]:
        """The topics after a response of a broker to a request for all."""
        self.topics.learn(self._response(broker, [self._topic(broker, name) for name in self.metadata[broker]]))
        return self.known

    def answer(self, *silent: int) -> dict[str, tuple[TopicId, int]]:
        """The topics after the brokers have answered all questions, but those that do not answer."""
        asked, self.asked = self.asked, []
        for broker, request, done in asked:
            if broker in silent or broker not in self.metadata:
                done(Answer(1, None, Errors.NETWORK_EXCEPTION))
            else:
                names = {topic_id: name for name, (topic_id, _) in self.metadata[broker].items()}
                assert request.topics is not None
                done(
                    Answer(1, self._response(broker, [self._by_id(broker, t.topic_id, names) for t in request.topics]))
                )
        return self.known

    @property
    def known(self) -> dict[str, tuple[TopicId, int]]:
        return {name: (topic.topic_id, len(topic.partitions)) for name, topic in self.topics.by_name.items()}

    def _by_id(self, broker: int, topic_id: TopicId, names: Mapping[TopicId, str]) -> MetadataResponse.Topic:
        if topic_id in names:
            return self._topic(broker, names[topic_id])
        return MetadataResponse.Topic(name=None, topic_id=topic_id, error_code=Errors.UNKNOWN_TOPIC_ID)

    def _topic(self, broker: int, name: str) -> MetadataResponse.Topic:
        topic_id, count = self.metadata[broker][name]
        partition = MetadataResponse.Partition
        partitions = tuple(partition(partition_index=n, leader_id=1, leader_epoch=0) for n in range(count))
        return MetadataResponse.Topic(name=name, topic_id=topic_id, partitions=partitions)

    def _response(self, broker: int, topics: list[MetadataResponse.Topic]) -> MetadataResponse:
        del broker
        brokers = tuple(MetadataResponse.Broker(node_id=n, host="kafka", port=9092) for n in self.metadata)
        return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=tuple(topics))


def test_a_topic_that_one_broker_does_not_know_yet_stays() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)}, 1)
    assert backend.show(1) == {"t": (OLD, 1)}
    assert backend.show(2) == {"t": (OLD, 1)}
    assert backend.answer() == {"t": (OLD, 1)}
    assert backend.reports == 0


def test_a_topic_is_gone_when_no_broker_knows_it() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    backend.know({})
    assert backend.show(2) == {"t": (OLD, 1)}
    backend.answer()
    assert backend.reports == 1
    assert backend.show(1) == {}


def test_brokers_are_asked_once_at_a_time() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    backend.know({})
    for broker in (1, 2, 1):
        backend.show(broker)
    assert [node for node, *_ in backend.asked] == [1, 2]


def test_a_broker_that_does_not_answer_may_know_the_topic() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    backend.know({}, 1)
    backend.show(1)
    assert backend.answer(2) == {"t": (OLD, 1)}
    assert backend.show(1) == {"t": (OLD, 1)}
    assert backend.answer() == {"t": (OLD, 1)}
    backend.know({}, 2)
    backend.show(2)
    backend.answer()
    assert backend.show(2) == {}


def test_a_broker_that_has_gone_is_not_asked_for_ever() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    del backend.metadata[2]
    backend.know({})
    backend.show(1)
    assert backend.answer() == {"t": (OLD, 1)}
    assert backend.show(1) == {}


def test_a_topic_that_was_created_again_does_not_return_to_its_old_id() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    backend.know({"t": (NEW, 2)}, 1)
    assert backend.show(1) == {"t": (OLD, 1)}
    assert backend.answer() == {"t": (OLD, 1)}
    backend.know({"t": (NEW, 2)}, 2)
    backend.show(2)
    backend.answer()
    assert backend.show(1) == {"t": (NEW, 2)}
    backend.know({"t": (OLD, 1)}, 2)
    assert backend.show(2) == {"t": (NEW, 2)}


def test_added_partitions_stay() -> None:
    backend = Brokers(1, 2)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    backend.know({"t": (OLD, 3)}, 1)
    assert backend.show(1) == {"t": (OLD, 3)}
    assert backend.show(2) == {"t": (OLD, 3)}
    assert backend.asked == []


def test_a_topic_that_has_not_changed_stays_the_same_object() -> None:
    """Its image is not made again."""
    brokers = Brokers(0)
    brokers.know({"kept": (OLD, 2), "grown": (NEW, 2)})
    brokers.show(0)
    before = brokers.topics.by_name
    brokers.know({"kept": (OLD, 2), "grown": (NEW, 3)})
    brokers.show(0)
    assert brokers.topics.by_name["kept"] is before["kept"]
    assert brokers.topics.by_name["grown"] is not before["grown"]


def test_the_only_broker_need_not_be_asked() -> None:
    backend = Brokers(1)
    backend.know({"t": (OLD, 1)})
    backend.show(1)
    backend.know({})
    assert backend.show(1) == {}
    assert backend.asked == []


def test_a_topic_that_no_broker_knows_is_denied_and_one_that_is_silent_may_know_it() -> None:
    backend, denied = Brokers(1, 2), list[frozenset[TopicId]]()
    backend.know({"t": (OLD, 1)}, 2)
    backend.show(2)
    backend.topics.ask([OLD, NEW], denied.append)
    backend.answer()
    assert denied.pop() == {NEW}
    backend.topics.ask([NEW], denied.append)
    backend.answer(1)
    assert denied.pop() == frozenset()
    assert backend.reports == 0, "an id that was never in the metadata is not gone"
