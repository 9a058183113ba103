"""The configurations of groups that a monitor needs: read at first sight of a group, and again when they are old."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.admin.core import Operation, Send
from shareq.model.actor import ANY_NODE
from shareq.model.experiments import DELIVERY
from shareq.model.messages.topics import DescribeConfigsRequest, ResourceType
from shareq.observer.health.partition_judge import (
    DELIVERY_LIMIT,
    ISOLATION,
    LOCK_DURATION,
    OFFSET_RESET,
    RECORD_LOCKS,
)
from shareq.observer.health.reading import Reading

KEYS = (LOCK_DURATION, DELIVERY_LIMIT, RECORD_LOCKS, OFFSET_RESET, ISOLATION, DELIVERY)
BROKER_KEYS = {key: f"group.{key}" for key in (LOCK_DURATION, DELIVERY_LIMIT, RECORD_LOCKS)}
"""The broker's configurations that count where a version of Kafka has no such configuration of groups."""


class GroupConfigs:
    """`refresh`: read the configurations of all groups in the next poll."""

    def __init__(self) -> None:
        self.refresh = True
        self._known: dict[str, dict[str, str]] = {}
        self._of_brokers: dict[str, str] = {}

    def read(self, reading: Reading, coordinators: Mapping[str, int]) -> Operation[None]:
        """Set the configurations of all groups. Where they cannot be read, Kafka's defaults count."""
        wanted = [name for name in reading.groups if self.refresh or name not in self._known]
        if wanted:
            self._known = {name: known for name, known in self._known.items() if name in reading.groups}
            self.refresh = False
            yield from self._read_groups(wanted)
            missing = any(key not in self._known.get(name, ()) for name in wanted for key in BROKER_KEYS)
            if missing and coordinators:
                yield from self._read_broker(next(iter(coordinators.values())))
        for name, group in reading.groups.items():
            group.configs = self._of_brokers | self._known.get(name, {})

    def _read_groups(self, names: list[str]) -> Operation[None]:
        resources = tuple(
            DescribeConfigsRequest.Resource(
                resource_type=ResourceType.GROUP, resource_name=name, configuration_keys=KEYS
            )
            for name in names
        )
        (reply,) = yield [Send(ANY_NODE, DescribeConfigsRequest(resources=resources))]
        for result in reply.response.results if reply.response is not None else ():
            if not result.error_code:
                self._known[result.resource_name] = {c.name: c.value for c in result.configs if c.value is not None}
            self._known.setdefault(result.resource_name, {})  # refused: ask again when the others are read again

    def _read_broker(self, node: int) -> Operation[None]:
        resource = DescribeConfigsRequest.Resource(
            resource_type=ResourceType.BROKER,
            resource_name=str(node),
            configuration_keys=tuple(BROKER_KEYS.values()),
        )
        (reply,) = yield [Send(node, DescribeConfigsRequest(resources=(resource,)))]
        names = {of_broker: of_group for of_group, of_broker in BROKER_KEYS.items()}
        for result in reply.response.results if reply.response is not None else ():
            self._of_brokers |= {names[c.name]: c.value for c in result.configs if c.name in names and c.value}
