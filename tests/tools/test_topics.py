"""kafka-topics and kafka-configs on a shareq cluster and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tools.side_by_side import SideBySide

Fresh = Callable[[str], str]


def test_a_topic_is_created_described_and_deleted(both: SideBySide, fresh: Fresh) -> None:
    topic = fresh("orders")
    created = both.run(
        "kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=5000"
    )
    assert created.out == (f"Created topic {topic}.",)
    assert both.run("kafka-topics", "--list", "--topic", topic).out == (topic,)
    described = both.run("kafka-topics", "--describe", "--topic", topic)
    assert f"Topic: {topic} TopicId: ID PartitionCount: 2 ReplicationFactor: 1" in described.out[-1].replace("\t", " ")
    assert "retention.ms=5000" in described.out[-1]
    assert both.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "3").code == 0
    assert len(both.run("kafka-topics", "--describe", "--topic", topic).out) == 4
    assert both.run("kafka-topics", "--delete", "--topic", topic).code == 0
    assert both.run("kafka-topics", "--list", "--exclude-internal", "--topic", topic).out == ()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(["--create", "--topic", "{topic}"], "TopicExistsException", id="existing topic"),
        pytest.param(["--create", "--topic", "{topic}/"], "InvalidTopicException", id="an illegal name"),
        pytest.param(
            ["--create", "--topic", "{topic}-3", "--replication-factor", "3"],
            "InvalidReplicationFactorException",
            id="too many replicas",
        ),
        pytest.param(
            ["--create", "--topic", "{topic}-c", "--config", "retention.ms=long"], "ConfigException", id="a bad value"
        ),
        pytest.param(
            ["--alter", "--topic", "{topic}", "--partitions", "1"],
            "InvalidPartitionsException",
            id="not more partitions",
        ),
        pytest.param(
            ["--describe", "--topic", "{topic}-gone"], "IllegalArgumentException", id="describe a missing topic"
        ),
        pytest.param(["--delete", "--topic", "{topic}-gone"], "IllegalArgumentException", id="delete a missing topic"),
    ],
)
def test_kafka_topics_commands_that_are_refused(
    both: SideBySide, fresh: Fresh, arguments: list[str], error: str
) -> None:
    topic = fresh("orders")
    both.create(topic)
    both.refuse("kafka-topics", *(argument.format(topic=topic) for argument in arguments), error=error)


def test_group_configurations_are_altered_and_described(both: SideBySide, fresh: Fresh) -> None:
    group = fresh("payments")
    entity = ("--entity-type", "groups", "--entity-name", group)
    settings = "share.auto.offset.reset=earliest,share.record.lock.duration.ms=20000"
    altered = both.run("kafka-configs", "--alter", *entity, "--add-config", settings)
    assert altered.out == (f"Completed updating config for group {group}.",)
    described = both.run("kafka-configs", "--describe", *entity)
    assert [line.partition(" ")[0] for line in described.out[1:]] == settings.split(",")
    assert both.run("kafka-configs", "--describe", "--all", *entity).code == 0
    both.run("kafka-configs", "--alter", *entity, "--delete-config", "share.record.lock.duration.ms")
    assert len(both.run("kafka-configs", "--describe", *entity).out) == 2


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        pytest.param("share.record.lock.duration.ms=999", "InvalidConfigurationException", id="below the minimum"),
        pytest.param("share.delivery.count.limit=many", "InvalidConfigurationException", id="no number"),
        pytest.param("share.colour=blue", "InvalidConfigurationException", id="unknown key"),
        pytest.param("share.auto.offset.reset=soon", "InvalidConfigurationException", id="invalid choice"),
    ],
)
def test_kafka_configs_values_that_are_refused(both: SideBySide, fresh: Fresh, setting: str, error: str) -> None:
    both.refuse("kafka-configs", "--alter", "--group", fresh("payments"), "--add-config", setting, error=error)
