"""A cluster's persister, and the state topic that it leaves behind. BEHAVIOUR.md of the persister, 1, 13 to 15."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.log.records import decode, decode_key_values
from shareq.model.errors import ConfigException, Errors, KafkaException
from shareq.model.events import CoordinatorLoaded, StateRecordWritten
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_state import ReadShareGroupStateSummaryRequest
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign
from shareq.model.states import AcknowledgeType, IsolationLevel
from shareq.producer import Producer
from tests.broker.probe import Probe
from tests.broker.requester import Requester

SMALL = {"share.coordinator.state.topic.num.partitions": 1, "share.coordinator.state.topic.segment.bytes": 500}
ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE


def prepared(persister: str, latency_ms: int = 0, **config: object) -> Cluster:
    cluster = Cluster(brokers=3, seed=7, persister=persister, latency_ms=latency_ms, config=config)
    cluster.create_topic("orders")
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    return cluster


def produce(cluster: Cluster, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for n in range(count):
        producer.produce("orders", str(n))
    assert producer.flush(60) == 0


def consumer_of(cluster: Cluster, most: int = 500) -> ShareConsumer:
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "share.acknowledgement.mode": "explicit"}
    made = ShareConsumer({**conf, "max.poll.records": most, "share.acquire.mode": "record_limit"})
    made.subscribe(["orders"])
    return made


def work(consumer: ShareConsumer, rounds: int) -> list[int]:
    """Accept all but every fifth record, which is released once; the accepted offsets."""
    accepted = []
    for _ in range(rounds):
        for message in consumer.poll(10):
            offset = message.offset()
            assert offset is not None
            again = offset % 5 == 0 and message.delivery_count() == 1
            consumer.acknowledge(message, RELEASE if again else ACCEPT)
            accepted += [] if again else [offset]
        assert set(consumer.commit_sync().values()) <= {None}
    return accepted


def state_records(cluster: Cluster) -> int:
    log = cluster.log(SHARE_STATE_TOPIC, 0)
    read = log.read(log.log_start_offset, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED)
    return sum(len(decode_key_values(batch)) for batch in read.batches)


# ---- the choice ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", list(StateDesign))
def test_a_cluster_has_the_persister_that_is_named(design: StateDesign) -> None:
    cluster = prepared(design.value)
    assert cluster.image.broker_config[PERSISTER_CLASS] == design.class_name
    produce(cluster, 4)
    with consumer_of(cluster) as consumer:
        assert len(work(consumer, 2)) == 4
    events = [entry.event for entry in cluster.journal.select(StateRecordWritten)]
    kinds = {event.kind for event in events if isinstance(event, StateRecordWritten)}
    expected = {
        "state-topic": {"snapshot", "update"},
        "compacted-topic": {"checkpoint", "delta"},
        "control-records": {"checkpoint"},
        "none": set(),
    }
    assert kinds == expected[design.value]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param(
            {"persister": "etcd"},
            "persister='etcd': must be one of state-topic, compacted-topic, control-records, none",
            id="an unknown name",
        ),
        pytest.param({"persister": 3}, "persister=3: must be one of state-topic, ", id="no name"),
        pytest.param(
            {"config": {PERSISTER_CLASS: "org.example.Mine"}},
            f"{PERSISTER_CLASS}='org.example.Mine': must be .*DefaultStatePersister, .*CompactedTopicPersister",
            id="an unknown class",
        ),
        pytest.param(
            {"persister": "none", "config": {PERSISTER_CLASS: ""}},
            f"persister='none': {PERSISTER_CLASS}='' is given, too",
            id="name and class",
        ),
    ],
)
def test_an_impossible_persister_is_refused(given: Mapping[str, Any], text: str) -> None:
    with pytest.raises(ConfigException, match=text):
        Cluster(brokers=1, **given)


def test_the_text_of_a_cluster_names_a_persister_that_is_not_kafkas() -> None:
    assert "compacted-topic" in repr(prepared("compacted-topic"))
    assert "compacted-topic" in prepared("compacted-topic")._repr_html_()
    assert "state-topic" not in repr(prepared("state-topic"))


# ---- a compacted topic -----------------------------------------------------------------------------------------------


def test_a_compacted_state_topic_keeps_a_few_records_and_all_of_the_state() -> None:
    cluster = prepared("compacted-topic", **SMALL)
    produce(cluster, 400)
    consumer = consumer_of(cluster, most=4)
    accepted = work(consumer, 80)
    written = state_records(cluster)
    cluster.clean_logs()
    assert state_records(cluster) < written / 2
    leader = cluster.image.topics[SHARE_STATE_TOPIC].partitions[0].leader
    cluster.kill_broker(leader)
    cluster.advance(40_000)
    accepted += work(consumer, 80)
    assert sorted(accepted) == list(range(400)), "no record is accepted twice or lost"


def test_a_deleted_group_leaves_nothing_on_a_compacted_topic() -> None:
    cleaner = {"log.cleaner.delete.retention.ms": 0, "log.cleaner.min.cleanable.ratio": 0}
    cluster = prepared("compacted-topic", **SMALL, **cleaner)
    produce(cluster, 100)
    with consumer_of(cluster, most=10) as consumer:
        work(consumer, 10)
    admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_share_groups(["g"]).check()
    cluster.configure_group("other", {"share.auto.offset.reset": "earliest"})
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "other"}
    with ShareConsumer(conf) as other:
        other.subscribe(["orders"])
        assert len(other.poll(10)) == 100
        assert not other.poll(1)
    for _ in range(3):
        cluster.clean_logs()
        cluster.advance(1000)
    log = cluster.log(SHARE_STATE_TOPIC, 0)
    read = log.read(log.log_start_offset, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED)
    keys = {key for batch in read.batches for _, key, _ in decode_key_values(batch)}
    assert keys
    assert all(b"other" in key for key in keys)


# ---- control records -------------------------------------------------------------------------------------------------


def hidden(cluster: Cluster, topic: str = "orders") -> list[int]:
    return [batch.base_offset for batch in cluster.log(topic, 0).hidden.batches]


def lag(cluster: Cluster) -> int:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        return admin.list_share_group_offsets("g").total


def fail_over(cluster: Cluster) -> None:
    cluster.kill_broker(cluster.image.topics["orders"].partitions[0].leader)
    cluster.advance(40_000)


def test_control_records_are_in_the_log_and_no_reader_sees_them() -> None:
    cluster = prepared("control-records")
    produce(cluster, 10)
    with consumer_of(cluster) as consumer:
        work(consumer, 1)
        produce(cluster, 10)
        work(consumer, 3)
        assert lag(cluster) == 0
    log = cluster.log("orders", 0)
    assert len(hidden(cluster)) >= 3
    assert log.log_end_offset == 20 + len(hidden(cluster))
    assert SHARE_STATE_TOPIC not in cluster.image.topics
    image = cluster.image.topics["orders"]
    wanted = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.Topic(topic_id=image.topic_id, partitions=(wanted,))
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, isolation_level=0, topics=(topic,))
    (found,) = Probe(cluster).ask(fetch, image.partitions[0].leader).responses[0].partitions
    offsets = {record.offset for batch in found.records for record in decode(batch)}
    assert len(offsets) == 20
    assert not offsets & set(hidden(cluster))
    assert found.high_watermark == max(offsets) + 1 == log.high_watermark


def control_records_of_a_quiet_group(cluster: Cluster) -> int:
    """How many a group writes in 20 s in which it has no work."""
    produce(cluster, 10)
    with consumer_of(cluster) as consumer:
        work(consumer, 3)
        before = cluster.log("orders", 0).log_end_offset
        for _ in range(20):
            assert not consumer.poll(1)
        return cluster.log("orders", 0).log_end_offset - before


def test_control_records_wake_no_consumer() -> None:
    assert control_records_of_a_quiet_group(prepared("control-records")) == 0


def test_without_the_filter_control_records_make_control_records() -> None:
    """One is acquired and acknowledged as a gap, which appends another one, for ever: until they are hidden again."""
    cluster = prepared("control-records", latency_ms=100)
    log = cluster.log("orders", 0)
    log.hides_share_state = False
    assert control_records_of_a_quiet_group(cluster) > 20
    log.hides_share_state = True
    with consumer_of(cluster) as consumer:
        work(consumer, 3)
        end = log.log_end_offset
        for _ in range(20):
            assert not consumer.poll(1)
    assert log.log_end_offset - end <= 2


@pytest.mark.parametrize("design", [StateDesign.STATE_TOPIC, StateDesign.CONTROL_RECORDS])
def test_a_running_cluster_keeps_its_persister(design: StateDesign) -> None:
    cluster = prepared(design.value)
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, pytest.raises(KafkaException) as refused:
        admin.incremental_alter_configs("broker", "", {PERSISTER_CLASS: StateDesign.COMPACTED_TOPIC.class_name})
    assert refused.value.error.code() == Errors.INVALID_REQUEST
    assert cluster.image.broker_config[PERSISTER_CLASS] == design.class_name


def test_a_group_continues_after_its_checkpoint_was_cut_off() -> None:
    """The index outlives the cut; the next leader puts a checkpoint into the log again."""
    cluster = prepared("control-records")
    produce(cluster, 100)
    with consumer_of(cluster, most=10) as consumer:
        accepted = work(consumer, 5)
        produce(cluster, 10)
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.delete_records({("orders", 0): -1}).check()
        produce(cluster, 30)
        assert hidden(cluster) == []
        fail_over(cluster)
        accepted += work(consumer, 10)
        assert lag(cluster) == 0
    assert len(accepted) == len(set(accepted))
    assert len(hidden(cluster)) >= 1
    events = [entry.event for entry in cluster.journal.select(CoordinatorLoaded)]
    loads = [event for event in events if isinstance(event, CoordinatorLoaded) and event.topic == "orders"]
    assert len(loads) == 2
    assert loads[-1].record_count <= 6, "not the whole history"


def test_a_group_continues_from_orphans_after_its_checkpoint_and_the_index_are_lost() -> None:
    """Records below the log start are gone, too; above it nothing is done twice."""
    cluster = prepared("control-records")
    produce(cluster, 30)
    consumer = consumer_of(cluster, most=10)
    accepted = work(consumer, 3)
    taken = list(consumer.poll(10))
    for message in taken[1::2]:
        consumer.acknowledge(message)
        consumer.commit_sync()
        accepted.append(message.offset() or 0)
    for message in taken[::2]:
        consumer.acknowledge(message, RELEASE)
    consumer.commit_sync()
    log = cluster.log("orders", 0)
    checkpoint = log.hidden.recovery()[0][0]
    produce(cluster, 5)
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.delete_records({("orders", 0): checkpoint + 1}).check()
    log.rebuild_share_index()
    assert log.hidden.recovery()
    fail_over(cluster)
    accepted += work(consumer, 10)
    consumer.close()
    assert len(accepted) == len(set(accepted))
    assert lag(cluster) == 0


def test_the_lag_is_exact_between_control_records() -> None:
    cluster = prepared("control-records")
    produce(cluster, 10)
    with consumer_of(cluster, most=5) as consumer:
        assert work(consumer, 1) == [1, 2, 3, 4], "offset 0 is the group's first checkpoint"
        produce(cluster, 7)
        assert lag(cluster) == 13
        fail_over(cluster)
        assert lag(cluster) == 13
        work(consumer, 10)
        assert lag(cluster) == 0


def test_a_deleted_group_begins_anew_and_a_new_topic_has_no_state() -> None:
    cluster = prepared("control-records")
    produce(cluster, 10)
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        for _ in range(2):
            with consumer_of(cluster) as consumer:
                assert len(work(consumer, 3)) == 10
            admin.delete_share_groups(["g"]).check()
        admin.delete_topics(["orders"]).check()
        cluster.create_topic("orders")
        produce(cluster, 3)
        with consumer_of(cluster) as consumer:
            assert len(work(consumer, 3)) == 3


def test_state_writes_need_the_replicas_of_the_users_topic() -> None:
    cluster = prepared("control-records")
    produce(cluster, 10)
    consumer = consumer_of(cluster)
    messages = list(consumer.poll(10))
    assert len(messages) == 10
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.incremental_alter_configs("topic", "orders", {"min.insync.replicas": 3})
    leader = cluster.image.topics["orders"].partitions[0].leader
    follower = next(broker for broker in cluster.brokers_alive if broker != leader)
    cluster.kill_broker(follower)
    written = hidden(cluster)
    for each in messages:
        consumer.acknowledge(each)
    (error,) = consumer.commit_sync(60).values()
    assert error is not None, "the attempts last longer than the locks"
    assert hidden(cluster) == written
    cluster.start_broker(follower)
    assert len(work(consumer, 5)) == 10
    assert lag(cluster) == 0


def test_only_the_leader_of_the_users_partition_is_its_coordinator() -> None:
    cluster = prepared("control-records")
    topic, kind = cluster.image.topics["orders"], ReadShareGroupStateSummaryRequest
    follower = next(broker for broker in cluster.brokers_alive if broker != topic.partitions[0].leader)
    asked = kind.Topic(topic_id=topic.topic_id, partitions=(kind.Partition(partition=0, leader_epoch=-1),))
    answer = Requester(cluster).ask(kind(group_id="g", topics=(asked,)), 1, follower)
    assert answer.results[0].partitions[0].error_code is Errors.NOT_COORDINATOR


def test_the_cleaner_leaves_few_control_records() -> None:
    cluster = prepared("control-records", **{"log.segment.bytes": 1000})
    produce(cluster, 200)
    with consumer_of(cluster, most=2) as consumer:
        work(consumer, 60)
        written = len(hidden(cluster))
        cluster.clean_logs()
        assert len(hidden(cluster)) < written / 3
        fail_over(cluster)
        work(consumer, 60)
        assert lag(cluster) == 0


def test_a_backend_cannot_have_control_records() -> None:
    with pytest.raises(ConfigException, match="a client cannot append control records to the topics of a backend"):
        Cluster(backend="127.0.0.1:1", persister="control-records")
