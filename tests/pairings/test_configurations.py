"""DescribeConfigs on a shareq cluster, without and with a backend, and on Apache Kafka: equal keys, values, sources,
types and synonyms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from shareq import Admin, NewTopic
from shareq.kafka import LocalKafka
from shareq.model.messages.topics import DescribeConfigsRequest, DescribeConfigsResponse, ResourceType
from shareq.wire.server import Server
from tests.kafka.fixtures import Reachable
from tests.polling import configure
from tests.wire.raw import Raw

Configs = dict[str, str | None]
TOPIC_OVERRIDES: Configs = {"cleanup.policy": "compact", "retention.ms": "5000", "flush.ms": "1000"}
GROUP_OVERRIDES: Configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "20000"}

OURS = {
    "group.consumer.regex.refresh.interval.ms",
    "group.share.initialize.retry.interval.ms",
    "group.share.persister.class.name",
    "max.share.sessions.per.ip",
    "share.coordinator.cold.partition.snapshot.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms",
}
"""Keys of brokers that Kafka does not describe, or does not have; DIFFERENCES.md has the latter."""

READ_AT_START = {"sasl.enabled.mechanisms", "ssl.client.auth", "ssl.principal.mapping.rules"}
"""Keys that Kafka can alter while a broker runs, and shareq cannot."""

OUR_DEFAULTS = {"listener.security.protocol.map", "queued.max.request.bytes"}
"""Keys of brokers with another default than in Kafka, or that a local Kafka sets itself."""


@pytest.fixture(params=["served", "backed"], ids=["shareq", "shareq-on-kafka"])
def ours(request: pytest.FixtureRequest) -> Reachable:
    found: Reachable = request.getfixturevalue(request.param)
    return found


def describe(broker: Reachable, kind: ResourceType, name: str) -> dict[str, DescribeConfigsResponse.Config]:
    """Configurations by key, without their documentation."""
    resource = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=None)
    with Raw(int(broker.bootstrap_servers.rpartition(":")[2])) as raw:
        (result,) = raw.ask(DescribeConfigsRequest(resources=(resource,), include_synonyms=True)).results
    assert not result.error_code, result.error_message
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("configs", [{}, TOPIC_OVERRIDES], ids=["defaults", "overrides"])
def test_topic_configurations_are_those_of_kafka(
    ours: Reachable, served: Server, kafka: LocalKafka, fresh: Callable[[str], str], configs: Configs
) -> None:
    topic = fresh("topic")
    for broker in (ours, kafka) if ours is served else (ours,):  # a backend is this Kafka
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            admin.create_topics([NewTopic(topic, 1, config=configs)]).check()
    assert describe(ours, ResourceType.TOPIC, topic) == describe(kafka, ResourceType.TOPIC, topic)


@pytest.mark.parametrize("configs", [{}, GROUP_OVERRIDES], ids=["defaults", "overrides"])
def test_group_configurations_are_those_of_kafka(
    ours: Reachable, kafka: LocalKafka, fresh: Callable[[str], str], configs: Configs
) -> None:
    """shareq offers no streams groups, and has keys of its own: `group.type`, `errors.deadletterqueue.unavailable`."""
    group = fresh("group")
    for broker in (ours, kafka):
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            if configs:
                configure(admin, group, configs)
    found = describe(ours, ResourceType.GROUP, group)
    apache = describe(kafka, ResourceType.GROUP, group)
    assert found.pop("group.type").value == ""
    assert found.pop("errors.deadletterqueue.unavailable").value == "wait"
    assert found == {key: config for key, config in apache.items() if not key.startswith("streams.")}


def test_broker_configurations_are_those_of_kafka(served: Server, kafka: LocalKafka) -> None:
    """shareq describes only keys with an effect, and more of them can be altered while the broker runs."""
    ours, apache = (describe(broker, ResourceType.BROKER, "0") for broker in (served, kafka))
    assert ours.keys() - apache.keys() == OURS
    for key in (ours.keys() & apache.keys()) - OUR_DEFAULTS:
        assert ours[key] == replace(apache[key], read_only=ours[key].read_only), key
        assert apache[key].read_only >= ours[key].read_only or key in READ_AT_START, key


def test_broker_configurations_of_a_backend_are_its_own(backed: Reachable, kafka: LocalKafka) -> None:
    assert describe(backed, ResourceType.BROKER, "0") == describe(kafka, ResourceType.BROKER, "0")
