"""Responses to AlterConfigs and IncrementalAlterConfigs: all changes of a resource are made, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from shareq.broker.configs import READ_AT_START, is_list, no_topic, unknown_type
from shareq.broker.controller import Changes, Controller
from shareq.broker.placement import ErrorWithMessage
from shareq.model.configs import BROKER_CONFIGS
from shareq.model.errors import Errors
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)
from shareq.model.topic_configs import TOPIC_CONFIGS


class _Resource(Protocol):
    """The resource of a request of either kind."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=_Resource)
T = TypeVar("T")


class _Target(NamedTuple):
    """A resource with configurations: its overrides, and the function that changes them."""

    overrides: Mapping[str, str]
    alter: Callable[[Changes, bool], ErrorWithMessage]


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, controller: Controller, broker_id: int
) -> IncrementalAlterConfigsResponse:
    """Set, delete, append to and subtract from single configurations."""

    def altered(asked: IncrementalAlterConfigsRequest.Resource) -> ErrorWithMessage:
        refused = _refuse_operations(asked)
        if refused is not None:
            return refused
        target = _target(asked, controller, broker_id)
        if not isinstance(target, _Target):
            return target
        changes = {config.name: _new_value(config, target.overrides) for config in asked.configs}
        return target.alter(changes, request.validate_only)

    return IncrementalAlterConfigsResponse(
        responses=_one_by_one(request.resources, altered, IncrementalAlterConfigsResponse.Result)
    )


def alter_configs(request: AlterConfigsRequest, controller: Controller, broker_id: int) -> AlterConfigsResponse:
    """Replace all overrides of a resource: a key that the request does not name gets its default."""

    def altered(asked: AlterConfigsRequest.Resource) -> ErrorWithMessage:
        target = _target(asked, controller, broker_id)
        if not isinstance(target, _Target):
            return target
        names = Counter(config.name for config in asked.configs)
        for config in asked.configs:
            if names[config.name] > 1 or config.value is None:
                return Errors.INVALID_REQUEST, f"{config.name}={config.value!r}: must be named once, with a value"
        changes = dict.fromkeys(target.overrides) | {config.name: config.value for config in asked.configs}
        return target.alter(changes, request.validate_only)

    results = _one_by_one(request.resources, altered, AlterConfigsResponse.Result)
    return AlterConfigsResponse(responses=results)


def _one_by_one(
    resources: Sequence[R], altered: Callable[[R], ErrorWithMessage], result: Callable[..., T]
) -> tuple[T, ...]:
    """A result for each resource; one that is named twice is not altered at all."""
    named = Counter((asked.resource_type, asked.resource_name) for asked in resources)
    results = []
    for asked in resources:
        kind, name = asked.resource_type, asked.resource_name
        twice = Errors.INVALID_REQUEST, f"resource {name!r} of type {kind}: named twice in the request"
        error, why = altered(asked) if named[kind, name] == 1 else twice
        results.append(result(resource_type=kind, resource_name=name, error_code=error, error_message=why))
    return tuple(results)


# ---- the resource ----------------------------------------------------------------------------------------------------


def _target(asked: _Resource, controller: Controller, broker_id: int) -> _Target | ErrorWithMessage:
    """The resource of a request, or the error of its type or name."""
    name, image = asked.resource_name, controller.image
    if asked.resource_type == ResourceType.TOPIC:
        topic = image.topics.get(name)
        return no_topic(name) if topic is None else _Target(topic.configs, partial(_alter_topic, controller, name))
    if asked.resource_type == ResourceType.GROUP:
        return _Target(image.group_configs.get(name, {}), partial(_alter_group, controller, name))
    if asked.resource_type == ResourceType.BROKER and not name:
        return _Target(image.dynamic_configs, partial(_alter_brokers, controller))
    if asked.resource_type == ResourceType.BROKER_LOGGER and name == str(broker_id):
        return Errors.INVALID_CONFIG, "there are no such loggers"
    why = _REFUSED.get(asked.resource_type)
    return unknown_type(asked.resource_type) if why is None else (Errors.INVALID_REQUEST, why)


_REFUSED: dict[int, str] = {
    ResourceType.BROKER: "all brokers are configured alike: alter the default, of empty name",
    ResourceType.BROKER_LOGGER: "these are another broker's loggers",
    ResourceType.CLIENT_METRICS: "metrics of clients are not collected",
}


def _alter_topic(controller: Controller, name: str, changes: Changes, validate_only: bool) -> ErrorWithMessage:
    return controller.alter_topic_configs(name, changes, validate_only=validate_only)


def _alter_group(controller: Controller, group_id: str, changes: Changes, validate_only: bool) -> ErrorWithMessage:
    return controller.alter_group_configs(group_id, changes, validate_only=validate_only)


def _alter_brokers(controller: Controller, changes: Changes, validate_only: bool) -> ErrorWithMessage:
    read_only = sorted(READ_AT_START.intersection(changes))
    if read_only:
        return Errors.INVALID_REQUEST, f"{read_only[0]}: is read when the cluster starts"
    return controller.alter_broker_configs(changes, validate_only=validate_only)


# ---- the changes -----------------------------------------------------------------------------------------------------


def _refuse_operations(asked: IncrementalAlterConfigsRequest.Resource) -> ErrorWithMessage | None:
    names = Counter(config.name for config in asked.configs)
    for config in asked.configs:
        operation = config.config_operation
        if names[config.name] > 1:
            return Errors.INVALID_REQUEST, f"{config.name} is altered twice in one request"
        if operation not in _OPERATIONS:
            return Errors.INVALID_REQUEST, f"{config.name}: there is no operation {operation}"
        if operation != AlterOperation.DELETE and config.value is None:
            return Errors.INVALID_REQUEST, f"{config.name}=None: a value is needed to set it"
        if operation in _ON_LISTS and not is_list(asked.resource_type, config.name):
            return Errors.INVALID_CONFIG, f"{config.name} is not a list: it can be set or deleted"
    return None


_OPERATIONS = frozenset(AlterOperation)
_ON_LISTS = frozenset((AlterOperation.APPEND, AlterOperation.SUBTRACT))


def _new_value(config: IncrementalAlterConfigsRequest.Config, old: Mapping[str, str]) -> str | None:
    """The new override of a configuration; None removes it."""
    if config.config_operation == AlterOperation.DELETE:
        return None
    if config.config_operation == AlterOperation.SET:
        return config.value
    default = TOPIC_CONFIGS.get(config.name) or BROKER_CONFIGS[config.name]
    before = [word for word in old.get(config.name, str(default.default)).split(",") if word]
    words = [word.strip() for word in (config.value or "").split(",")]
    if config.config_operation == AlterOperation.APPEND:
        return ",".join(dict.fromkeys(before + words))
    return ",".join(word for word in before if word not in words)
