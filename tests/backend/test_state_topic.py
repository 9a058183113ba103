"""Readers of the state topic on a port of a process on a backend. BEHAVIOUR.md of the backend, 5.6."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin, KafkaException, Producer, ShareConsumer, observe
from shareq.broker.backend.refused_writes import merged, refused_parts
from shareq.broker.backend.state_topic import OURS, answered, asked, joins_session
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC, IN_BACKEND
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.events import DurableStateRead
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, ZERO_TOPIC_ID, TopicId
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from shareq.model.messages.describe import DescribeProducersRequest, DescribeTopicPartitionsRequest
from shareq.model.messages.fetch import FINAL_EPOCH, NO_SESSION, FetchRequest, FetchResponse
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from shareq.model.states import RecordState
from shareq_widgets import strip
from shareq_widgets.show.source import Wishes, find
from tests.kafka.fixtures import Backed
from tests.polling import PATIENCE_S, configure, take
from tests.wire.raw import Raw

AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED
KAFKAS_ID, OURS_ID, GROUPS_ID, CONFIGS_ID = (TopicId(letter * 22) for letter in "KSGC")
GROUPS = IN_BACKEND[GROUP_METADATA_TOPIC]


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


def test_configurations_and_producers_have_the_name_that_was_asked_for() -> None:
    resource = DescribeConfigsRequest.Resource(resource_type=ResourceType.TOPIC, resource_name=SHARE_STATE_TOPIC)
    group = replace(resource, resource_type=ResourceType.GROUP)
    request = DescribeConfigsRequest(resources=(resource, group))
    found: Any = asked(request)
    assert [one.resource_name for one in found.resources] == [OURS, SHARE_STATE_TOPIC]
    results = tuple(
        DescribeConfigsResponse.Result(resource_type=one.resource_type, resource_name=one.resource_name)
        for one in found.resources
    )
    response: Any = answered(request, DescribeConfigsResponse(results=results))
    assert [one.resource_name for one in response.results] == [SHARE_STATE_TOPIC] * 2
    producers = DescribeProducersRequest(
        topics=(DescribeProducersRequest.Topic(name=SHARE_STATE_TOPIC, partition_indexes=(0,)),)
    )
    assert asked(producers).topics[0].name == OURS  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "in_backend"), [(SHARE_STATE_TOPIC, OURS), (OURS, OURS), (GROUPS, GROUPS), ("a", "a")]
)
def test_a_fetch_by_name_reads_what_the_name_means_on_the_port(name: str, in_backend: str) -> None:
    """Up to version 12 of Fetch."""
    request = fetch(name)
    assert asked(request) == fetch(in_backend)
    assert fetched_name(request, in_backend) == name


def fetch(*names: str, forgotten: str = "", session_id: int = 0, session_epoch: int = FINAL_EPOCH) -> FetchRequest:
    topics = tuple(FetchRequest.Topic(topic=name, partitions=()) for name in names)
    left = (FetchRequest.ForgottenTopic(topic=forgotten, partitions=(0,)),) if forgotten else ()
    return FetchRequest(topics=topics, forgotten_topics_data=left, session_id=session_id, session_epoch=session_epoch)


def fetched_name(request: FetchRequest, in_backend: str) -> str:
    response: Any = answered(request, FetchResponse(responses=(FetchResponse.Topic(topic=in_backend, partitions=()),)))
    name: str = response.responses[0].topic
    return name


def test_a_session_of_fetches_has_one_name_of_the_topic() -> None:
    """A later request of a session names only what changes, and its response any topic of the session. So there are no
    sessions with the name in the backend."""
    assert asked(fetch(SHARE_STATE_TOPIC, session_epoch=0)).session_epoch == 0  # type: ignore[attr-defined]
    assert fetched_name(fetch(session_id=7, session_epoch=1), OURS) == SHARE_STATE_TOPIC
    left = fetch(session_id=7, session_epoch=2, forgotten=SHARE_STATE_TOPIC)
    assert asked(left) == fetch(session_id=7, session_epoch=2, forgotten=OURS)
    assert asked(fetch(OURS, session_epoch=0)) == fetch(OURS)
    joining = {
        name: joins_session(fetch(name, session_id=7, session_epoch=1)) for name in (OURS, SHARE_STATE_TOPIC, "")
    }
    assert joining == {OURS: True, SHARE_STATE_TOPIC: False, "": False}
    assert not joins_session(fetch(OURS, session_epoch=FINAL_EPOCH))


# ---- writes ----------------------------------------------------------------------------------------------------------


def image() -> ClusterImage:
    """The image of a process has the coordinators' topics by Kafka's names."""
    ids = {"a": TopicId("A" * 22), SHARE_STATE_TOPIC: OURS_ID, GROUP_METADATA_TOPIC: GROUPS_ID}
    topics = {name: TopicImage(topic_id=topic_id, name=name, partitions=()) for name, topic_id in ids.items()}
    return ClusterImage(topics=topics, topics_by_id={topic.topic_id: topic for topic in topics.values()})


def produced(*topics: tuple[str, TopicId]) -> ProduceRequest:
    make, part = ProduceRequest.Topic, ProduceRequest.Partition(index=0, records=b"")
    return ProduceRequest(topics=tuple(make(name=name, topic_id=id_, partitions=(part,)) for name, id_ in topics))


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param((SHARE_STATE_TOPIC, ZERO_TOPIC_ID), id="Kafka's name"),
        pytest.param(("", OURS_ID), id="its id"),
        pytest.param((OURS, ZERO_TOPIC_ID), id="the name in the backend"),
        pytest.param((GROUP_METADATA_TOPIC, ZERO_TOPIC_ID), id="the groups"),
        pytest.param(("", GROUPS_ID), id="the groups' id"),
        pytest.param((GROUP_CONFIGS_TOPIC, ZERO_TOPIC_ID), id="the configurations"),
        pytest.param(("", CONFIGS_ID), id="the configurations' id"),
        pytest.param((TRANSACTION_STATE_TOPIC, ZERO_TOPIC_ID), id="the transactions"),
    ],
)
def test_clients_write_no_records_to_internal_topics(topic: tuple[str, TopicId]) -> None:
    rest, refusal = refused_parts(produced(topic), image(), CONFIGS_ID)
    assert rest is None
    assert isinstance(refusal, ProduceResponse)
    assert (refusal.responses[0].name, refusal.responses[0].topic_id) == topic
    assert [one.error_code for one in refusal.responses[0].partitions] == [Errors.INVALID_TOPIC_EXCEPTION]


def test_other_topics_of_a_request_are_served() -> None:
    request = produced(("a", ZERO_TOPIC_ID), (SHARE_STATE_TOPIC, ZERO_TOPIC_ID))
    rest, refusal = refused_parts(request, image())
    assert rest == produced(("a", ZERO_TOPIC_ID))
    assert refusal is not None
    served = ProduceResponse(responses=(ProduceResponse.Topic(name="a", partitions=()),))
    assert [one.name for one in merged(request, served, refusal).responses] == ["a", SHARE_STATE_TOPIC]  # type: ignore[attr-defined]
    assert refused_parts(rest, image()) == (rest, None)


CHANGES: list[Callable[[str], Request]] = [
    lambda name: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name=name),)),
    lambda name: CreateTopicsRequest(topics=(CreateTopicsRequest.Topic(name=name),)),
    lambda name: CreatePartitionsRequest(topics=(CreatePartitionsRequest.Topic(name=name, count=9),)),
    lambda name: DeleteRecordsRequest(topics=(deleted_records(name),)),
    lambda name: AlterConfigsRequest(resources=(AlterConfigsRequest.Resource(**of_topic(name)),)),
    lambda name: IncrementalAlterConfigsRequest(resources=(IncrementalAlterConfigsRequest.Resource(**of_topic(name)),)),
]


def of_topic(name: str) -> dict[str, Any]:
    return {"resource_type": ResourceType.TOPIC, "resource_name": name, "configs": ()}


def deleted_records(name: str) -> DeleteRecordsRequest.Topic:
    part = DeleteRecordsRequest.Partition(partition_index=0, offset=1)
    return DeleteRecordsRequest.Topic(name=name, partitions=(part,))


@pytest.mark.parametrize("make", CHANGES, ids=lambda make: type(make("a")).__name__)
def test_the_state_topic_is_changed_by_its_name_in_the_backend_only(make: Callable[[str], Request]) -> None:
    rest, refusal = refused_parts(make(SHARE_STATE_TOPIC), image())
    assert rest is None
    assert "INVALID_TOPIC_EXCEPTION" in repr(refusal)
    assert refused_parts(make(OURS), image()) == (make(OURS), None)


def test_the_state_topic_is_not_deleted_by_its_id() -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(topic_id=OURS_ID),))
    rest, refusal = refused_parts(request, image())
    assert rest is None
    assert isinstance(refusal, DeleteTopicsResponse)
    assert refusal.responses[0].error_code is Errors.INVALID_TOPIC_EXCEPTION


def test_a_client_on_a_port_neither_writes_nor_changes_the_state_topic(
    backed: Backed, fresh: Callable[[str], str]
) -> None:
    conf: dict[str, Any] = {"bootstrap.servers": backed.bootstrap_servers}
    accept_second(backed.bootstrap_servers, fresh("crew"), fresh("orders"))
    reports: list[Any] = []
    producer = confluent_kafka.Producer(conf)
    producer.produce(SHARE_STATE_TOPIC, b"x", partition=0, on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert [error.code() for error in reports] == [Errors.INVALID_TOPIC_EXCEPTION]
    with Admin(conf) as admin:
        found = admin.describe_configs("topic", SHARE_STATE_TOPIC, ["cleanup.policy"])
        assert found["cleanup.policy"].value == "delete"
        before = admin.describe_topics([SHARE_STATE_TOPIC])[SHARE_STATE_TOPIC]
        with pytest.raises(KafkaException) as refused:
            admin.delete_topics([SHARE_STATE_TOPIC]).check()
        assert refused.value.args[0].name() == "INVALID_TOPIC_EXCEPTION"
        assert admin.describe_topics([SHARE_STATE_TOPIC])[SHARE_STATE_TOPIC] == before


def test_a_client_on_a_port_writes_no_configurations_by_the_topics_id(backed: Backed) -> None:
    """Produce has ids since version 13."""
    with Raw(port_of(backed)) as client:
        (topic,) = client.ask(metadata(GROUP_CONFIGS_TOPIC)).topics
        records = encode_batch([(b"g", b"no JSON", (), 0)])
        part = ProduceRequest.Partition(index=0, records=records)
        request = ProduceRequest(topics=(ProduceRequest.Topic(topic_id=topic.topic_id, partitions=(part,)),))
        answer = client.ask(request).responses[0]
    assert answer.topic_id == topic.topic_id
    assert answer.partitions[0].error_code is Errors.INVALID_TOPIC_EXCEPTION


def port_of(backed: Backed) -> int:
    return int(backed.bootstrap_servers.rpartition(":")[2])


# ---- readers ---------------------------------------------------------------------------------------------------------


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


def test_admin_show_and_strip_have_the_states_of_the_groups_that_the_port_serves(
    backed: Backed, fresh: Callable[[str], str]
) -> None:
    topic, group = fresh("orders"), fresh("crew")
    accept_second(backed.bootstrap_servers, group, topic)
    with Admin({"bootstrap.servers": backed.bootstrap_servers}) as admin:
        assert admin.list_share_group_offsets(group).total == 2
    shown = find(backed.bootstrap_servers, Wishes(group=group))
    assert (shown.group, shown.topic, shown.partition) == (group, topic, 0)
    assert shown.lines == (f"source = {backed.bootstrap_servers!r}",)
    pictured = strip(backed.bootstrap_servers, group=group, topic=topic)
    observer: Any = pictured._playback.source
    assert observer.wait(lambda: "✓" in repr(observer.view(topic)), PATIENCE_S)
    pictured.tick()
    assert "SPSO 0 | ◌1 ✓ ◌1 | log end 3" in repr(pictured)
    pictured.close()


@pytest.mark.parametrize("name", [SHARE_STATE_TOPIC, OURS, GROUPS, GROUP_CONFIGS_TOPIC])
def test_internal_topics_are_fetched_by_name(backed: Backed, fresh: Callable[[str], str], name: str) -> None:
    """As Kafka lets clients do, with Fetch before version 13: records that name the group."""
    topic, group = fresh("orders"), fresh("crew")
    accept_second(backed.bootstrap_servers, group, topic)
    with Raw(port_of(backed)) as client:
        (found,) = client.ask(metadata(name)).topics
        parts = tuple(FetchRequest.Partition(partition=p.partition_index, fetch_offset=0) for p in found.partitions)
        request = FetchRequest(topics=(FetchRequest.Topic(topic=name, partitions=parts),))
        (answer,) = client.ask(request, 12).responses
    assert answer.topic == name
    assert [part.error_code for part in answer.partitions] == [Errors.NONE] * len(parts)
    assert any(group.encode() in batch.data for part in answer.partitions for batch in part.records)


def test_a_session_with_the_topics_name_in_the_backend_begins_anew(backed: Backed) -> None:
    with Raw(port_of(backed)) as client:
        part = FetchRequest.Partition(partition=0, fetch_offset=0)
        topic = FetchRequest.Topic(topic=OURS, partitions=(part,))
        begun = client.ask(FetchRequest(topics=(topic,), session_epoch=0), 12)
        joined = client.ask(FetchRequest(topics=(topic,), session_id=7, session_epoch=1), 12)
    assert (begun.error_code, begun.session_id) == (Errors.NONE, NO_SESSION)
    assert [one.topic for one in begun.responses] == [OURS]
    assert joined.error_code is Errors.FETCH_SESSION_ID_NOT_FOUND
