"""Operations on configurations of topics, groups and brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import Ask, Operation
from shareq.admin.results import ConfigEntry, Results
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.topics import (
    AlterOperation,
    ConfigSource,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ResourceType,
)

RESOURCES = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER, "group": ResourceType.GROUP}

ConfigChange = object | None | tuple[str, object]
"""A new value, None for the default, or ("append" | "subtract", value) for lists."""

Change = str | tuple[str, str | None] | None
"""A change with its value as text."""


def describe_configs(
    routing: BrokerRouting, resource_type: ResourceType, name: str, keys: Sequence[str] | None
) -> Operation[Results[str, ConfigEntry]]:
    resource = DescribeConfigsRequest.Resource(
        resource_type=resource_type, resource_name=name, configuration_keys=None if keys is None else tuple(keys)
    )
    request = DescribeConfigsRequest(resources=(resource,), include_documentation=True)
    response = yield from _ask(routing, request, resource_type, name)
    result = response.results[0]
    _check(result.error_code, result.error_message)
    return Results(
        {
            config.name: ConfigEntry(
                name=config.name,
                value=config.value,
                source=ConfigSource(config.config_source).name.lower(),
                read_only=config.read_only,
                documentation=config.documentation,
            )
            for config in result.configs
        }
    )


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
    response = yield from _ask(routing, request, resource_type, name)
    result = response.responses[0]
    _check(result.error_code, result.error_message)


def _ask(
    routing: BrokerRouting,
    request: DescribeConfigsRequest | IncrementalAlterConfigsRequest,
    resource_type: ResourceType,
    name: str,
) -> Operation[Any]:
    """Send the request to the broker that it names, otherwise to any broker."""
    if resource_type is not ResourceType.BROKER or not name:
        return (yield from routing.any_broker(request))
    image = yield from routing.metadata(())
    node = next((broker.node_id for broker in image.brokers if str(broker.node_id) == name), ANY_NODE)
    if node == ANY_NODE:
        raise KafkaException(KafkaError(Errors.BROKER_NOT_AVAILABLE, f"broker {name!r} is not in the cluster"))
    ((response, error, reason),) = yield [Ask(node, request)]
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
