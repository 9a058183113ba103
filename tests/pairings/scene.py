"""One scenario, four pairings: {our share consumer, confluent's} on {our broker, Apache Kafka}.

A scenario does what an application does with a share consumer and returns what it saw, as plain data. `pairing` makes
a test of it that runs both clients on one broker at the same time, each with a topic and a group of its own; so what
is written over the scenario is what all four see, but for what tests/pairings/exceptions.py says and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from types import ModuleType
from typing import Any

import confluent_kafka
import pytest

import shareq
from shareq import Admin, Errors, NewTopic, Producer
from tests.kafka.fixtures import Reachable
from tests.pairings.exceptions import EXCEPTIONS
from tests.polling import PATIENCE_S, configure

CLIENTS: dict[str, ModuleType] = {"shareq": shareq, "confluent": confluent_kafka}
Fresh = Callable[[str], str]
Observation = Any
LONG_LOCKS = {"share.record.lock.duration.ms": 600_000}
"""What is counted on in hand stays there, however long a machine stalls."""
Scenario = Callable[["Scene"], Observation]


class Scene:
    """A topic, a group that reads it from its beginning, and clients of one kind; all are closed at the end.

    `client` is the module that the clients come from: ours is a drop-in for the other. What is not observed (topics,
    configurations, most of the records) is made by our own producer and admin in both cases.
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
        forever = {"retention.ms": "-1"}  # every five minutes a broker deletes what looks old, as some records do here
        self.admin.create_topics([NewTopic(self.topic, partitions, config=forever)]).check()
        self.configure(**group_config)

    def configure(self, **group_config: object) -> None:
        quick = {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": 100} | LONG_LOCKS
        configure(self.admin, self.group, quick | dotted(group_config))

    def lengthen_locks(self) -> None:
        """From here on a lock lasts for as long as a test may take."""
        configure(self.admin, self.group, LONG_LOCKS)

    def consumer(self, *topics: str, kind: str = "ShareConsumer", **conf: object) -> Any:
        """A consumer that is subscribed to the topic, or to what is named."""
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
        """Records, each in a batch of its own."""
        self._producer = self._producer or self.producer()
        for value in values:
            self._producer.produce(topic or self.topic, value, partition=partition)
            assert self._producer.flush(PATIENCE_S) == 0

    def write_batch(self, *values: str) -> None:
        """Records in one batch."""
        with Producer({"bootstrap.servers": self.address, "linger.ms": 60_000}) as producer:
            for value in values:
                producer.produce(self.topic, value, partition=0)
            assert producer.flush(PATIENCE_S) == 0

    def place(self, partition: int = 0) -> Any:
        return self.client.TopicPartition(self.topic, partition)

    def results(self, committed: dict[Any, Any]) -> dict[int, str | None]:
        """What commit_sync returned: partition -> None or the name of the error."""
        assert {place.topic for place in committed} <= {self.topic}
        return {place.partition: None if error is None else said(error) for place, error in committed.items()}

    def listen(self, consumer: Any) -> list[tuple[dict[int, list[int]], str | None]]:
        """All that the acknowledgement commit callback will be told: ({partition: offsets}, error)."""
        told: list[tuple[dict[int, list[int]], str | None]] = []

        def note(offsets: dict[Any, set[int]], error: Any) -> None:
            assert all(isinstance(some, set) for some in offsets.values())
            places = {place.partition: sorted(some) for place, some in offsets.items()}
            told.append((places, None if error is None else said(error)))

        consumer.set_acknowledgement_commit_callback(note)
        return told


def dotted(given: dict[str, object]) -> dict[str, object]:
    return {key.replace("_", "."): value for key, value in given.items()}


def pairing(expected: Observation) -> Callable[[Scenario], Callable[..., None]]:
    """Make a test of a scenario: both clients see this on the broker at hand."""

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
    """What either client sees, at the same time."""
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        return dict(zip(CLIENTS, pool.map(partial(_observed, scenario, broker, fresh), CLIENTS), strict=True))


def _observed(scenario: Scenario, broker: Reachable, fresh: Fresh, client: str) -> Observation:
    scene = Scene(client, broker, fresh)
    with scene.stack:
        return scenario(scene)


# ---- what an application sees ----------------------------------------------------------------------------------------


def take_at_once(consumer: Any, count: int) -> list[Any]:
    """So many records in hand at the same time, in explicit mode: if a poll has fewer they go back and come again."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := list(consumer.poll(1))) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        for message in found:
            consumer.acknowledge(message, 2)
    return found


def until(condition: Callable[[], object], *consumers: Any) -> None:
    """Poll the consumers until it holds, whatever comes."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        for consumer in consumers:
            consumer.poll(0.05)


def seen(messages: Iterable[Any]) -> list[tuple[str | None, int]]:
    """(value, delivery count) of each in order."""
    return [(message.value() and message.value().decode(), message.delivery_count()) for message in messages]


def values(messages: Iterable[Any]) -> list[str]:
    return [value or "" for value, _ in seen(messages)]


def said(error: Any) -> str:
    """An error by its protocol name, or by librdkafka's number for what is local to a client."""
    inner = error.args[0] if isinstance(error, Exception) else error
    code = int(inner.code())
    with suppress(ValueError):
        return Errors(code).name
    return str(code)


def raised(call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """How a call failed: the exception's name, and which error a KafkaException brings."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        name = type(error).__name__
        return f"{name} {said(error)}" if name == "KafkaException" else name
    return "nothing"
