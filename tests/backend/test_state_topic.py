"""Readers of the state topic on a port of a process on a backend. BEHAVIOUR.md of the backend, 5.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq import Admin, Producer, ShareConsumer, observe
from shareq.broker.backend.state_topic import OURS, answered, asked
from shareq.model.events import DurableStateRead
from shareq.model.ids import SHARE_STATE_TOPIC, TopicId
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.data import ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.describe import DescribeTopicPartitionsRequest
from shareq.model.states import RecordState
from tests.kafka.fixtures import Backed
from tests.polling import PATIENCE_S, configure, take

AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED
KAFKAS_ID, OURS_ID = TopicId("K" * 22), TopicId("S" * 22)


def metadata(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequest.Topic(name=name) for name in names))


def described(**topics: TopicId) -> MetadataResponse:
    found = tuple(MetadataResponse.Topic(name=name, topic_id=topic_id) for name, topic_id in topics.items())
    return MetadataResponse(brokers=(), cluster_id="", controller_id=0, topics=found)


def test_the_name_in_a_request_becomes_that_in_the_backend() -> None:
    assert asked(metadata("a", SHARE_STATE_TOPIC)) == metadata("a", OURS)
    for request in (metadata("a"), MetadataRequest(topics=None), MetadataRequest(topics=())):
        assert asked(request) is request
    offsets = ListOffsetsRequest(topics=(ListOffsetsRequest.Topic(name=SHARE_STATE_TOPIC, partitions=()),))
    assert asked(offsets).topics[0].name == OURS  # type: ignore[attr-defined]
    partitions = DescribeTopicPartitionsRequest(topics=(DescribeTopicPartitionsRequest.Topic(name=SHARE_STATE_TOPIC),))
    assert asked(partitions).topics[0].name == OURS  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(metadata(SHARE_STATE_TOPIC), [(SHARE_STATE_TOPIC, OURS_ID, True)], id="Kafka's name"),
        pytest.param(metadata(OURS), [(OURS, OURS_ID, False)], id="the name in the backend"),
        pytest.param(
            MetadataRequest(topics=(MetadataRequest.Topic(topic_id=OURS_ID),)),
            [(SHARE_STATE_TOPIC, OURS_ID, True)],
            id="its id",
        ),
    ],
)
def test_the_name_in_a_response_is_the_one_that_was_asked_for(request_: MetadataRequest, expected: Any) -> None:
    response: Any = answered(request_, described(**{OURS: OURS_ID}))
    assert [(one.name, one.topic_id, one.is_internal) for one in response.topics] == expected


def test_a_list_of_all_topics_has_one_state_topic() -> None:
    found = described(**{"a": TopicId("A" * 22), SHARE_STATE_TOPIC: KAFKAS_ID, OURS: OURS_ID})
    response: Any = answered(MetadataRequest(topics=None), found)
    assert [(one.name, one.topic_id) for one in response.topics][1:] == [(SHARE_STATE_TOPIC, OURS_ID)]


def test_offsets_have_the_name_that_was_asked_for() -> None:
    offsets = ListOffsetsRequest(topics=(ListOffsetsRequest.Topic(name=SHARE_STATE_TOPIC, partitions=()),))
    found = ListOffsetsResponse(topics=(ListOffsetsResponse.Topic(name=OURS, partitions=()),))
    assert answered(offsets, found).topics[0].name == SHARE_STATE_TOPIC  # type: ignore[attr-defined]


def test_an_observer_reads_the_states_of_the_groups_that_the_port_serves(
    backed: Backed, fresh: Callable[[str], str]
) -> None:
    """The second of three records is accepted. Kafka's own state topic exists, too, and has nothing of the group."""
    topic, group = fresh("orders"), fresh("crew")
    accept_second(backed.kafka.bootstrap_servers, fresh("kafkas"), fresh("bills"))
    accept_second(backed.bootstrap_servers, group, topic)
    with observe(backed.bootstrap_servers, group) as observer:
        assert observer.refresh(PATIENCE_S)
        found = [entry.event for entry in observer.journal.select(DurableStateRead)][-1]
    assert isinstance(found, DurableStateRead)
    assert (found.topic, found.partition, found.spso) == (topic, 0, 0)
    states = [(run.first, run.end, run.state) for run in found.runs]
    assert states == [(0, 1, AVAILABLE), (1, 2, ACKNOWLEDGED), (2, 3, AVAILABLE)]


def accept_second(servers: str, group: str, topic: str) -> None:
    """Let a member of the group accept the second one of three records of a new topic."""
    conf = {"bootstrap.servers": servers}
    with Admin(conf) as admin:
        admin.create_topics([topic]).check()
        configure(admin, group, {"share.auto.offset.reset": "earliest"})
    with Producer(conf) as producer:
        for value in ("a", "b", "c"):
            producer.produce(topic, value)
    with ShareConsumer({**conf, "group.id": group, "share.acknowledgement.mode": "explicit"}) as consumer:
        consumer.subscribe([topic])
        consumer.acknowledge(take(consumer, 3)[1])
        assert set(consumer.commit_sync().values()) == {None}
