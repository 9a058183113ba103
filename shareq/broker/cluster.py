"""A whole Kafka cluster in this process: brokers, controller, logs, network, clock, journal.

with Cluster(brokers=3, seed=7) as cluster:
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "payments"})
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from shareq.broker.controller import Controller, Outcome
from shareq.broker.loop import VirtualLoop, make_loop
from shareq.broker.network import Network
from shareq.broker.node import Broker
from shareq.broker.reprs import cluster_html
from shareq.broker.storage import Storage
from shareq.broker.transactions import Transactions
from shareq.broker.transport import InProcessConnection, publish
from shareq.log.memory import MemoryLog
from shareq.model.actor import Actor
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import Event, FaultInjected
from shareq.model.ids import TopicPartition
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage
from shareq.trace import Journal

CLEAN_INTERVAL_MS = 300_000
"""How often retention and compaction look at the logs (Kafka: log.retention.check.interval.ms)."""

CLIENT = -1
"""The journal's broker id of what happens in clients and in the cluster as a whole."""

MAX_BROKERS = 100
_FIRST_PORT = 9092


class Cluster:
    """A cluster of `brokers` brokers in this process.

    `clock`: "virtual" (time passes only while somebody waits, and then at once), "wall", or a factor such as 10.0.
    `seed` fixes every choice that is left to chance. `config` overrides broker configurations by their Kafka names.
    `journal`: True, False (load runs do not pay for it), or the number of newest events to keep. `latency_ms`: how long
    a message takes each way. Raises ConfigException naming what is absurd.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        clock: str | float = "virtual",
        seed: int = 0,
        config: Mapping[str, object] | None = None,
        journal: bool | int = True,
        latency_ms: int = 0,
        trace_messages: bool = False,
    ) -> None:
        if isinstance(brokers, bool) or not isinstance(brokers, int) or not 1 <= brokers <= MAX_BROKERS:
            raise ConfigException(f"brokers={brokers!r}: must be 1..{MAX_BROKERS}")
        if isinstance(latency_ms, bool) or not isinstance(latency_ms, int) or not 0 <= latency_ms <= 60_000:
            raise ConfigException(f"latency_ms={latency_ms!r}: must be 0..60000")
        broker_config = BrokerConfig({"default.replication.factor": min(3, brokers), **(config or {})})
        self._rng = random.Random(seed)
        self.seed = seed
        self.closed = False
        self.loop = make_loop(clock)
        self.clock = clock
        self.origin_ms = self.loop.now_ms()
        capacity = journal if isinstance(journal, int) and not isinstance(journal, bool) else None
        self.journal = Journal(self.origin_ms, capacity=capacity, enabled=journal is not False)
        self._traced = self.journal.enabled
        self._storage = Storage(self.record)
        self.network = Network(
            self.loop, self.record, latency_ms=latency_ms, trace_messages=trace_messages and self._traced
        )
        images = {
            b: BrokerImage(broker_id=b, host="127.0.0.1", port=_FIRST_PORT + b, rack=None) for b in range(brokers)
        }
        self._controller = Controller(
            images, broker_config, self._fork_rng(), publish=self._publish, record=self.record
        )
        self._transactions = Transactions(self.loop, self._mark_transaction)
        self._brokers: dict[int, Broker] = {}
        self._connections: dict[int, InProcessConnection] = {}
        self.bootstrap_servers = publish(self, self._rng)
        self.loop.enter(self._start)

    def _start(self) -> None:
        for broker_id in self._controller.image.brokers:
            self._boot(broker_id)
            self._controller.broker_started(broker_id)
        self.loop.at(self.origin_ms + CLEAN_INTERVAL_MS, self._clean)

    def _boot(self, broker_id: int) -> None:
        broker = Broker(
            broker_id,
            loop=self.loop,
            network=self.network,
            controller=self._controller,
            storage=self._storage,
            transactions=self._transactions,
            rng=self._fork_rng(),
            record=self._record,
            traced=self._traced,
        )
        self._brokers[broker_id] = broker
        self.network.join(broker)

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def kill_broker(self, broker_id: int) -> None:
        """Lose a broker without a goodbye: connections break, its memory is gone, what it led and coordinated moves."""
        self._check_broker(broker_id, alive=True)

        def kill() -> None:
            self._forget(broker_id)
            self._controller.broker_stopped(broker_id, killed=True)

        self.loop.enter(kill)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in an orderly way: what it leads moves first, then its connections are closed."""
        self._check_broker(broker_id, alive=True)

        def stop() -> None:
            self._controller.broker_stopped(broker_id, killed=False)
            self.loop.post(self._forget, broker_id)

        self.loop.enter(stop)

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker again; its logs are as they were, its memory is empty."""
        self._check_broker(broker_id, alive=False)

        def start() -> None:
            self._boot(broker_id)
            self._controller.broker_started(broker_id)

        self.loop.enter(start)

    def elect_preferred_leaders(self) -> None:
        """Give each partition back to the first of its replicas that is alive."""
        self.loop.enter(self._controller.elect_preferred_leaders)

    def _forget(self, broker_id: int) -> None:
        self._brokers.pop(broker_id).die()
        self.network.leave(broker_id)

    def _check_broker(self, broker_id: int, *, alive: bool) -> None:
        self._check_open()
        if broker_id not in self.image.brokers:
            raise ConfigException(f"broker_id={broker_id!r}: must be one of {sorted(self.image.brokers)}")
        if (broker_id in self._brokers) != alive:
            raise IllegalStateException(f"broker {broker_id} is {'not running' if alive else 'running already'}")

    # ---- clients -----------------------------------------------------------------------------------------------------

    def connect(self, actor: Actor, client_id: str) -> InProcessConnection:
        """Let a client's actor live here; clients do this themselves through `bootstrap_servers`."""
        self._check_open()
        connection = InProcessConnection(self, actor, client_id, len(self._connections))
        self._connections[connection.connection_id] = connection
        return connection

    def client_rng(self) -> random.Random:
        """A generator for a client's ids, seeded from the cluster's."""
        return self._fork_rng()

    def crash(self, client: Any) -> None:
        """Lose a client as when its machine loses power: nobody is told, and its locks have to expire."""
        self._check_open()
        mine = getattr(client, "__dict__", {}).values()
        for connection in self._connections.values():
            if connection in mine:
                self._record(CLIENT, FaultInjected(f"{connection.client_id} crashed"))
                connection.crash()
                return
        raise IllegalStateException(f"{client!r} is not a client of {self.bootstrap_servers}")

    # ---- topics and configurations in one line -----------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic; KafkaException says what is wrong. `Admin.create_topics` does the same from outside."""
        texts = {key: str(value) for key, value in (configs or {}).items()}
        self._control(lambda: self._controller.create_topic(name, partitions, replication_factor, texts)[0])

    def configure_group(self, group_id: str, configs: Mapping[str, object | None]) -> None:
        """Set configurations of a group, or remove them with None."""
        texts = {key: None if value is None else str(value) for key, value in configs.items()}
        self._control(lambda: self._controller.alter_group_configs(group_id, texts))

    def _control(self, change: Callable[[], Outcome]) -> None:
        self._check_open()
        outcomes: list[Outcome] = []
        self.loop.enter(lambda: outcomes.append(change()))
        error, why = outcomes[0]
        if error:
            raise KafkaException(KafkaError(error, why))

    # ---- time --------------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The cluster's clock, ms since the epoch."""
        return self.loop.now_ms()

    def advance(self, ms: float) -> None:
        """Let `ms` of the cluster's time pass: at once on a virtual clock, really on the others."""
        if ms < 0:
            raise ConfigException(f"ms={ms!r}: must be >= 0, time does not run backwards")
        self._check_open()
        self.loop.wait(lambda: False, ms)

    def step(self) -> bool:
        """Virtual clock: let the next thing happen, jumping to its time. False when nothing is left to happen."""
        self._check_open()
        if not isinstance(self.loop, VirtualLoop):
            raise IllegalStateException(f"clock={self.clock!r} runs by itself: only a virtual clock can be stepped")
        return self.loop.step()

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Let time go on until `until()` holds, at most `timeout` seconds of the cluster's time."""
        self._check_open()
        return self.loop.wait(until, timeout * 1000)

    # ---- faults ------------------------------------------------------------------------------------------------------

    def fail_appends(self, topic: str, error: Errors = Errors.NOT_ENOUGH_REPLICAS, times: int = 1) -> None:
        """Let the next `times` appends to `topic` fail; `__share_group_state` makes state writes fail."""
        if times < 1:
            raise ConfigException(f"times={times!r}: must be >= 1")
        self._record(CLIENT, FaultInjected(f"the next {times} appends to {topic} fail with {error.name}"))
        self._storage.break_appends(topic, error, times)

    def clear_faults(self) -> None:
        """Let every append succeed again that was told to fail and has not been tried yet."""
        self._storage.clear_faults()

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata now."""
        return self._controller.image

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        return tuple(sorted(self._brokers))

    def log(self, topic: str, partition: int) -> MemoryLog:
        """The log of a partition, to look into; raises KafkaException where there is none."""
        found = self._storage.log(topic, partition)
        if found is None:
            why = f"{topic}-{partition} does not exist"
            raise KafkaException(KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, why))
        return found

    def __repr__(self) -> str:
        topics = [t for t in self.image.topics if not t.startswith("__")]
        state = "closed" if self.closed else f"brokers {list(self.brokers_alive)} of {len(self.image.brokers)} alive"
        return f"Cluster({self.bootstrap_servers}, {self.clock} clock, {state}, {len(topics)} topics)"

    def _repr_html_(self) -> str:
        return cluster_html(self.bootstrap_servers, f"{self.clock} clock, seed {self.seed}", self.image, self.log)

    # ---- the rest ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the cluster: clients find it closed, nothing happens any more. Repeatable."""
        if not self.closed:
            self.closed = True
            self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise IllegalStateException(f"{self.bootstrap_servers} is closed")

    def _fork_rng(self) -> random.Random:
        return random.Random(self._rng.getrandbits(64))

    def _publish(self, image: ClusterImage) -> None:
        self._storage.image_changed(image)
        for broker in list(self._brokers.values()):
            self.loop.post(broker.image_changed, image)

    def _mark_transaction(self, at: TopicPartition, committed: bool, producer_id: int, producer_epoch: int) -> None:
        """Write the marker that ends a transaction; a topic that has been deleted meanwhile needs none."""
        done = self._storage.end_transaction(at, committed, producer_id, producer_epoch, self.now_ms)
        leader = self.image.topics[at.topic].partitions[at.partition].leader if done else NO_LEADER
        if done and leader in self._brokers:
            self._brokers[leader].log_grew(at, done.base_offset, done.last_offset + 1)

    def _clean(self) -> None:
        self._storage.clean(self.now_ms)
        self.loop.at(self.now_ms + CLEAN_INTERVAL_MS, self._clean)

    def _record(self, broker_id: int, event: Event) -> None:
        self.journal.record(self.loop.now_ms(), broker_id, event)

    def record(self, event: Event) -> None:
        """Put something that happened in a client, or to the cluster as a whole, into the journal."""
        self._record(CLIENT, event)
