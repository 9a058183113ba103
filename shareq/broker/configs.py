"""Configurations with the sources of their values, and the response to DescribeConfigs.

The effective value is that of the first source that has one: the topic or group, then the corresponding broker
configuration (its synonym): dynamic default, static configuration, default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from shareq.broker.placement import NO_ERROR, ErrorWithMessage, refuse_name
from shareq.log.config import known_topic_configs
from shareq.model.authorizer_configs import ALLOW_IF_UNCOVERED, AUTHORIZER_CONFIGS, SUPER_USERS
from shareq.model.configs import BROKER_CONFIGS, ConfigDef, known_group_configs
from shareq.model.errors import Errors
from shareq.model.experiments import ENABLE
from shareq.model.image import ClusterImage
from shareq.model.messages.topics import (
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ResourceType,
)
from shareq.model.numbers import plain
from shareq.model.security_configs import FAILURE_DELAY_MS, MAX_REAUTH_MS, SECURITY_CONFIGS
from shareq.model.topic_configs import TOPIC_CONFIGS

READ_AT_START = frozenset(
    {
        *(config.key for config in AUTHORIZER_CONFIGS),
        "connections.max.idle.ms",
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
        ENABLE,
        "group.share.persister.class.name",
        "quota.window.num",
        "quota.window.size.seconds",
        "share.coordinator.append.linger.ms",
        "share.coordinator.load.buffer.size",
        "share.coordinator.threads",
        "socket.request.max.bytes",
        *(
            key
            for key in BROKER_CONFIGS
            if key.startswith(("offsets.topic.", "share.coordinator.state.topic.", "transaction.state.log."))
        ),
        *(d.key for d in SECURITY_CONFIGS if d.key not in (FAILURE_DELAY_MS, MAX_REAUTH_MS)),
    }
)
"""Broker keys that are read only at the start. All others take effect at once; Kafka has fewer dynamic keys."""

INTERNAL = frozenset(
    {"group.share.assignor.offload.enable", "share.assignor.offload.enable", ALLOW_IF_UNCOVERED, SUPER_USERS, ENABLE}
)
"""Keys that are described only if they are set: internal ones, those that Kafka leaves to its authorizer, and the
switch of the experiments, which Kafka does not have."""

NULL_BY_DEFAULT = frozenset(
    {
        "log.flush.interval.ms",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        *(d.key for d in SECURITY_CONFIGS if d.default == "" and d.type is not ConfigType.LIST),
    }
)
"""Broker keys without a default. In Kafka another key, mostly one in hours, provides that of a log's."""

OF_TOPICS_ALONE = frozenset(
    {
        "errors.deadletterqueue.group.enable",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }
)
"""Topic keys without a corresponding broker key."""

SourcedValue = tuple[str, str, ConfigSource]
"""A configuration entry with its source: (key, value, source)."""


class DescribedConfig(NamedTuple):
    """A configuration; `values`: the value of every source that has one, the effective one first."""

    key: str
    value: str | None
    type: ConfigType
    doc: str
    values: tuple[SourcedValue, ...]
    read_only: bool = False

    @property
    def source(self) -> ConfigSource:
        return self.values[0][2] if self.values else ConfigSource.DEFAULT


# ---- configurations by resource --------------------------------------------------------------------------------------


def _broker_values(key: str, image: ClusterImage) -> Iterator[SourcedValue]:
    """The values of a broker key, the effective one first."""
    if key in image.dynamic_configs:
        yield key, image.dynamic_configs[key], ConfigSource.DYNAMIC_DEFAULT_BROKER
    if key in image.static_configs:
        yield key, config_text(image.static_configs[key]), ConfigSource.STATIC_BROKER
    if key not in NULL_BY_DEFAULT:
        yield key, config_text(BROKER_CONFIGS[key].default), ConfigSource.DEFAULT


def topic_configs(overrides: Mapping[str, str], image: ClusterImage) -> Iterator[DescribedConfig]:
    """All configurations of a topic with the given overrides."""
    for key, d in known_topic_configs(image.broker_config).items():
        values = _override(key, overrides, ConfigSource.TOPIC)
        if d.synonym in BROKER_CONFIGS:
            values += tuple(_broker_values(d.synonym, image))
        elif d.synonym not in NULL_BY_DEFAULT | OF_TOPICS_ALONE:
            values += ((d.synonym, config_text(d.default), ConfigSource.DEFAULT),)
        yield DescribedConfig(key, values[0][1] if values else config_text(d.default), d.type, d.doc, values)


def group_configs(overrides: Mapping[str, str], image: ClusterImage) -> Iterator[DescribedConfig]:
    """All configurations of a group with the given overrides; the group need not exist."""
    for key, d in known_group_configs(image.broker_config).items():
        values = _override(key, overrides, ConfigSource.GROUP)
        if d.broker_key:
            values += tuple(_broker_values(d.broker_key, image))
        else:
            values += ((key, config_text(d.default), ConfigSource.DEFAULT),)
        if key not in INTERNAL or values[0][2] is not ConfigSource.DEFAULT:
            yield DescribedConfig(key, values[0][1], d.type, d.doc, values)


def broker_configs(image: ClusterImage) -> Iterator[DescribedConfig]:
    """All configurations of a broker."""
    for key, d in BROKER_CONFIGS.items():
        values = tuple(_broker_values(key, image))
        entry = DescribedConfig(key, values[0][1] if values else None, d.type, d.doc, values, key in READ_AT_START)
        if key not in INTERNAL or entry.source is not ConfigSource.DEFAULT:
            yield entry


def _override(key: str, overrides: Mapping[str, str], source: ConfigSource) -> tuple[SourcedValue, ...]:
    return ((key, overrides[key], source),) if key in overrides else ()


def is_list(resource_type: int, key: str) -> bool:
    """True for a configuration that is a list, to which APPEND applies."""
    tables: dict[int, dict[str, ConfigDef]] = {ResourceType.TOPIC: TOPIC_CONFIGS, ResourceType.BROKER: BROKER_CONFIGS}
    definition = tables.get(resource_type, {}).get(key)
    return definition is not None and definition.type is ConfigType.LIST


def config_text(value: object) -> str:
    """The value of a configuration as text: true and false as Kafka writes them."""
    value = plain(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- DescribeConfigs -------------------------------------------------------------------------------------------------


def describe_configs(request: DescribeConfigsRequest, image: ClusterImage, broker_id: int) -> DescribeConfigsResponse:
    # A resource that is named several times is described once: a request may name it thousands of times.
    results = {
        requested: _result(requested, request, image, broker_id) for requested in dict.fromkeys(request.resources)
    }
    return DescribeConfigsResponse(results=tuple(results[requested] for requested in request.resources))


def _result(
    requested: DescribeConfigsRequest.Resource, request: DescribeConfigsRequest, image: ClusterImage, broker_id: int
) -> DescribeConfigsResponse.Result:
    (error, why), entries = _described(requested, image, broker_id)
    keys = requested.configuration_keys
    return DescribeConfigsResponse.Result(
        resource_type=requested.resource_type,
        resource_name=requested.resource_name,
        configs=tuple(_config(entry, request) for entry in entries if not keys or entry.key in keys),
        error_code=error,
        error_message=why,
    )


def _described(
    requested: DescribeConfigsRequest.Resource, image: ClusterImage, broker_id: int
) -> tuple[ErrorWithMessage, Iterable[DescribedConfig]]:
    name = requested.resource_name
    if requested.resource_type == ResourceType.TOPIC:
        topic = image.topics.get(name)
        return (NO_ERROR, topic_configs(topic.configs, image)) if topic else (no_topic(name), ())
    if requested.resource_type in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        if not name:
            return (Errors.INVALID_REQUEST, "the name is empty"), ()
        is_group = requested.resource_type == ResourceType.GROUP
        return NO_ERROR, group_configs(image.group_configs.get(name, {}), image) if is_group else ()
    if requested.resource_type == ResourceType.BROKER and not name:  # only the dynamic defaults
        return NO_ERROR, (entry for entry in broker_configs(image) if entry.key in image.dynamic_configs)
    if requested.resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        if name != str(broker_id):
            return (Errors.INVALID_REQUEST, f"broker {name!r}: this is broker {broker_id}"), ()
        return NO_ERROR, broker_configs(image) if requested.resource_type == ResourceType.BROKER else ()
    return unknown_type(requested.resource_type), ()


def no_topic(name: str) -> ErrorWithMessage:
    illegal = refuse_name(name)
    return illegal if illegal[0] else (Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist")


def unknown_type(resource_type: int) -> ErrorWithMessage:
    return Errors.INVALID_REQUEST, f"resource type {resource_type}: must be one of {[int(t) for t in ResourceType]}"


def _config(entry: DescribedConfig, request: DescribeConfigsRequest) -> DescribeConfigsResponse.Config:
    return DescribeConfigsResponse.Config(
        name=entry.key,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        synonyms=tuple(
            DescribeConfigsResponse.Synonym(name=key, value=value, source=source) for key, value, source in entry.values
        )
        if request.include_synonyms
        else (),
        config_type=entry.type,
        documentation=entry.doc if request.include_documentation else None,
    )
