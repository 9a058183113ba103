"""Configurations: DescribeConfigs, IncrementalAlterConfigs, AlterConfigs.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.broker.configs import INTERNAL, READ_AT_START
from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS
from shareq.model.errors import Errors
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    AlterOperation,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from shareq.model.topic_configs import TOPIC_CONFIGS
from tests.broker.requester import Requester

E = Errors
SET, DELETE, APPEND, SUBTRACT = AlterOperation
TOPIC, BROKER, LOGGER, METRICS, GROUP = ResourceType
LOCK, BROKER_LOCK = "share.record.lock.duration.ms", "group.share.record.lock.duration.ms"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, seed=5, config={BROKER_LOCK: 20000, "log.retention.ms": 5000}) as made:
        made.create_topic("orders", configs={"cleanup.policy": "compact"})
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def describe_configs(
    requester: Requester, kind: int, name: str, *keys: str, node: int = 0, **more: bool
) -> DescribeConfigsResponse.Result:
    resource = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (found,) = requester.ask(DescribeConfigsRequest(resources=(resource,), **more), 4, node).results
    assert isinstance(found, DescribeConfigsResponse.Result)
    assert (found.resource_type, found.resource_name) == (kind, name)
    return found


def one(requester: Requester, kind: int, name: str, key: str, **more: bool) -> DescribeConfigsResponse.Config:
    (config,) = describe_configs(requester, kind, name, key, **more).configs
    return config


Operations = list[tuple[str, int, str | None]]


def alter(requester: Requester, kind: int, name: str, operations: Operations, *, validate_only: bool = False) -> Errors:
    configs = tuple(
        IncrementalAlterConfigsRequest.Config(name=key, config_operation=operation, value=value)
        for key, operation, value in operations
    )
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (found,) = requester.ask(request, 1).responses
    assert (found.resource_type, found.resource_name) == (kind, name)
    assert bool(found.error_message) is bool(found.error_code)
    error = found.error_code
    assert isinstance(error, Errors)
    return error


# ---- DescribeConfigs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        pytest.param(TOPIC, "none", E.UNKNOWN_TOPIC_OR_PARTITION, id="2.12 unknown topic"),
        pytest.param(TOPIC, "a b", E.INVALID_TOPIC_EXCEPTION, id="illegal topic name"),
        pytest.param(BROKER, "1", E.INVALID_REQUEST, id="2.12 another broker"),
        pytest.param(BROKER, "x", E.INVALID_REQUEST, id="a broker id that is no number"),
        pytest.param(LOGGER, "1", E.INVALID_REQUEST, id="another broker's loggers"),
        pytest.param(LOGGER, "", E.INVALID_REQUEST, id="loggers without a broker"),
        pytest.param(GROUP, "", E.INVALID_REQUEST, id="2.12 a group without a name"),
        pytest.param(METRICS, "", E.INVALID_REQUEST, id="client metrics without a name"),
        pytest.param(3, "x", E.INVALID_REQUEST, id="unknown resource type"),
    ],
)
def test_an_unknown_resource_is_not_described(requester: Requester, kind: int, name: str, error: Errors) -> None:
    found = describe_configs(requester, kind, name)
    assert (found.error_code, bool(found.error_message), found.configs) == (error, True, ())


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        pytest.param(TOPIC, "orders", set(TOPIC_CONFIGS), id="2.12 2 topic"),
        pytest.param(BROKER, "0", set(BROKER_CONFIGS) - INTERNAL, id="2.12 4 broker"),
        pytest.param(
            BROKER,
            "",
            {"num.partitions", "min.insync.replicas"},
            id='2.12 4 "" = cluster default: only keys that are set',
        ),
        pytest.param(LOGGER, "0", set(), id="2.12 8 logger"),
        pytest.param(METRICS, "any", set(), id="2.12 16 client metrics"),
        pytest.param(GROUP, "none", set(GROUP_CONFIGS) - INTERNAL, id="2.12 32 group: it need not exist"),
    ],
)
def test_all_configurations_of_a_resource_are_described(
    requester: Requester, kind: int, name: str, expected: set[str]
) -> None:
    assert alter(requester, BROKER, "", [("num.partitions", SET, "3")]) is E.NONE
    assert {config.name for config in describe_configs(requester, kind, name).configs} == expected


def test_a_resource_that_is_named_many_times_is_described_once(requester: Requester) -> None:
    """A request of 50 kB could otherwise occupy the server for seconds."""
    resource, other = (
        DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name="orders", configuration_keys=keys)
        for keys in (None, ("retention.ms",))
    )
    answer = requester.ask(DescribeConfigsRequest(resources=(resource, other, resource)), 4, 0)
    first, second, third = answer.results
    assert first is third
    assert first.configs
    assert [config.name for config in second.configs] == ["retention.ms"]


def test_unknown_keys_are_left_out_of_a_description(requester: Requester) -> None:
    found = describe_configs(requester, TOPIC, "orders", "retention.ms", "colour")
    assert [config.name for config in found.configs] == ["retention.ms"]


SYNONYMS = [
    pytest.param(
        TOPIC, "cleanup.policy", [("cleanup.policy", "compact", 1), ("log.cleanup.policy", "delete", 5)], id="1 topic"
    ),
    pytest.param(
        TOPIC, "retention.ms", [("log.retention.ms", "5000", 4)], id="4 static, of a key whose default is null"
    ),
    pytest.param(
        TOPIC,
        "segment.bytes",
        [("log.segment.bytes", "100", 3), ("log.segment.bytes", "1073741824", 5)],
        id="3 cluster default",
    ),
    pytest.param(
        TOPIC, "preallocate", [("log.preallocate", "false", 5)], id="5 default, of a key that shareq does not have"
    ),
    pytest.param(TOPIC, "compression.type", [("compression.type", "producer", 5)], id="5 default, of the same name"),
    pytest.param(
        TOPIC,
        "min.insync.replicas",
        [("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5)],
        id="3 set by the cluster",
    ),
    pytest.param(GROUP, LOCK, [(LOCK, "45000", 8), (BROKER_LOCK, "20000", 4), (BROKER_LOCK, "30000", 5)], id="8 group"),
    pytest.param(
        GROUP, "share.delivery.count.limit", [("group.share.delivery.count.limit", "5", 5)], id="5 the broker's default"
    ),
    pytest.param(
        GROUP,
        "share.isolation.level",
        [("share.isolation.level", "read_uncommitted", 5)],
        id="5 default, of a key that only groups have",
    ),
    pytest.param(BROKER, BROKER_LOCK, [(BROKER_LOCK, "20000", 4), (BROKER_LOCK, "30000", 5)], id="4 a broker's"),
    pytest.param(
        BROKER, "log.segment.bytes", [("log.segment.bytes", "100", 3), ("log.segment.bytes", "1073741824", 5)], id="3"
    ),
]


@pytest.mark.parametrize(("kind", "key", "expected"), SYNONYMS)
def test_synonyms_list_each_source_of_a_value(
    requester: Requester, kind: int, key: str, expected: list[tuple[str, str, int]]
) -> None:
    """The resource's own entry comes before broker-level entries (2.12); the first is in force."""
    name = {TOPIC: "orders", GROUP: "g", BROKER: "0"}[ResourceType(kind)]
    assert alter(requester, BROKER, "", [("log.segment.bytes", SET, "100")]) is E.NONE
    assert alter(requester, GROUP, "g", [(LOCK, SET, "45000")]) is E.NONE
    config = one(requester, kind, name, key, include_synonyms=True)
    assert [(s.name, s.value, s.source) for s in config.synonyms] == expected
    assert (config.value, config.config_source) == expected[0][1:]
    assert one(requester, kind, name, key).synonyms == ()


@pytest.mark.parametrize(
    ("kind", "name", "key", "expected"),
    [
        pytest.param(TOPIC, "orders", "preallocate", ConfigType.BOOLEAN, id="2.12 1 boolean"),
        pytest.param(TOPIC, "orders", "compression.type", ConfigType.STRING, id="2.12 2 string"),
        pytest.param(TOPIC, "orders", "segment.bytes", ConfigType.INT, id="2.12 3 int"),
        pytest.param(TOPIC, "orders", "retention.ms", ConfigType.LONG, id="2.12 5 long"),
        pytest.param(TOPIC, "orders", "min.cleanable.dirty.ratio", ConfigType.DOUBLE, id="2.12 6 double"),
        pytest.param(TOPIC, "orders", "cleanup.policy", ConfigType.LIST, id="2.12 7 list"),
        pytest.param(BROKER, "0", "log.cleanup.policy", ConfigType.LIST, id="a broker's list"),
        pytest.param(BROKER, "0", "group.share.persister.class.name", ConfigType.CLASS, id="2.12 8 class"),
        pytest.param(BROKER, "0", "log.retention.ms", ConfigType.LONG, id="a broker's long"),
        pytest.param(BROKER, "0", "num.partitions", ConfigType.INT, id="a broker's int"),
        pytest.param(BROKER, "0", "auto.create.topics.enable", ConfigType.BOOLEAN, id="a broker's boolean"),
        pytest.param(GROUP, "g", LOCK, ConfigType.INT, id="a group's int"),
        pytest.param(GROUP, "g", "share.auto.offset.reset", ConfigType.STRING, id="a group's string"),
        pytest.param(GROUP, "g", "share.renew.acknowledge.enable", ConfigType.BOOLEAN, id="a group's boolean"),
    ],
)
def test_config_types_are_those_of_kafka(
    requester: Requester, kind: int, name: str, key: str, expected: ConfigType
) -> None:
    config = one(requester, kind, name, key)
    assert (ConfigType(config.config_type), config.is_sensitive) == (expected, False)


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        pytest.param(BROKER, "0", "group.share.assignor.offload.enable", id="broker"),
        pytest.param(GROUP, "g", "share.assignor.offload.enable", id="group"),
    ],
)
def test_internal_configurations_are_described_only_if_they_are_set(
    requester: Requester, kind: int, name: str, key: str
) -> None:
    assert describe_configs(requester, kind, name, key).configs == ()
    assert alter(requester, kind, "" if kind == BROKER else name, [(key, SET, "false")]) is E.NONE
    assert one(requester, kind, name, key).value == "false"


def test_documentation_is_described_on_request(requester: Requester) -> None:
    assert one(requester, TOPIC, "orders", "retention.ms").documentation is None
    found = describe_configs(requester, BROKER, "0", include_documentation=True).configs
    assert all(config.documentation for config in found)


def test_read_only_configurations_cannot_be_altered(requester: Requester) -> None:
    found = {config.name: config.read_only for config in describe_configs(requester, BROKER, "0").configs}
    assert {key for key, read_only in found.items() if read_only} == READ_AT_START & found.keys()
    for key in READ_AT_START:
        assert alter(requester, BROKER, "", [(key, SET, "1")]) is E.INVALID_REQUEST


@pytest.mark.parametrize(
    ("group", "key", "default"),
    [
        pytest.param("g", "share.auto.offset.reset", "latest", id="2.12 share.auto.offset.reset"),
        pytest.param("g", "share.isolation.level", "read_uncommitted", id="2.12 share.isolation.level"),
        pytest.param("g", "share.delivery.count.limit", "5", id="2.12 share.delivery.count.limit"),
        pytest.param("g", "share.partition.max.record.locks", "2000", id="2.12 share.partition.max.record.locks"),
        pytest.param("g", "share.session.timeout.ms", "45000", id="2.12 share.session.timeout.ms"),
        pytest.param("g", "share.heartbeat.interval.ms", "5000", id="2.12 share.heartbeat.interval.ms"),
        pytest.param("g", "share.renew.acknowledge.enable", "true", id="2.12 share.renew.acknowledge.enable"),
        pytest.param("g", "consumer.session.timeout.ms", "45000", id="2.12 consumer.session.timeout.ms"),
        pytest.param("g", "consumer.heartbeat.interval.ms", "5000", id="2.12 consumer.heartbeat.interval.ms"),
    ],
)
def test_group_configurations_default_to_the_brokers(requester: Requester, group: str, key: str, default: str) -> None:
    config = one(requester, GROUP, group, key)
    assert (config.value, config.config_source, config.read_only) == (default, ConfigSource.DEFAULT, False)


# ---- IncrementalAlterConfigs -----------------------------------------------------------------------------------------

REFUSED = [
    pytest.param(TOPIC, "none", [("retention.ms", SET, "1")], E.UNKNOWN_TOPIC_OR_PARTITION, id="unknown topic"),
    pytest.param(TOPIC, "orders", [("retention.ms", SET, None)], E.INVALID_REQUEST, id="2.12 set to null"),
    pytest.param(TOPIC, "orders", [("cleanup.policy", APPEND, None)], E.INVALID_REQUEST, id="2.12 append null"),
    pytest.param(
        TOPIC,
        "orders",
        [("retention.ms", SET, "1"), ("retention.ms", DELETE, "")],
        E.INVALID_REQUEST,
        id="2.12 key twice",
    ),
    pytest.param(TOPIC, "orders", [("retention.ms", 4, "1")], E.INVALID_REQUEST, id="unknown operation"),
    pytest.param(TOPIC, "orders", [("colour", SET, "red")], E.INVALID_CONFIG, id="2.12 unknown key"),
    pytest.param(TOPIC, "orders", [("retention.ms", SET, "-2")], E.INVALID_CONFIG, id="2.12 bad value"),
    pytest.param(
        TOPIC, "orders", [("retention.ms", APPEND, "1")], E.INVALID_CONFIG, id="2.12 append to a value that is no list"
    ),
    pytest.param(
        TOPIC,
        "orders",
        [("retention.ms", SUBTRACT, "1")],
        E.INVALID_CONFIG,
        id="2.12 subtract from a value that is no list",
    ),
    pytest.param(TOPIC, "orders", [("colour", APPEND, "red")], E.INVALID_CONFIG, id="append to an unknown key"),
    pytest.param(TOPIC, "orders", [("cleanup.policy", APPEND, "burn")], E.INVALID_CONFIG, id="append an invalid value"),
    pytest.param(GROUP, "", [(LOCK, SET, "30000")], E.INVALID_REQUEST, id="2.12 a group without a name"),
    pytest.param(GROUP, "g", [("colour", SET, "red")], E.INVALID_CONFIG, id="2.12 a group's unknown key"),
    pytest.param(GROUP, "g", [(LOCK, SET, "14999")], E.INVALID_CONFIG, id="2.12 below the broker's bound"),
    pytest.param(GROUP, "g", [(LOCK, SET, "60001")], E.INVALID_CONFIG, id="2.12 above the broker's bound"),
    pytest.param(
        GROUP,
        "g",
        [("errors.deadletterqueue.topic.name", SET, "dlq")],
        E.INVALID_CONFIG,
        id="a dead-letter queue, which share.version 1 lacks",
    ),
    pytest.param(BROKER, "", [("colour", SET, "red")], E.INVALID_REQUEST, id="a broker's unknown key"),
    pytest.param(BROKER, "", [("num.partitions", SET, "0")], E.INVALID_REQUEST, id="2.12 a broker's bad value"),
    pytest.param(
        BROKER, "", [("group.share.persister.class.name", SET, "")], E.INVALID_REQUEST, id="2.12 non-dynamic broker key"
    ),
    pytest.param(BROKER, "0", [("num.partitions", SET, "3")], E.INVALID_REQUEST, id="a single broker"),
    pytest.param(LOGGER, "0", [("root", SET, "DEBUG")], E.INVALID_CONFIG, id="a logger"),
    pytest.param(LOGGER, "1", [("root", SET, "DEBUG")], E.INVALID_REQUEST, id="another broker's logger"),
    pytest.param(METRICS, "m", [("interval.ms", SET, "1")], E.INVALID_REQUEST, id="client metrics"),
    pytest.param(3, "x", [], E.INVALID_REQUEST, id="unknown resource type"),
]


@pytest.mark.parametrize(("kind", "name", "operations", "error"), REFUSED)
def test_invalid_alterations_are_refused_and_have_no_effect(
    requester: Requester, kind: int, name: str, operations: Operations, error: Errors
) -> None:
    before = requester.cluster.image
    assert alter(requester, kind, name, operations) is error
    assert requester.cluster.image is before


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([("retention.ms", SET, "7")], {"cleanup.policy": "compact", "retention.ms": "7"}, id="2.12 0 set"),
        pytest.param([("cleanup.policy", DELETE, None)], {}, id="2.12 1 delete"),
        pytest.param([("retention.ms", DELETE, None)], {"cleanup.policy": "compact"}, id="2.12 1 delete an absent key"),
        pytest.param([("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "compact,delete"}, id="2.12 2 append"),
        pytest.param([("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "compact"}, id="2.12 2 append again"),
        pytest.param(
            [("cleanup.policy", SUBTRACT, "compact")], {"cleanup.policy": ""}, id="2.12 3 subtract the last entry"
        ),
        pytest.param(
            [("leader.replication.throttled.replicas", APPEND, "0:1,1:0")],
            {"cleanup.policy": "compact", "leader.replication.throttled.replicas": "0:1,1:0"},
            id="2.12 2 append to the default",
        ),
        pytest.param(
            [("cleanup.policy", SET, "compact,delete"), ("retention.ms", SET, "1")],
            {"cleanup.policy": "compact,delete", "retention.ms": "1"},
            id="two keys at once",
        ),
    ],
)
def test_set_delete_and_append_change_a_configuration(
    cluster: Cluster, requester: Requester, operations: Operations, expected: Mapping[str, str]
) -> None:
    before = dict(cluster.image.topics["orders"].configs)
    assert alter(requester, TOPIC, "orders", operations, validate_only=True) is E.NONE
    assert cluster.image.topics["orders"].configs == before
    assert alter(requester, TOPIC, "orders", operations) is E.NONE
    assert cluster.image.topics["orders"].configs == expected


def test_subtract_removes_list_entries(cluster: Cluster, requester: Requester) -> None:
    alter(requester, TOPIC, "orders", [("cleanup.policy", SET, "compact,delete")])
    assert alter(requester, TOPIC, "orders", [("cleanup.policy", SUBTRACT, "compact")]) is E.NONE
    assert cluster.image.topics["orders"].configs == {"cleanup.policy": "delete"}


def test_deleting_a_dynamic_broker_value_restores_the_static_one(cluster: Cluster, requester: Requester) -> None:
    for operation, value, expected in ((SET, "9000", "9000"), (DELETE, None, "5000")):
        assert alter(requester, BROKER, "", [("log.retention.ms", operation, value)]) is E.NONE
        assert one(requester, TOPIC, "orders", "retention.ms").value == expected
        assert cluster.log("orders", 0).config.retention_ms == int(expected), "the log uses the new value"


def test_a_resource_named_twice_is_not_altered(cluster: Cluster, requester: Requester) -> None:
    config = IncrementalAlterConfigsRequest.Config(name="retention.ms", config_operation=SET, value="1")
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=TOPIC, resource_name="orders", configs=(config,))
    found = requester.ask(IncrementalAlterConfigsRequest(resources=(resource, resource)), 1).responses
    assert [result.error_code for result in found] == [E.INVALID_REQUEST] * 2
    assert "retention.ms" not in cluster.image.topics["orders"].configs


# ---- AlterConfigs ----------------------------------------------------------------------------------------------------


def replace(
    requester: Requester, kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False
) -> Errors:
    resource = AlterConfigsRequest.Resource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(AlterConfigsRequest.Config(name=key, value=value) for key, value in configs),
    )
    (found,) = requester.ask(AlterConfigsRequest(resources=(resource,), validate_only=validate_only), 2).responses
    error = found.error_code
    assert isinstance(error, Errors)
    return error


def test_alter_configs_replaces_all_overrides(cluster: Cluster, requester: Requester) -> None:
    assert replace(requester, TOPIC, "orders", ("retention.ms", "7"), validate_only=True) is E.NONE
    assert cluster.image.topics["orders"].configs == {"cleanup.policy": "compact"}
    assert replace(requester, TOPIC, "orders", ("retention.ms", "7")) is E.NONE
    assert cluster.image.topics["orders"].configs == {"retention.ms": "7"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "error"),
    [
        pytest.param(TOPIC, "none", [], E.UNKNOWN_TOPIC_OR_PARTITION, id="unknown topic"),
        pytest.param(TOPIC, "orders", [("retention.ms", None)], E.INVALID_REQUEST, id="null"),
        pytest.param(TOPIC, "orders", [("retention.ms", "1")] * 2, E.INVALID_REQUEST, id="duplicate key"),
        pytest.param(TOPIC, "orders", [("colour", "red")], E.INVALID_CONFIG, id="unknown key"),
        pytest.param(BROKER, "0", [], E.INVALID_REQUEST, id="a single broker"),
    ],
)
def test_invalid_replacements_are_refused(
    requester: Requester, kind: int, name: str, configs: list[Any], error: Errors
) -> None:
    before = requester.cluster.image
    assert replace(requester, kind, name, *configs) is error
    assert requester.cluster.image is before
