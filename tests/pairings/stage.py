"""One scenario, four pairings: {shareq's share consumer, confluent-kafka's} on {shareq's broker, Apache Kafka}.

A scenario uses a share consumer as an application does and returns its observations as plain data. `pairing` makes a
test of it that runs both clients on one broker at the same time, each with its own topic and group. The value given to
`pairing` is the expected observation of all four, except for the entries of tests/pairings/exceptions.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType

import shareq
from shareq import Admin, Errors, NewTopic, Producer
from tests.kafka.fixtures import Reachable
from tests.pairings.exceptions import EXCEPTIONS
from tests.polling import PATIENCE_S, configure, eventually

CLIENTS: dict[str, ModuleType] = {"shareq": shareq, "confluent": confluent_kafka}
Fresh = Callable[[str], str]
Observation = Any
LONG_LOCKS = {"share.record.lock.duration.ms": 600_000}
"""Acquired records stay acquired however slow the machine is."""
Scenario = Callable[["Stage"], Observation]


class Stage:
    """A topic, a group that reads it from the beginning, and clients of one library; all are closed at the end.

    `client` is the module of the clients: shareq is a drop-in replacement for confluent-kafka. Everything that is not
    observed (topics, configurations, most records) is made by shareq's producer and admin in both cases.
    """

    def __init__(self, client: str, broker: Reachable, fresh: Fresh) -> None:
        self.client: Any = CLIENTS[client]
        self.broker = broker
        self.address = broker.bootstrap_servers
        self.fresh: Fresh = lambda what: fresh(f"{what}-{client}")
        self.topic, self.group = self.fresh("topic"), self.fresh("group")
        self.stack = ExitStack()
        self.admin = self.stack.enter_context(Admin({"bootstrap.servers": self.address}))
        self._producer: Producer | None = None

    def create(self, partitions: int = 1, **group_config: object) -> None:
        forever = {"retention.ms": "-1"}  # brokers delete records with old timestamps every five minutes
        self.admin.create_topics([NewTopic(self.topic, partitions, config=forever)]).check()
        self.configure(**group_config)

    def configure(self, **group_config: object) -> None:
        quick = {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": 100} | LONG_LOCKS
        configure(self.admin, self.group, quick | dotted(group_config))

    def lengthen_locks(self) -> None:
        """From here on a lock lasts longer than any test."""
        configure(self.admin, self.group, LONG_LOCKS)

    def consumer(self, *topics: str, kind: str = "ShareConsumer", **conf: object) -> Any:
        """A consumer subscribed to `topics`, by default to the stage's topic."""
        given = {"bootstrap.servers": self.address, "group.id": self.group, **dotted(conf)}
        made = getattr(self.client, kind)(given)
        self.stack.callback(made.close)
        made.subscribe(list(topics) or [self.topic])
        return made

    def explicit(self) -> Any:
        return self.consumer(share_acknowledgement_mode="explicit")

    def producer(self, **conf: object) -> Producer:
        return self.stack.enter_context(Producer({"bootstrap.servers": self.address, "linger.ms": 0, **dotted(conf)}))

    def write(self, *values: str, topic: str | None = None, partition: int = 0) -> None:
        """Produce each value in its own batch."""
        if self._producer is None:  # one without records that wait is false
            self._producer = self.producer()
        for value in values:
            self._producer.produce(topic or self.topic, value, partition=partition)
            assert self._producer.flush(PATIENCE_S) == 0

    def write_batch(self, *values: str) -> None:
        """Produce all values in one batch."""
        with Producer({"bootstrap.servers": self.address, "linger.ms": 60_000}) as producer:
            for value in values:
                producer.produce(self.topic, value, partition=0)
            assert producer.flush(PATIENCE_S) == 0

    def place(self, partition: int = 0) -> Any:
        return self.client.TopicPartition(self.topic, partition)

    def results(self, committed: dict[Any, Any]) -> dict[int, str | None]:
        """Result of commit_sync as {partition: None or the name of the error}."""
        assert {place.topic for place in committed} <= {self.topic}
        return {place.partition: None if error is None else error_name(error) for place, error in committed.items()}

    def record_callbacks(self, consumer: Any) -> list[tuple[dict[int, list[int]], str | None]]:
        """Set a callback that appends its arguments, as ({partition: offsets}, error name), to the returned list."""
        calls: list[tuple[dict[int, list[int]], str | None]] = []

        def callback(offsets: dict[Any, set[int]], error: Any) -> None:
            assert all(isinstance(some, set) for some in offsets.values())
            places = {place.partition: sorted(some) for place, some in offsets.items()}
            calls.append((places, None if error is None else error_name(error)))

        consumer.set_acknowledgement_commit_callback(callback)
        return calls


def dotted(given: dict[str, object]) -> dict[str, object]:
    return {key.replace("_", "."): value for key, value in given.items()}


def pairing(expected: Observation) -> Callable[[Scenario], Callable[..., None]]:
    """Make a test of a scenario: both clients have the expected observation on the broker under test."""

    def made(scenario: Scenario) -> Callable[..., None]:
        name = scenario.__name__

        def test(broker: Reachable, fresh: Fresh, request: pytest.FixtureRequest) -> None:
            kind = request.node.callspec.params["broker"]
            assert observe(scenario, broker, fresh) == {
                client: EXCEPTIONS.get((name, client), EXCEPTIONS.get((name, kind), expected)) for client in CLIENTS
            }

        test.__name__ = name
        test.__doc__ = scenario.__doc__
        return test

    return made


def observe(scenario: Scenario, broker: Reachable, fresh: Fresh) -> dict[str, Observation]:
    """Run the scenario with both clients at the same time; the observation by client."""
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        return dict(zip(CLIENTS, pool.map(partial(_observed, scenario, broker, fresh), CLIENTS), strict=True))


def _observed(scenario: Scenario, broker: Reachable, fresh: Fresh, client: str) -> Observation:
    stage = Stage(client, broker, fresh)
    with stage.stack:
        return scenario(stage)


# ---- observations ----------------------------------------------------------------------------------------------------


def take_together(consumer: Any, count: int) -> list[Any]:
    """Poll until one poll returns at least `count` records; the records of smaller polls are released."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := list(consumer.poll(1))) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records arrived"
        for message in found:
            consumer.acknowledge(message, 2)
    return found


def until(condition: Callable[[], object], *consumers: Any) -> None:
    """Poll the consumers until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        for consumer in consumers:
            consumer.poll(0.05)


def seen(messages: Iterable[Any]) -> list[tuple[str | None, int]]:
    """(value, delivery count) of each record in order."""
    return [(message.value() and message.value().decode(), message.delivery_count()) for message in messages]


def values(messages: Iterable[Any]) -> list[str]:
    return [value or "" for value, _ in seen(messages)]


def error_name(error: Any) -> str:
    """Name of a protocol error, or the number of an error local to librdkafka."""
    inner = error.args[0] if isinstance(error, Exception) else error
    code = int(inner.code())
    with suppress(ValueError):
        return Errors(code).name
    return str(code)


def raised(call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """Name of the exception that the call raises, with the error of a KafkaException; "nothing" if it returns."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        name = type(error).__name__
        return f"{name} {error_name(error)}" if name == "KafkaException" else name
    return "nothing"


# ---- administration --------------------------------------------------------------------------------------------------


def outcome(future: Any) -> Any:
    """The result of a future, or the name of its error."""
    try:
        return future.result(PATIENCE_S)
    except confluent_kafka.KafkaException as error:
        return error_name(error)


def outcomes(futures: Mapping[Any, Any]) -> list[Any]:
    return [outcome(future) for future in futures.values()]


class AdminStage:
    """confluent-kafka's `AdminClient` with its own topic."""

    def __init__(self, servers: str, fresh: Fresh) -> None:
        self.servers, self.fresh, self.topic = servers, fresh, fresh("topic")
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, partitions: int = 1, **config: object) -> str:
        settings = {key: str(value) for key, value in dotted(config).items()}
        made = confluent_kafka.cimpl.NewTopic(self.topic, partitions, 1, config=settings)
        assert outcomes(self.admin.create_topics([made])) == [None]
        ends = [(0, -1)] * partitions  # the controller can have the topic before its broker leads the partitions
        eventually(lambda: [self.offsets(place, OffsetSpec.latest()) for place in range(partitions)], ends)
        return self.topic

    def write(self, *values: str, partition: int = 0) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "linger.ms": 0})
        for number, value in enumerate(values):
            producer.produce(self.topic, value, partition=partition, timestamp=1_000_000_000_000 + number * 1000)
            assert producer.flush(PATIENCE_S) == 0

    def describe(self, kind: ResourceType, name: str) -> Any:
        (found,) = outcomes(self.admin.describe_configs([ConfigResource(kind, name)]))
        return found

    def entry(self, kind: ResourceType, name: str, key: str) -> tuple[str | None, int]:
        """(value, source) of a configuration."""
        found = self.describe(kind, name)[key]
        return found.value, found.source

    def alter(self, kind: ResourceType, name: str, *operations: tuple[str, AlterConfigOpType, str | None]) -> Any:
        entries = [ConfigEntry(key, value, incremental_operation=operation) for key, operation, value in operations]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        (done,) = outcomes(self.admin.incremental_alter_configs([resource]))
        return done

    def offsets(self, partition: int, spec: Any, **options: Any) -> Any:
        place = confluent_kafka.TopicPartition(self.topic, partition)
        (found,) = outcomes(self.admin.list_offsets({place: spec}, **options))
        return found if isinstance(found, str) else (found.offset, found.timestamp)
