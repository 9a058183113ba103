"""Operations on configurations of topics, groups and brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import Operation, Send
from shareq.admin.results import ConfigEntry, ConfigSynonym, Results
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.describe import ListConfigResourcesRequest
from shareq.model.messages.topics import (
    AlterOperation,
    ConfigSource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    ResourceType,
)

RESOURCES = {
    "topic": ResourceType.TOPIC,
    "broker": ResourceType.BROKER,
    "group": ResourceType.GROUP,
    "broker-logger": ResourceType.BROKER_LOGGER,
    "client-metrics": ResourceType.CLIENT_METRICS,
}
_OF_ONE_BROKER = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})

ConfigChange = object | None | tuple[str, object]
"""A new value, None for the default, or ("append" | "subtract", value) for lists."""

Change = str | tuple[str, str | None] | None
"""A change with its value as text."""


def describe_configs(
    routing: BrokerRouting, resource_type: ResourceType, name: str, keys: Sequence[str] | None
) -> Operation[Results[str, ConfigEntry]]:
    (found,) = (yield from describe_many(routing, resource_type, [name], keys)).values()
    return found


def describe_many(
    routing: BrokerRouting, resource_type: ResourceType, names: Sequence[str], keys: Sequence[str] | None
) -> Operation[dict[str, Results[str, ConfigEntry]]]:
    """The configurations of several resources by name, with one request; of brokers only one can be named. Raises the
    first error."""
    resources = tuple(
        DescribeConfigsRequest.Resource(
            resource_type=resource_type, resource_name=name, configuration_keys=None if keys is None else tuple(keys)
        )
        for name in names
    )
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
    response = yield from _send(routing, request, resource_type, names[0])
    for result in response.results:
        _check(result.error_code, result.error_message)
    return {
        result.resource_name: Results({config.name: _entry(config) for config in result.configs})
        for result in response.results
    }


def _entry(config: DescribeConfigsResponse.Config) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_source(config.config_source),
        read_only=config.read_only,
        documentation=config.documentation,
        sensitive=config.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(name=synonym.name, value=synonym.value, source=_source(synonym.source))
            for synonym in config.synonyms
        ),
    )


def _source(code: int) -> str:
    return ConfigSource(code).name.lower()


def list_resources(routing: BrokerRouting, resource_type: ResourceType) -> Operation[list[str]]:
    """The names of the resources of one type that may have configurations."""
    response = yield from routing.any_broker(ListConfigResourcesRequest(resource_types=(resource_type,)))
    _check(response.error_code, None)
    return sorted(resource.resource_name for resource in response.config_resources)


def incremental_alter_configs(
    routing: BrokerRouting,
    resource_type: ResourceType,
    name: str,
    changes: Mapping[str, Change],
    *,
    validate_only: bool,
) -> Operation[None]:
    """Make all changes, or none and raise KafkaException."""
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=resource_type,
        resource_name=name,
        configs=tuple(_change(key, change) for key, change in changes.items()),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    response = yield from _send(routing, request, resource_type, name)
    result = response.responses[0]
    _check(result.error_code, result.error_message)


def _send(
    routing: BrokerRouting,
    request: DescribeConfigsRequest | IncrementalAlterConfigsRequest,
    resource_type: ResourceType,
    name: str,
) -> Operation[Any]:
    """Send the request to the broker that it names, otherwise to any broker."""
    if resource_type not in _OF_ONE_BROKER or not name:
        return (yield from routing.any_broker(request))
    image = yield from routing.metadata(())
    node = next((broker.node_id for broker in image.brokers if str(broker.node_id) == name), ANY_NODE)
    if node == ANY_NODE:
        raise KafkaException(KafkaError(Errors.BROKER_NOT_AVAILABLE, f"broker {name!r} is not in the cluster"))
    ((response, error, reason),) = yield [Send(node, request)]
    _check(error, reason or f"broker {name} does not answer")
    return response


def _check(error: Errors, message: str | None) -> None:
    if error:
        raise KafkaException(KafkaError(error, message))


def _change(key: str, change: Change) -> IncrementalAlterConfigsRequest.Config:
    operation = AlterOperation.DELETE if change is None else AlterOperation.SET
    if isinstance(change, tuple):
        operation, change = AlterOperation[change[0].upper()], change[1]
    return IncrementalAlterConfigsRequest.Config(name=key, config_operation=operation, value=change)
