"""Every call of confluent-kafka's `AdminClient` over TCP, on a shareq cluster and on Apache Kafka.

Consumer groups are described and deleted in tests/wire/test_consumers.py and test_consumer_protocol.py.
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
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka.fixtures import Reachable
from tests.pairings.scene import error_name
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
    """The result of a future, or the name of its error."""
    try:
        return future.result(PATIENCE_S)
    except KafkaException as error:
        return error_name(error)


def outcomes(futures: Mapping[Any, Any]) -> list[Any]:
    return [outcome(future) for future in futures.values()]


class AdminScene:
    """An admin client with its own topic."""

    def __init__(self, servers: str, fresh: Fresh) -> None:
        self.servers, self.fresh, self.topic = servers, fresh, fresh("topic")
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, partitions: int = 1, **config: str) -> str:
        made = NewTopic(
            self.topic, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()}
        )
        assert outcomes(self.admin.create_topics([made])) == [None]
        ends = [(0, -1)] * partitions  # the controller can have the topic before its broker leads the partitions
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
        """(value, source) of a configuration."""
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
def scene(broker: Reachable, fresh: Fresh) -> AdminScene:
    return AdminScene(broker.bootstrap_servers, fresh)


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
@pytest.mark.parametrize("only", [False, True], ids=["created", "validated"])
def test_topics_are_created_or_validated(
    scene: AdminScene, topic: dict[str, Any], expected: str | None, only: bool
) -> None:
    given: Any = {"topic": scene.topic, "num_partitions": 1, "replication_factor": -1} | topic
    made = NewTopic(**given)
    assert outcomes(scene.admin.create_topics([made], validate_only=only)) == [expected]
    there = expected is None and not only
    eventually(lambda: made.topic in scene.admin.list_topics(timeout=PATIENCE_S).topics, there)


def test_topics_are_deleted(scene: AdminScene) -> None:
    name = scene.create()
    assert outcomes(scene.admin.create_topics([NewTopic(name, 1, 1)])) == ["TOPIC_ALREADY_EXISTS"]
    assert outcomes(scene.admin.delete_topics([name])) == [None]
    assert outcomes(scene.admin.delete_topics([name])) == ["UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.parametrize(("count", "expected"), [(3, None), (2, "INVALID_PARTITIONS"), (1, "INVALID_PARTITIONS")])
def test_partitions_are_added(scene: AdminScene, count: int, expected: str | None) -> None:
    name = scene.create(2)
    assert outcomes(scene.admin.create_partitions([NewPartitions(name, count)])) == [expected]
    there = max(count, 2)
    eventually(lambda: len(scene.admin.list_topics(name, PATIENCE_S).topics[name].partitions), there)


def test_partitions_cannot_be_added_to_an_unknown_topic(scene: AdminScene) -> None:
    requested = [NewPartitions(scene.topic, 2)]
    assert outcomes(scene.admin.create_partitions(requested)) == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_topics_are_described(scene: AdminScene) -> None:
    name, nowhere = scene.create(2), scene.fresh("nowhere")
    found = scene.admin.describe_topics(TopicCollection([name, nowhere]), include_authorized_operations=True)
    topic = outcome(found[name])
    (node,) = outcome(scene.admin.describe_cluster()).nodes
    assert (topic.name, topic.is_internal, str(topic.topic_id) != "") == (name, False, True)
    assert [
        (part.id, part.leader.id, [replica.id for replica in part.replicas], [replica.id for replica in part.isr])
        for part in topic.partitions
    ] == [(index, node.id, [node.id], [node.id]) for index in range(2)]
    assert sorted(operation.name for operation in topic.authorized_operations) == [
        *("ALTER", "ALTER_CONFIGS", "CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
    ]
    assert outcome(found[nowhere]) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_the_cluster_is_described(scene: AdminScene) -> None:
    cluster = outcome(scene.admin.describe_cluster(include_authorized_operations=True))
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == scene.servers
    assert (cluster.controller.id, cluster.cluster_id) == (
        node.id,
        scene.admin.list_topics(timeout=PATIENCE_S).cluster_id,
    )
    assert sorted(operation.name for operation in cluster.authorized_operations) == [
        *("ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE")
    ]


@pytest.mark.parametrize("kind", [ElectionType.PREFERRED, ElectionType.UNCLEAN])
def test_leaders_are_elected(scene: AdminScene, kind: ElectionType) -> None:
    places = [TopicPartition(scene.create(), 0), TopicPartition(scene.fresh("nowhere"), 0)]
    found = outcome(scene.admin.elect_leaders(kind, places))
    assert [error_name(found[place]) for place in places] == ["ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION"]


# ---- records ---------------------------------------------------------------------------------------------------------


def test_offsets_of_the_log_are_listed(scene: AdminScene) -> None:
    scene.create(2, retention_ms="-1")  # the timestamps that `write` produces are old
    scene.write("a", "b", "c")
    start = 1_000_000_000_000
    specs = {
        "earliest": (OffsetSpec.earliest(), (0, -1)),
        "latest": (OffsetSpec.latest(), (3, -1)),
        "largest timestamp": (OffsetSpec.max_timestamp(), (2, start + 2000)),
        "between": (OffsetSpec.for_timestamp(start + 500), (1, start + 1000)),
        "before": (OffsetSpec.for_timestamp(0), (0, start)),
        "behind": (OffsetSpec.for_timestamp(start + 9999), (-1, -1)),
    }
    assert {name: scene.offsets(0, spec) for name, (spec, _) in specs.items()} == {
        name: expected for name, (_, expected) in specs.items()
    }
    assert scene.offsets(1, OffsetSpec.max_timestamp()) == (-1, -1)
    assert scene.offsets(7, OffsetSpec.latest()) == "-156"
    committed = scene.offsets(0, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)
    assert committed == (3, -1)


@pytest.mark.parametrize(
    ("offset", "expected", "start"),
    [
        pytest.param(2, 2, 2, id="some records"),
        pytest.param(0, 0, 0, id="no record"),
        pytest.param(-1, 3, 3, id="all records"),
        pytest.param(4, "OFFSET_OUT_OF_RANGE", 0, id="above the log end"),
    ],
)
def test_records_are_deleted(scene: AdminScene, offset: int, expected: int | str, start: int) -> None:
    scene.create(retention_ms="-1")
    scene.write("a", "b", "c")
    (found,) = outcomes(scene.admin.delete_records([TopicPartition(scene.topic, 0, offset)]))
    assert (found if isinstance(found, str) else found.low_watermark) == expected
    assert scene.offsets(0, OffsetSpec.earliest()) == (start, -1)


# ---- configurations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "expected", "value"),
    [
        pytest.param(("retention.ms", SET, "5000"), None, ("retention.ms", "5000", 1), id="set"),
        pytest.param(("segment.ms", DELETE, None), None, ("segment.ms", "604800000", 5), id="delete"),
        pytest.param(("cleanup.policy", APPEND, "compact"), None, ("cleanup.policy", "delete,compact", 1), id="append"),
        pytest.param(("cleanup.policy", SUBTRACT, "delete"), None, ("cleanup.policy", "", 1), id="subtract"),
        pytest.param(
            ("retention.ms", SET, "x"), "INVALID_CONFIG", ("retention.ms", "604800000", 5), id="value that is no number"
        ),
        pytest.param(
            ("retention.ms", APPEND, "1"),
            "INVALID_CONFIG",
            ("retention.ms", "604800000", 5),
            id="append to a value that is no list",
        ),
        pytest.param(("no.such.key", SET, "1"), "INVALID_CONFIG", ("segment.ms", "77777", 1), id="unknown key"),
    ],
)
def test_topic_configurations_are_altered(
    scene: AdminScene, operation: Operation, expected: str | None, value: tuple[str, str, int]
) -> None:
    scene.create(segment_ms="77777")
    assert scene.alter(TOPIC, scene.topic, operation) == expected
    eventually(lambda: scene.entry(TOPIC, scene.topic, value[0]), value[1:])


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        pytest.param("share.record.lock.duration.ms", "20000", None, id="a lock duration"),
        pytest.param("share.record.lock.duration.ms", "999", "INVALID_CONFIG", id="too short a lock duration"),
        pytest.param("share.auto.offset.reset", "earliest", None, id="auto offset reset"),
        pytest.param("share.auto.offset.reset", "by_duration:PT1H", None, id="auto offset reset by duration"),
        pytest.param("share.auto.offset.reset", "yesterday", "INVALID_CONFIG", id="invalid auto offset reset"),
        pytest.param("share.isolation.level", "read_committed", None, id="isolation level"),
        pytest.param("share.isolation.level", "serializable", "INVALID_CONFIG", id="invalid isolation level"),
        pytest.param("share.session.timeout.ms", "50000", None, id="session timeout"),
        pytest.param("share.heartbeat.interval.ms", "5", "INVALID_CONFIG", id="heartbeat interval too short"),
        pytest.param("share.delivery.count.limit", "7", None, id="delivery count limit"),
        pytest.param("share.partition.max.record.locks", "500", None, id="record locks"),
        pytest.param("consumer.session.timeout.ms", "50000", None, id="a consumer group's key"),
        pytest.param("share.no.such.key", "1", "INVALID_CONFIG", id="unknown key"),
    ],
)
def test_group_configurations_are_altered(scene: AdminScene, key: str, value: str, expected: str | None) -> None:
    group = scene.fresh("group")
    before = scene.describe(GROUP, group)

    def changed() -> dict[str, str | None]:
        after = scene.describe(GROUP, group)
        return {name: entry.value for name, entry in after.items() if entry.value != before[name].value}

    assert scene.alter(GROUP, group, (key, SET, value)) == expected
    wanted = {} if expected else {key: value}
    eventually(changed, wanted)
    if not expected:
        assert scene.alter(GROUP, group, (key, DELETE, None)) is None
        eventually(changed, {})


def test_configurations_of_a_single_broker_cannot_be_altered(scene: AdminScene) -> None:
    """A single broker cannot be altered: Kafka reads these keys at start, and shareq has them for all brokers."""
    (node,) = outcome(scene.admin.describe_cluster()).nodes
    entry = scene.describe(BROKER, str(node.id))["group.share.max.partition.max.record.locks"]
    assert (entry.value, entry.source, entry.is_sensitive) == ("10000", 4, False)
    operation = ("group.share.max.partition.max.record.locks", SET, "9000")
    assert scene.alter(BROKER, str(node.id), operation) == "INVALID_REQUEST"


def test_alter_configs_replaces_all_overrides(scene: AdminScene) -> None:
    scene.create(retention_ms="5000")
    resource = ConfigResource(TOPIC, scene.topic, set_config={"segment.ms": "6000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        assert outcomes(scene.admin.alter_configs([resource])) == [None]
    wanted = [("604800000", 5), ("6000", 1)]

    def entries() -> list[tuple[str | None, int]]:
        return [scene.entry(TOPIC, scene.topic, key) for key in ("retention.ms", "segment.ms")]

    eventually(entries, wanted)


# ---- groups ----------------------------------------------------------------------------------------------------------


def test_groups_are_listed_with_their_type(scene: AdminScene) -> None:
    scene.create()
    group = scene.fresh("group")
    with_members = Consumer({"bootstrap.servers": scene.servers, "group.id": group})
    with_members.subscribe([scene.topic])
    deadline = time.monotonic() + PATIENCE_S
    while not with_members.assignment():
        assert time.monotonic() < deadline
        with_members.poll(0.1)
    listed = {found.group_id: found for found in outcome(scene.admin.list_consumer_groups()).valid}
    assert (listed[group].state.name, listed[group].type.name) == ("STABLE", "CLASSIC")
    with pytest.deprecated_call():
        older = scene.admin.list_groups(timeout=PATIENCE_S)
    assert group in {found.id for found in older}
    with_members.close()
    missing = scene.fresh("missing")
    described = outcome(scene.admin.describe_consumer_groups([missing])[missing])
    assert (described if isinstance(described, str) else described.state.name) == "DEAD"
    assert outcomes(scene.admin.delete_consumer_groups([missing])) == ["GROUP_ID_NOT_FOUND"]


def test_a_share_group_is_deleted(scene: AdminScene) -> None:
    scene.create(retention_ms="-1")
    scene.write("a")
    group = scene.fresh("group")
    quick = [("share.auto.offset.reset", SET, "earliest"), ("share.heartbeat.interval.ms", SET, "100")]
    assert scene.alter(GROUP, group, *quick) is None
    values = [value for _, _, value in quick]  # until the broker has these, the group would start at latest
    eventually(lambda: [scene.entry(GROUP, group, key)[0] for key, _, _ in quick], values)
    consumer = ShareConsumer({"bootstrap.servers": scene.servers, "group.id": group})
    consumer.subscribe([scene.topic])
    assert [message.value() for message in consumer.poll(PATIENCE_S)] == [b"a"]
    assert group not in {found.group_id for found in outcome(scene.admin.list_consumer_groups()).valid}
    assert outcomes(scene.admin.delete_consumer_groups([group])) == ["NON_EMPTY_GROUP"]
    consumer.close()
    assert outcomes(scene.admin.delete_consumer_groups([group])) == [None]


def test_offsets_of_a_group_are_altered_listed_and_deleted(scene: AdminScene) -> None:
    scene.create(2)
    group = scene.fresh("group")
    stored = ConsumerGroupTopicPartitions(group, [TopicPartition(scene.topic, 1, 5)])
    assert [
        part.offset for part in outcome(scene.admin.alter_consumer_group_offsets([stored])[group]).topic_partitions
    ] == [5]
    requested = [ConsumerGroupTopicPartitions(group)]
    found = outcome(scene.admin.list_consumer_group_offsets(requested)[group])
    assert [(part.partition, part.offset) for part in found.topic_partitions] == [(1, 5)]
    assert outcomes(scene.admin.delete_consumer_groups([group])) == [None]
    found = outcome(scene.admin.list_consumer_group_offsets(requested)[group])
    assert found.topic_partitions == []


# ---- users and access control lists ----------------------------------------------------------------------------------


def test_no_scram_users_are_described(scene: AdminScene) -> None:
    assert outcome(scene.admin.describe_user_scram_credentials()) == {}


def test_acls_need_an_authorizer(scene: AdminScene) -> None:
    """None of the three has one; librdkafka shows no lists then."""
    acl = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:u",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    assert outcomes(scene.admin.create_acls([acl])) == ["SECURITY_DISABLED"]
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
    assert outcome(scene.admin.describe_acls(everything)) == []
