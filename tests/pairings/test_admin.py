"""Every call of confluent-kafka's `AdminClient` over TCP, on a shareq cluster and on Apache Kafka.

Consumer groups are described and deleted in tests/wire/test_consumers.py and test_consumer_protocol.py.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    ShareConsumer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka.fixtures import Reachable
from tests.pairings.stage import AdminStage, Fresh, error_name, outcome, outcomes
from tests.polling import PATIENCE_S, eventually

Operation = tuple[str, AlterConfigOpType, str | None]
SET, DELETE, APPEND, SUBTRACT = (
    AlterConfigOpType.SET,
    AlterConfigOpType.DELETE,
    AlterConfigOpType.APPEND,
    AlterConfigOpType.SUBTRACT,
)
TOPIC, GROUP, BROKER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER


@pytest.fixture
def stage(broker: Reachable, fresh: Fresh) -> AdminStage:
    return AdminStage(broker.bootstrap_servers, fresh)


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
    stage: AdminStage, topic: dict[str, Any], expected: str | None, only: bool
) -> None:
    given: Any = {"topic": stage.topic, "num_partitions": 1, "replication_factor": -1} | topic
    made = NewTopic(**given)
    assert outcomes(stage.admin.create_topics([made], validate_only=only)) == [expected]
    there = expected is None and not only
    eventually(lambda: made.topic in stage.admin.list_topics(timeout=PATIENCE_S).topics, there)


def test_topics_are_deleted(stage: AdminStage) -> None:
    name = stage.create()
    assert outcomes(stage.admin.create_topics([NewTopic(name, 1, 1)])) == ["TOPIC_ALREADY_EXISTS"]
    assert outcomes(stage.admin.delete_topics([name])) == [None]
    assert outcomes(stage.admin.delete_topics([name])) == ["UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.parametrize(("count", "expected"), [(3, None), (2, "INVALID_PARTITIONS"), (1, "INVALID_PARTITIONS")])
def test_partitions_are_added(stage: AdminStage, count: int, expected: str | None) -> None:
    name = stage.create(2)
    assert outcomes(stage.admin.create_partitions([NewPartitions(name, count)])) == [expected]
    there = max(count, 2)
    eventually(lambda: len(stage.admin.list_topics(name, PATIENCE_S).topics[name].partitions), there)


def test_partitions_cannot_be_added_to_an_unknown_topic(stage: AdminStage) -> None:
    requested = [NewPartitions(stage.topic, 2)]
    assert outcomes(stage.admin.create_partitions(requested)) == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_topics_are_described(stage: AdminStage) -> None:
    name, nowhere = stage.create(2), stage.fresh("nowhere")
    found = stage.admin.describe_topics(TopicCollection([name, nowhere]), include_authorized_operations=True)
    topic = outcome(found[name])
    (node,) = outcome(stage.admin.describe_cluster()).nodes
    assert (topic.name, topic.is_internal, str(topic.topic_id) != "") == (name, False, True)
    assert [
        (part.id, part.leader.id, [replica.id for replica in part.replicas], [replica.id for replica in part.isr])
        for part in topic.partitions
    ] == [(index, node.id, [node.id], [node.id]) for index in range(2)]
    assert sorted(operation.name for operation in topic.authorized_operations) == [
        *("ALTER", "ALTER_CONFIGS", "CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
    ]
    assert outcome(found[nowhere]) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_the_cluster_is_described(stage: AdminStage) -> None:
    cluster = outcome(stage.admin.describe_cluster(include_authorized_operations=True))
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == stage.servers
    assert (cluster.controller.id, cluster.cluster_id) == (
        node.id,
        stage.admin.list_topics(timeout=PATIENCE_S).cluster_id,
    )
    assert sorted(operation.name for operation in cluster.authorized_operations) == [
        *("ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE")
    ]


@pytest.mark.parametrize("kind", [ElectionType.PREFERRED, ElectionType.UNCLEAN])
def test_leaders_are_elected(stage: AdminStage, kind: ElectionType) -> None:
    places = [TopicPartition(stage.create(), 0), TopicPartition(stage.fresh("nowhere"), 0)]
    found = outcome(stage.admin.elect_leaders(kind, places))
    assert [error_name(found[place]) for place in places] == ["ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION"]


# ---- records ---------------------------------------------------------------------------------------------------------


def test_offsets_of_the_log_are_listed(stage: AdminStage) -> None:
    stage.create(2, retention_ms="-1")  # the timestamps that `write` produces are old
    stage.write("a", "b", "c")
    start = 1_000_000_000_000
    specs = {
        "earliest": (OffsetSpec.earliest(), (0, -1)),
        "latest": (OffsetSpec.latest(), (3, -1)),
        "largest timestamp": (OffsetSpec.max_timestamp(), (2, start + 2000)),
        "between": (OffsetSpec.for_timestamp(start + 500), (1, start + 1000)),
        "before": (OffsetSpec.for_timestamp(0), (0, start)),
        "behind": (OffsetSpec.for_timestamp(start + 9999), (-1, -1)),
    }
    assert {name: stage.offsets(0, spec) for name, (spec, _) in specs.items()} == {
        name: expected for name, (_, expected) in specs.items()
    }
    assert stage.offsets(1, OffsetSpec.max_timestamp()) == (-1, -1)
    assert stage.offsets(7, OffsetSpec.latest()) == "-156"
    committed = stage.offsets(0, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)
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
def test_records_are_deleted(stage: AdminStage, offset: int, expected: int | str, start: int) -> None:
    stage.create(retention_ms="-1")
    stage.write("a", "b", "c")
    (found,) = outcomes(stage.admin.delete_records([TopicPartition(stage.topic, 0, offset)]))
    assert (found if isinstance(found, str) else found.low_watermark) == expected
    assert stage.offsets(0, OffsetSpec.earliest()) == (start, -1)


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
    stage: AdminStage, operation: Operation, expected: str | None, value: tuple[str, str, int]
) -> None:
    stage.create(segment_ms="77777")
    assert stage.alter(TOPIC, stage.topic, operation) == expected
    eventually(lambda: stage.entry(TOPIC, stage.topic, value[0]), value[1:])


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
def test_group_configurations_are_altered(stage: AdminStage, key: str, value: str, expected: str | None) -> None:
    group = stage.fresh("group")
    before = stage.describe(GROUP, group)

    def changed() -> dict[str, str | None]:
        after = stage.describe(GROUP, group)
        return {name: entry.value for name, entry in after.items() if entry.value != before[name].value}

    assert stage.alter(GROUP, group, (key, SET, value)) == expected
    wanted = {} if expected else {key: value}
    eventually(changed, wanted)
    if not expected:
        assert stage.alter(GROUP, group, (key, DELETE, None)) is None
        eventually(changed, {})


def test_configurations_of_a_single_broker_cannot_be_altered(stage: AdminStage) -> None:
    """A single broker cannot be altered: Kafka reads these keys at start, and shareq has them for all brokers."""
    (node,) = outcome(stage.admin.describe_cluster()).nodes
    entry = stage.describe(BROKER, str(node.id))["group.share.max.partition.max.record.locks"]
    assert (entry.value, entry.source, entry.is_sensitive) == ("10000", 4, False)
    operation = ("group.share.max.partition.max.record.locks", SET, "9000")
    assert stage.alter(BROKER, str(node.id), operation) == "INVALID_REQUEST"


def test_alter_configs_replaces_all_overrides(stage: AdminStage) -> None:
    stage.create(retention_ms="5000")
    resource = ConfigResource(TOPIC, stage.topic, set_config={"segment.ms": "6000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        assert outcomes(stage.admin.alter_configs([resource])) == [None]
    wanted = [("604800000", 5), ("6000", 1)]

    def entries() -> list[tuple[str | None, int]]:
        return [stage.entry(TOPIC, stage.topic, key) for key in ("retention.ms", "segment.ms")]

    eventually(entries, wanted)


# ---- groups ----------------------------------------------------------------------------------------------------------


def test_groups_are_listed_with_their_type(stage: AdminStage) -> None:
    stage.create()
    group = stage.fresh("group")
    with_members = Consumer({"bootstrap.servers": stage.servers, "group.id": group})
    with_members.subscribe([stage.topic])
    deadline = time.monotonic() + PATIENCE_S
    while not with_members.assignment():
        assert time.monotonic() < deadline
        with_members.poll(0.1)
    listed = {found.group_id: found for found in outcome(stage.admin.list_consumer_groups()).valid}
    assert (listed[group].state.name, listed[group].type.name) == ("STABLE", "CLASSIC")
    with pytest.deprecated_call():
        older = stage.admin.list_groups(timeout=PATIENCE_S)
    assert group in {found.id for found in older}
    with_members.close()
    missing = stage.fresh("missing")
    described = outcome(stage.admin.describe_consumer_groups([missing])[missing])
    assert (described if isinstance(described, str) else described.state.name) == "DEAD"
    assert outcomes(stage.admin.delete_consumer_groups([missing])) == ["GROUP_ID_NOT_FOUND"]


def test_a_share_group_is_deleted(stage: AdminStage) -> None:
    stage.create(retention_ms="-1")
    stage.write("a")
    group = stage.fresh("group")
    quick = [("share.auto.offset.reset", SET, "earliest"), ("share.heartbeat.interval.ms", SET, "100")]
    assert stage.alter(GROUP, group, *quick) is None
    values = [value for _, _, value in quick]  # until the broker has these, the group would start at latest
    eventually(lambda: [stage.entry(GROUP, group, key)[0] for key, _, _ in quick], values)
    consumer = ShareConsumer({"bootstrap.servers": stage.servers, "group.id": group})
    consumer.subscribe([stage.topic])
    assert [message.value() for message in consumer.poll(PATIENCE_S)] == [b"a"]
    assert group not in {found.group_id for found in outcome(stage.admin.list_consumer_groups()).valid}
    assert outcomes(stage.admin.delete_consumer_groups([group])) == ["NON_EMPTY_GROUP"]
    consumer.close()
    assert outcomes(stage.admin.delete_consumer_groups([group])) == [None]


def test_offsets_of_a_group_are_altered_listed_and_deleted(stage: AdminStage) -> None:
    stage.create(2)
    group = stage.fresh("group")
    stored = ConsumerGroupTopicPartitions(group, [TopicPartition(stage.topic, 1, 5)])
    assert [
        part.offset for part in outcome(stage.admin.alter_consumer_group_offsets([stored])[group]).topic_partitions
    ] == [5]
    requested = [ConsumerGroupTopicPartitions(group)]
    found = outcome(stage.admin.list_consumer_group_offsets(requested)[group])
    assert [(part.partition, part.offset) for part in found.topic_partitions] == [(1, 5)]
    assert outcomes(stage.admin.delete_consumer_groups([group])) == [None]
    found = outcome(stage.admin.list_consumer_group_offsets(requested)[group])
    assert found.topic_partitions == []


# ---- users and access control lists ----------------------------------------------------------------------------------


def test_no_scram_users_are_described(stage: AdminStage) -> None:
    assert outcome(stage.admin.describe_user_scram_credentials()) == {}


def test_acls_need_an_authorizer(stage: AdminStage) -> None:
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
    assert outcomes(stage.admin.create_acls([acl])) == ["SECURITY_DISABLED"]
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
    assert outcome(stage.admin.describe_acls(everything)) == []
