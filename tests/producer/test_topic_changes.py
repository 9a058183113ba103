"""Topics that change while a producer uses them: recreated smaller, grown, refused. BEHAVIOUR.md, 8 and 12."""

from __future__ import annotations

from typing import Any

import pytest

from shareq import Admin, Cluster, Producer
from shareq.admin import NewTopic
from shareq.model.errors import Errors, KafkaError
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from tests.client.fake import Fake, topic_id
from tests.producer.stage import FakeLeader, Reports, setup


def recreate(fake: Fake, partitions: int) -> None:
    fake.topics["t"], fake.ids["t"] = [1] * partitions, topic_id("t2")


def refusing_the_former_id(leader: FakeLeader) -> Any:
    """A broker that refuses the topic's former id."""

    def produce(fake: Fake, node: int, request: ProduceRequest) -> Any:
        current = request.topics[0].topic_id == fake.ids["t"]
        return leader.produce(fake, node, request) if current else Errors.UNKNOWN_TOPIC_ID

    return produce


@pytest.mark.parametrize("in_flight", [False, True], ids=["produced afterwards", "in flight meanwhile"])
def test_records_go_to_the_remaining_partitions(in_flight: bool) -> None:
    fake, leader, producer = setup(leaders=[1, 1, 1, 1])
    producer.produce("t", "a")
    producer.flush()
    reports = Reports()
    fake.answers[ProduceRequest] = refusing_the_former_id(leader)
    if not in_flight:
        recreate(fake, 1)
    for number in range(40):
        producer.produce("t", str(number), str(number), on_delivery=reports)
    if in_flight:
        fake.answers[ProduceRequest] = lambda *_: None
        fake.run(timeout_ms=10)
        recreate(fake, 1)
        fake.answers[ProduceRequest] = refusing_the_former_id(leader)
        fake.reply(fake.pending(ProduceRequest).call_id, Errors.UNKNOWN_TOPIC_ID)
    assert producer.flush() == 0
    assert len(leader.values(0)) == 40
    assert {(code, partition) for code, partition, _ in reports} == {(None, 0)}
    assert fake.now_ms - 1_000_000 < 5000


def test_a_record_for_a_removed_partition_fails() -> None:
    fake, leader, producer = setup(leaders=[1, 1], message_timeout_ms=300_000)
    reports = Reports()
    producer.produce("t", "a", partition=1, on_delivery=reports)
    producer.flush()
    recreate(fake, 1)
    fake.answers[ProduceRequest] = refusing_the_former_id(leader)
    producer.produce("t", "b", partition=1, on_delivery=reports)
    assert producer.flush() == 0
    assert [code for code, _, _ in reports] == [None, KafkaError._UNKNOWN_PARTITION]
    assert fake.now_ms - 1_000_000 < 5000


def test_fewer_partitions_with_the_same_topic_id_are_ignored() -> None:
    fake, leader, producer = setup(leaders=[1, 1])
    producer.produce("t", "a", partition=1)
    producer.flush()
    fake.topics["t"] = [1]
    producer._core._metadata.want_names(["t"])
    fake.run(timeout_ms=1000)
    producer.produce("t", "b", partition=1)
    assert producer.flush(1) == 1
    fake.topics["t"] = [1, 1]
    assert producer.flush() == 0
    assert leader.values(1) == [b"a", b"b"]


def test_added_partitions_are_found_at_the_refresh_interval() -> None:
    fake, leader, producer = setup(topic_metadata_refresh_interval_ms=10_000)
    producer.produce("t", "a", "k")
    producer.flush()
    fake.topics["t"] = [1] * 8
    fake.run(timeout_ms=9_000)
    for number in range(40):
        producer.produce("t", "b", str(number))
    producer.flush()
    assert {partition for _, partition in leader.logs} == {0}
    fake.run(timeout_ms=1_100)
    for number in range(40):
        producer.produce("t", "c", str(number))
    producer.flush()
    assert {partition for _, partition in leader.logs} == set(range(8))


@pytest.mark.parametrize("interval_ms", [-1, 0])
def test_without_a_refresh_interval_topics_are_not_looked_up_again(interval_ms: int) -> None:
    fake, _, producer = setup(topic_metadata_refresh_interval_ms=interval_ms)
    producer.produce("t", "a")
    producer.flush()
    fake.run(timeout_ms=3_600_000)
    assert len(fake.requests(MetadataRequest)) == 1


def test_a_refused_topic_fails_its_records() -> None:
    fake, _, producer = setup()
    metadata = fake.answers[MetadataRequest]

    def refuse(fake: Fake, node: int, request: MetadataRequest) -> Any:
        (topic,) = metadata(fake, node, request).topics
        refused = type(topic)(name="t", topic_id=topic.topic_id, error_code=Errors.TOPIC_AUTHORIZATION_FAILED)
        return type(metadata(fake, node, request))(brokers=(), cluster_id="c", controller_id=0, topics=(refused,))

    fake.answers[MetadataRequest] = refuse
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    assert producer.flush() == 0
    assert (reports, fake.now_ms) == ([(Errors.TOPIC_AUTHORIZATION_FAILED, -1, -1001)], 1_000_000)


def test_recreated_and_grown_topics_on_a_cluster() -> None:
    """Through the public API: a topic recreated with one partition, another one grown to eight."""
    with Cluster(brokers=1) as cluster:
        conf = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = Admin(conf)
        admin.create_topics([NewTopic("shrunk", 4), NewTopic("grown", 1)])
        producer = Producer({**conf, "topic.metadata.refresh.interval.ms": 10_000})
        seen: dict[str, set[tuple[str, int]]] = {"shrunk": set(), "grown": set()}

        def report(error: Any, message: Any) -> None:
            seen[message.topic()].add((error.name() if error else "ok", message.partition()))

        def produce() -> int:
            for topic in seen:
                for number in range(40):
                    producer.produce(topic, b"x", str(number), on_delivery=report)
            return producer.flush(60)

        assert produce() == 0
        admin.delete_topics(["shrunk"])
        admin.create_topics([NewTopic("shrunk", 1)])
        admin.create_partitions({"grown": 8})
        cluster.advance(15_000)
        seen["shrunk"].clear()
        assert produce() == 0
        assert seen == {"shrunk": {("ok", 0)}, "grown": {("ok", partition) for partition in range(8)}}
