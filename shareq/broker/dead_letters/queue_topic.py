"""The topic of a group's dead-letter queue: whether it may be written to, and its creation.

Source: KIP-1191; the checks and their order are those of Kafka 4.4's ShareGroupDLQManager.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.log.config import LogConfig
from shareq.model.dead_letter_configs import AUTO_CREATE, ENABLED, NAME_PREFIX, why_no_queue_name
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.topics import (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ResourceType,
)

READ_CONFIGS = (ENABLED, "max.message.bytes", "cleanup.policy")
"""The configurations of the topic that matter to the writer."""


def described_configs(response: DescribeConfigsResponse) -> dict[str, str]:
    """The configurations in the answer to `description`. A Kafka before 4.4 does not know that a topic may be a
    dead-letter queue: there, any topic may."""
    found = {config.name: config.value for config in response.results[0].configs if config.value is not None}
    return {ENABLED: "true", **found}


def description(name: str) -> DescribeConfigsRequest:
    """The request for the configurations of a topic."""
    resource = DescribeConfigsRequest.Resource(
        resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=READ_CONFIGS
    )
    return DescribeConfigsRequest(resources=(resource,))


class Queue(NamedTuple):
    """A dead-letter queue that exists and may be written to. `max_bytes`: the size of its largest batch. `needs_keys`:
    its log is compacted, and refuses records without a key."""

    topic: TopicImage
    max_bytes: int
    needs_keys: bool


class Missing(NamedTuple):
    """The topic does not exist, and is to be created."""

    name: str


class Unusable(NamedTuple):
    """The topic cannot be written to now."""

    reason: str


def find_queue(name: str, source: str, image: ClusterImage, topic: TopicImage | None) -> Queue | Missing | Unusable:
    """The dead-letter queue `name` of records of the topic `source`; `topic` has its configurations, None if it does
    not exist."""
    broker = image.broker_config
    if name == source:
        return Unusable("the dead-letter queue is the topic of the records")
    if topic is not None and topic.configs.get(ENABLED, "false").lower() != "true":
        return Unusable(f"topic {name} is not a dead-letter queue: {ENABLED} is not true")
    if topic is None and not broker[AUTO_CREATE]:
        return Unusable(f"topic {name} does not exist, and {AUTO_CREATE} is false")
    why = why_no_queue_name(name, broker[NAME_PREFIX])
    if why:
        return Unusable(why)
    if topic is None:
        return Missing(name)
    config = LogConfig.effective(topic.configs, broker)
    return Queue(topic, config.max_message_bytes, config.compact)


def creation(name: str, *, enabled: bool = True) -> CreateTopicsRequest:
    """The request that creates a dead-letter queue, with the broker's counts of partitions and replicas. `enabled`:
    the brokers know the configuration of topics that makes it one."""
    configs = (*(((ENABLED, "true"),) if enabled else ()), ("message.timestamp.type", "CreateTime"))
    return CreateTopicsRequest(topics=(CreateTopicsRequest.Topic(name=name, configs=configs),), timeout_ms=30_000)
