"""A cluster whose brokers, topics and logs are those of an Apache Kafka, and whose share groups are this process's."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from shareq.broker.backend.runtime import BackendRuntime
from shareq.broker.cluster import Cluster, check_group_keys
from shareq.broker.loop import make_loop
from shareq.broker.placement import ErrorWithMessage
from shareq.log.memory import MemoryLog
from shareq.model.actor import Answer
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.html import html
from shareq.model.image import ClusterImage
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from shareq.model.transport import Served
from shareq.trace import Journal
from shareq.transports import publish

START_S = 60
"""How long the start waits for the backend, in seconds of the wall clock."""

SHARDS = {"offsets.topic.num.partitions": 4, "share.coordinator.state.topic.num.partitions": 4}
"""Partitions of the coordinators' topics. Each has a writer, so there are fewer than Kafka's 50; they are fixed when
the topics are created."""


class BackendCluster(Cluster):
    """Share groups on the topics of an Apache Kafka 3.9 or newer, which need not know share groups.

    `backend`: its `bootstrap.servers`. `clock`: "wall", or a factor such as 10.0. `config` overrides the configurations
    of share groups and their coordinators; all others are the backend's. The other arguments are those of `Cluster`.

    Groups, and the states of their records, are kept in topics of the backend (`shareq-...`), so that the next process
    continues where this one ends. One process works on a backend; a second one takes its place.
    """

    def __init__(
        self,
        brokers: None = None,
        *,
        backend: str,
        clock: str | float = "wall",
        seed: int | None = None,
        config: Mapping[str, object] | None = None,
        journal: bool | int = True,
        latency_ms: int = 0,
        trace_messages: bool = False,
        racks: None = None,
    ) -> None:
        for key, value in (("brokers", brokers), ("racks", racks), ("latency_ms", latency_ms or None)):
            if value is not None:
                raise ConfigException(f"{key}={value!r}: brokers and network are those of the backend")
        if clock == "virtual":
            raise ConfigException(
                "clock='virtual': a backend has real time: use clock='wall', or a factor such as 10.0"
            )
        check_group_keys(config or {})
        broker_config = BrokerConfig({**SHARDS, **(config or {})})
        rng = random.Random(seed)  # a second process must not repeat the ids of the first
        self.seed = 0 if seed is None else seed
        self.backend = backend
        self.closed = False
        self.loop = make_loop(clock)
        self.clock = clock
        self.origin_ms = self.loop.now_ms()
        capacity = journal if isinstance(journal, int) and not isinstance(journal, bool) else None
        self.journal = Journal(self.origin_ms, capacity=capacity, enabled=journal is not False)
        self._connection_ids = count()
        self._server: Served | None = None
        try:
            self._backend = BackendRuntime(
                backend, broker_config, loop=self.loop, journal=self.journal, rng=rng, trace_messages=trace_messages
            )
            self.network = self._backend.network
            self.record = self._backend.record
            self.bootstrap_servers = publish(self, rng)
            self.loop.enter(self._backend.start)
            self._await_start(START_S)
        except BaseException:
            self.close()
            raise

    def _await_start(self, seconds: float) -> None:
        scale = self.loop.scale  # type: ignore[attr-defined]    # a clock that runs has one
        if not self.loop.wait(lambda: self._backend.ready, seconds * 1000 * scale):
            why = self._backend.mirror.trouble or "its topics for share groups could not be read"
            text = f"backend={self.backend!r}: not ready within {seconds} s: {why}"
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, text))

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def _not_here(self, what: str) -> IllegalStateException:
        return IllegalStateException(
            f"{what}: the brokers and logs of {self.bootstrap_servers} are those of {self.backend}"
        )

    def kill_broker(self, broker_id: int) -> None:
        """IllegalStateException: the brokers are the backend's."""
        raise self._not_here(f"kill_broker({broker_id})")

    def stop_broker(self, broker_id: int) -> None:
        """IllegalStateException: the brokers are the backend's."""
        raise self._not_here(f"stop_broker({broker_id})")

    def start_broker(self, broker_id: int) -> None:
        """IllegalStateException: the brokers are the backend's."""
        raise self._not_here(f"start_broker({broker_id})")

    def elect_preferred_leaders(self) -> None:
        """IllegalStateException: the leaders are the backend's."""
        raise self._not_here("elect_preferred_leaders()")

    def fail_appends(self, topic: str, error: Errors = Errors.NOT_ENOUGH_REPLICAS, times: int = 1) -> None:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here(f"fail_appends({topic!r}, {error.name}, {times})")

    def delay_appends(self, topic: str, ms: int) -> None:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here(f"delay_appends({topic!r}, {ms})")

    def append_delay_ms(self, topic: str) -> int:
        """0: appends are not delayed."""
        del topic
        return 0

    def clear_faults(self) -> None:
        """There are no injected faults."""

    def clean_logs(self) -> None:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here("clean_logs()")

    def log(self, topic: str, partition: int) -> MemoryLog:
        """IllegalStateException: the logs are the backend's."""
        raise self._not_here(f"log({topic!r}, {partition})")

    # ---- clients -----------------------------------------------------------------------------------------------------

    def client_rng(self) -> random.Random:
        """A generator for a client's ids."""
        return self._backend.fork_rng()

    @property
    def backend_versions(self) -> ApiVersionsResponse | None:
        """What the backend supports."""
        return self._backend.versions

    def readdress(
        self, addresses: Mapping[int, tuple[str, int]], watcher: Callable[[int, bool], None] | None = None
    ) -> None:
        """Show these addresses of brokers in metadata; `watcher(broker_id, alive)` is called for a new broker."""
        self.loop.enter(lambda: self._backend.readdress(addresses, watcher))

    # ---- topics and configurations -----------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic of the backend, and wait until the metadata has it. KafkaException for an invalid one."""
        self._check_open()
        topic = CreateTopicsRequest.Topic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=tuple((key, str(value)) for key, value in (configs or {}).items()),
        )
        request = CreateTopicsRequest(topics=(topic,))
        answer = self._result(lambda done: self._backend.client.call(self.image.controller_id, request, done))
        assert isinstance(answer, Answer)
        if not isinstance(answer.response, CreateTopicsResponse):
            raise KafkaException(KafkaError(answer.error, answer.reason or f"{self.backend} does not answer"))
        (created,) = answer.response.topics
        if created.error_code:
            raise KafkaException(KafkaError(created.error_code, created.error_message))
        self.loop.enter(self._backend.mirror.stale)
        self.loop.wait(lambda: name in self.image.topics, None)

    def configure_group(self, group_id: str, configs: Mapping[str, object | None]) -> None:
        """Set configurations of a group, or remove them with None. They are stored in the backend."""
        self._check_open()
        texts = {key: None if value is None else str(value) for key, value in configs.items()}
        outcome: ErrorWithMessage = self._result(lambda done: self._backend.group_configs.alter(group_id, texts, done))
        error, why = outcome
        if error:
            raise KafkaException(KafkaError(error, why))

    def _result(self, call: Callable[[Callable[[Any], None]], object]) -> Any:
        """The result of a call with a callback on the event loop."""
        results: list[Any] = []
        self.loop.enter(lambda: call(results.append))
        self.loop.wait(lambda: bool(results), None)
        return results[0]

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata now, as last read from the backend."""
        return self._backend.mirror.image

    @property
    def brokers_alive(self) -> Sequence[int]:  # type: ignore[override]
        """Ids of the backend's brokers, ascending."""
        return tuple(broker_id for broker_id, broker in self.image.brokers.items() if broker.alive)

    @property
    def trouble(self) -> str:
        """Why the last request of the backend's metadata failed; empty if it did not."""
        return self._backend.mirror.trouble

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"brokers {list(self.brokers_alive)}"
        topics = [name for name in self.image.topics if not name.startswith("__")]
        where = f"{self.bootstrap_servers}, backend {self.backend}"
        return f"Cluster({where}, {self.clock} clock, {state}, {len(topics)} topics)"

    def _repr_html_(self) -> str:
        return f"<code>{html(repr(self))}</code>"

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the cluster, its server, and its connections to the backend. Repeatable."""
        if not self.closed:
            if self._server is not None:
                self._server.close()
            self.closed = True
            if hasattr(self, "_backend"):
                self.loop.enter(self._backend.close)
                self._backend.client.close()
            self.loop.close()
