"""All that confluent-kafka's `AdminClient` can do, on real sockets: ours first, then Apache Kafka alike.

Groups of ordinary consumers are described and deleted in tests/wire/test_consumers.py and test_consumer_protocol.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka.fixtures import Reachable
from tests.pairings.scene import said
from tests.polling import PATIENCE_S, eventually

Operation = tuple[str, AlterConfigOpType, str | None]
Fresh = Callable[[str], str]
SET, DELETE, APPEND, SUBTRACT = (
    AlterConfigOpType.SET,
    AlterConfigOpType.DELETE,
    AlterConfigOpType.APPEND,
    AlterConfigOpType.SUBTRACT,
)
TOPIC, GROUP, BROKER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER


def outcome(future: Any) -> Any:
    """The result, or the error's name."""
    try:
        return future.result(PATIENCE_S)
    except KafkaException as error:
        return said(error)


def outcomes(futures: Mapping[Any, Any]) -> list[Any]:
    return [outcome(future) for future in futures.values()]


class Desk:
    """An admin with a topic of its own."""

    def __init__(self, servers: str, fresh: Fresh) -> None:
        self.servers, self.fresh, self.topic = servers, fresh, fresh("topic")
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, partitions: int = 1, **config: str) -> str:
        made = NewTopic(
            self.topic, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()}
        )
        assert outcomes(self.admin.create_topics([made])) == [None]
        ends = [(0, -1)] * partitions  # the controller knows it, its broker may not lead it yet
        eventually(lambda: [self.offsets(place, OffsetSpec.latest()) for place in range(partitions)], ends)
        return self.topic

    def write(self, *values: str, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})
        for number, value in enumerate(values):
            producer.produce(self.topic, value, partition=partition, timestamp=1_000_000_000_000 + number * 1000)
            assert producer.flush(PATIENCE_S) == 0

    def describe(self, kind: ResourceType, name: str) -> Any:
        (found,) = outcomes(self.admin.describe_configs([ConfigResource(kind, name)]))
        return found

    def entry(self, kind: ResourceType, name: str, key: str) -> tuple[str | None, int]:
        """Its value and its source."""
        found = self.describe(kind, name)[key]
        return found.value, found.source

    def alter(self, kind: ResourceType, name: str, *operations: tuple[str, AlterConfigOpType, str | None]) -> Any:
        entries = [ConfigEntry(key, value, incremental_operation=operation) for key, operation, value in operations]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        (done,) = outcomes(self.admin.incremental_alter_configs([resource]))
        return done

    def offsets(self, partition: int, spec: Any, **options: Any) -> Any:
        (found,) = outcomes(self.admin.list_offsets({TopicPartition(self.topic, partition): spec}, **options))
        return found if isinstance(found, str) else (found.offset, found.timestamp)


@pytest.fixture
def desk(broker: Reachable, fresh: Fresh) -> Desk:
    return Desk(broker.bootstrap_servers, fresh)


# ---- topics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        pytest.param({}, None, id="defaults"),
        pytest.param({"num_partitions": 3, "replication_factor": 1}, None, id="three partitions"),
        pytest.param({"replication_factor": 9}, "INVALID_REPLICATION_FACTOR", id="more replicas than brokers"),
        pytest.param({"config": {"retention.ms": "5000"}}, None, id="configured"),
        pytest.param({"config": {"no.such.key": "1"}}, "INVALID_CONFIG", id="an unknown key"),
        pytest.param({"config": {"retention.ms": "long"}}, "INVALID_CONFIG", id="a bad value"),
        pytest.param({"topic": "what?"}, "INVALID_TOPIC_EXCEPTION", id="a bad name"),
        pytest.param({"topic": "x" * 250}, "INVALID_TOPIC_EXCEPTION", id="a long name"),
    ],
)
@pytest.mark.parametrize("only", [False, True], ids=["made", "validated"])
def test_topics_are_made(desk: Desk, topic: dict[str, Any], expected: str | None, only: bool) -> None:
    given: Any = {"topic": desk.topic, "num_partitions": 1, "replication_factor": -1} | topic
    made = NewTopic(**given)
    assert outcomes(desk.admin.create_topics([made], validate_only=only)) == [expected]
    there = expected is None and not only
    eventually(lambda: made.topic in desk.admin.list_topics(timeout=PATIENCE_S).topics, there)


def test_topics_are_deleted(desk: Desk) -> None:
    name = desk.create()
    assert outcomes(desk.admin.create_topics([NewTopic(name, 1, 1)])) == ["TOPIC_ALREADY_EXISTS"]
    assert outcomes(desk.admin.delete_topics([name])) == [None]
    assert outcomes(desk.admin.delete_topics([name])) == ["UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.parametrize(("count", "expected"), [(3, None), (2, "INVALID_PARTITIONS"), (1, "INVALID_PARTITIONS")])
def test_partitions_are_added(desk: Desk, count: int, expected: str | None) -> None:
    name = desk.create(2)
    assert outcomes(desk.admin.create_partitions([NewPartitions(name, count)])) == [expected]
    there = max(count, 2)
    eventually(lambda: len(desk.admin.list_topics(name, PATIENCE_S).topics[name].partitions), there)


def test_partitions_are_not_added_to_what_is_not_there(desk: Desk) -> None:
    asked = [NewPartitions(desk.topic, 2)]
    assert outcomes(desk.admin.create_partitions(asked)) == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_topics_are_described(desk: Desk) -> None:
    name, nowhere = desk.create(2), desk.fresh("nowhere")
    found = desk.admin.describe_topics(TopicCollection([name, nowhere]), include_authorized_operations=True)
    topic = outcome(found[name])
    (node,) = outcome(desk.admin.describe_cluster()).nodes
    assert (topic.name, topic.is_internal, str(topic.topic_id) != "") == (name, False, True)
    assert [
        (part.id, part.leader.id, [replica.id for replica in part.replicas], [replica.id for replica in part.isr])
        for part in topic.partitions
    ] == [(index, node.id, [node.id], [node.id]) for index in range(2)]
    assert sorted(operation.name for operation in topic.authorized_operations) == [
        *("ALTER", "ALTER_CONFIGS", "CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
    ]
    assert outcome(found[nowhere]) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_the_cluster_is_described(desk: Desk) -> None:
    cluster = outcome(desk.admin.describe_cluster(include_authorized_operations=True))
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == desk.servers
    assert (cluster.controller.id, cluster.cluster_id) == (
        node.id,
        desk.admin.list_topics(timeout=PATIENCE_S).cluster_id,
    )
    assert sorted(operation.name for operation in cluster.authorized_operations) == [
        *("ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE")
    ]


@pytest.mark.parametrize("kind", [ElectionType.PREFERRED, ElectionType.UNCLEAN])
def test_leaders_are_elected(desk: Desk, kind: ElectionType) -> None:
    places = [TopicPartition(desk.create(), 0), TopicPartition(desk.fresh("nowhere"), 0)]
    found = outcome(desk.admin.elect_leaders(kind, places))
    assert [said(found[place]) for place in places] == ["ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION"]


# ---- records ---------------------------------------------------------------------------------------------------------


def test_offsets_of_the_log_are_listed(desk: Desk) -> None:
    desk.create(2, retention_ms="-1")  # what `write` writes looks old
    desk.write("a", "b", "c")
    start = 1_000_000_000_000
    specs = {
        "earliest": (OffsetSpec.earliest(), (0, -1)),
        "latest": (OffsetSpec.latest(), (3, -1)),
        "largest timestamp": (OffsetSpec.max_timestamp(), (2, start + 2000)),
        "between": (OffsetSpec.for_timestamp(start + 500), (1, start + 1000)),
        "before": (OffsetSpec.for_timestamp(0), (0, start)),
        "behind": (OffsetSpec.for_timestamp(start + 9999), (-1, -1)),
    }
    assert {name: desk.offsets(0, spec) for name, (spec, _) in specs.items()} == {
        name: expected for name, (_, expected) in specs.items()
    }
    assert desk.offsets(1, OffsetSpec.max_timestamp()) == (-1, -1)
    assert desk.offsets(7, OffsetSpec.latest()) == "-156"
    committed = desk.offsets(0, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)
    assert committed == (3, -1)


@pytest.mark.parametrize(
    ("offset", "expected", "start"),
    [
        pytest.param(2, 2, 2, id="some"),
        pytest.param(0, 0, 0, id="none"),
        pytest.param(-1, 3, 3, id="all"),
        pytest.param(4, "OFFSET_OUT_OF_RANGE", 0, id="more than there are"),
    ],
)
def test_records_are_deleted(desk: Desk, offset: int, expected: int | str, start: int) -> None:
    desk.create(retention_ms="-1")
    desk.write("a", "b", "c")
    (found,) = outcomes(desk.admin.delete_records([TopicPartition(desk.topic, 0, offset)]))
    assert (found if isinstance(found, str) else found.low_watermark) == expected
    assert desk.offsets(0, OffsetSpec.earliest()) == (start, -1)


# ---- configurations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "expected", "value"),
    [
        pytest.param(("retention.ms", SET, "5000"), None, ("retention.ms", "5000", 1), id="set"),
        pytest.param(("segment.ms", DELETE, None), None, ("segment.ms", "604800000", 5), id="delete"),
        pytest.param(("cleanup.policy", APPEND, "compact"), None, ("cleanup.policy", "delete,compact", 1), id="append"),
        pytest.param(("cleanup.policy", SUBTRACT, "delete"), None, ("cleanup.policy", "", 1), id="subtract"),
        pytest.param(("retention.ms", SET, "x"), "INVALID_CONFIG", ("retention.ms", "604800000", 5), id="no number"),
        pytest.param(("retention.ms", APPEND, "1"), "INVALID_CONFIG", ("retention.ms", "604800000", 5), id="no list"),
        pytest.param(("no.such.key", SET, "1"), "INVALID_CONFIG", ("segment.ms", "77777", 1), id="no such key"),
    ],
)
def test_configurations_of_topics(
    desk: Desk, operation: Operation, expected: str | None, value: tuple[str, str, int]
) -> None:
    desk.create(segment_ms="77777")
    assert desk.alter(TOPIC, desk.topic, operation) == expected
    eventually(lambda: desk.entry(TOPIC, desk.topic, value[0]), value[1:])


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        pytest.param("share.record.lock.duration.ms", "20000", None, id="a lock duration"),
        pytest.param("share.record.lock.duration.ms", "999", "INVALID_CONFIG", id="too short a lock duration"),
        pytest.param("share.auto.offset.reset", "earliest", None, id="where to begin"),
        pytest.param("share.auto.offset.reset", "by_duration:PT1H", None, id="an hour ago"),
        pytest.param("share.auto.offset.reset", "yesterday", "INVALID_CONFIG", id="no place to begin"),
        pytest.param("share.isolation.level", "read_committed", None, id="isolation"),
        pytest.param("share.isolation.level", "serializable", "INVALID_CONFIG", id="no isolation"),
        pytest.param("share.session.timeout.ms", "50000", None, id="a session"),
        pytest.param("share.heartbeat.interval.ms", "5", "INVALID_CONFIG", id="too quick a heart"),
        pytest.param("share.delivery.count.limit", "7", None, id="deliveries"),
        pytest.param("share.partition.max.record.locks", "500", None, id="locks"),
        pytest.param("consumer.session.timeout.ms", "50000", None, id="of consumers"),
        pytest.param("share.no.such.key", "1", "INVALID_CONFIG", id="no such key"),
    ],
)
def test_configurations_of_groups(desk: Desk, key: str, value: str, expected: str | None) -> None:
    group = desk.fresh("group")
    before = desk.describe(GROUP, group)

    def changed() -> dict[str, str | None]:
        after = desk.describe(GROUP, group)
        return {name: entry.value for name, entry in after.items() if entry.value != before[name].value}

    assert desk.alter(GROUP, group, (key, SET, value)) == expected
    wanted = {} if expected else {key: value}
    eventually(changed, wanted)
    if not expected:
        assert desk.alter(GROUP, group, (key, DELETE, None)) is None
        eventually(changed, {})


def test_configurations_of_a_broker(desk: Desk) -> None:
    """One broker alone is not altered: Kafka reads these once, ours are changed for all brokers alike."""
    (node,) = outcome(desk.admin.describe_cluster()).nodes
    entry = desk.describe(BROKER, str(node.id))["group.share.max.partition.max.record.locks"]
    assert (entry.value, entry.source, entry.is_sensitive) == ("10000", 4, False)
    operation = ("group.share.max.partition.max.record.locks", SET, "9000")
    assert desk.alter(BROKER, str(node.id), operation) == "INVALID_REQUEST"


def test_the_old_way_of_altering_replaces_everything(desk: Desk) -> None:
    desk.create(retention_ms="5000")
    resource = ConfigResource(TOPIC, desk.topic, set_config={"segment.ms": "6000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        assert outcomes(desk.admin.alter_configs([resource])) == [None]
    wanted = [("604800000", 5), ("6000", 1)]

    def entries() -> list[tuple[str | None, int]]:
        return [desk.entry(TOPIC, desk.topic, key) for key in ("retention.ms", "segment.ms")]

    eventually(entries, wanted)


# ---- groups ----------------------------------------------------------------------------------------------------------


def test_groups_are_listed_with_their_kind(desk: Desk) -> None:
    desk.create()
    group = desk.fresh("group")
    with_members = Consumer({"bootstrap.servers": desk.servers, "group.id": group})
    with_members.subscribe([desk.topic])
    deadline = time.monotonic() + PATIENCE_S
    while not with_members.assignment():
        assert time.monotonic() < deadline
        with_members.poll(0.1)
    listed = {found.group_id: found for found in outcome(desk.admin.list_consumer_groups()).valid}
    assert (listed[group].state.name, listed[group].type.name) == ("STABLE", "CLASSIC")
    assert group in {found.id for found in desk.admin.list_groups(timeout=PATIENCE_S)}
    with_members.close()
    missing = desk.fresh("missing")
    described = outcome(desk.admin.describe_consumer_groups([missing])[missing])
    assert (described if isinstance(described, str) else described.state.name) == "DEAD"
    assert outcomes(desk.admin.delete_consumer_groups([missing])) == ["GROUP_ID_NOT_FOUND"]


def test_a_share_group_is_deleted_like_any_other(desk: Desk) -> None:
    desk.create(retention_ms="-1")
    desk.write("a")
    group = desk.fresh("group")
    quick = [("share.auto.offset.reset", SET, "earliest"), ("share.heartbeat.interval.ms", SET, "100")]
    assert desk.alter(GROUP, group, *quick) is None
    values = [value for _, _, value in quick]  # a broker that has not heard would let the group begin at the end
    eventually(lambda: [desk.entry(GROUP, group, key)[0] for key, _, _ in quick], values)
    consumer = ShareConsumer({"bootstrap.servers": desk.servers, "group.id": group})
    consumer.subscribe([desk.topic])
    assert [message.value() for message in consumer.poll(PATIENCE_S)] == [b"a"]
    assert group not in {found.group_id for found in outcome(desk.admin.list_consumer_groups()).valid}
    assert outcomes(desk.admin.delete_consumer_groups([group])) == ["NON_EMPTY_GROUP"]
    consumer.close()
    assert outcomes(desk.admin.delete_consumer_groups([group])) == [None]


def test_offsets_of_a_group_are_altered_listed_and_gone(desk: Desk) -> None:
    desk.create(2)
    group = desk.fresh("group")
    stored = ConsumerGroupTopicPartitions(group, [TopicPartition(desk.topic, 1, 5)])
    assert [
        part.offset for part in outcome(desk.admin.alter_consumer_group_offsets([stored])[group]).topic_partitions
    ] == [5]
    asked = [ConsumerGroupTopicPartitions(group)]
    found = outcome(desk.admin.list_consumer_group_offsets(asked)[group])
    assert [(part.partition, part.offset) for part in found.topic_partitions] == [(1, 5)]
    assert outcomes(desk.admin.delete_consumer_groups([group])) == [None]
    found = outcome(desk.admin.list_consumer_group_offsets(asked)[group])
    assert found.topic_partitions == []


# ---- what only Kafka has ---------------------------------------------------------------------------------------------


def test_there_is_nobody_to_keep_out(desk: Desk, request: pytest.FixtureRequest) -> None:
    """Of us these are not asked at all: a client finds that they are not offered. Kafka has no authorizer here."""
    expected = {"served": ("-165", "-165"), "kafka": ([], {})}[request.node.callspec.params["broker"]]
    anything: Any = (
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    everything = AclBindingFilter(*anything)
    acls = outcome(desk.admin.describe_acls(everything))
    assert (acls, outcome(desk.admin.describe_user_scram_credentials())) == expected
