"""A whole Kafka cluster in this process: brokers, controller, logs, network, clock, journal.

with Cluster(brokers=3, seed=7) as cluster:
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "payments"})
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

from shareq.broker.loop import VirtualLoop, make_loop
from shareq.broker.machines import Machines
from shareq.broker.placement import Outcome
from shareq.broker.reprs import cluster_html
from shareq.broker.transport import InProcessConnection, publish
from shareq.log.memory import MemoryLog
from shareq.model.actor import Actor
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import FaultInjected
from shareq.model.image import ClusterImage
from shareq.model.transport import Served, serve
from shareq.trace import Journal

MAX_BROKERS = 100


class Cluster:
    """A cluster of `brokers` brokers in this process.

    `clock`: "virtual" (time passes only while somebody waits, and then at once), "wall", or a factor such as 10.0.
    `seed` fixes every choice that is left to chance. `config` overrides broker configurations by their Kafka names.
    `journal`: True, False (load runs do not pay for it), or the number of newest events to keep. `latency_ms`: how long
    a message takes each way. `racks`: the rack of each broker, None for a broker without one. Raises ConfigException
    naming what is absurd.
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
        racks: Sequence[str | None] | None = None,
    ) -> None:
        if isinstance(brokers, bool) or not isinstance(brokers, int) or not 1 <= brokers <= MAX_BROKERS:
            raise ConfigException(f"brokers={brokers!r}: must be 1..{MAX_BROKERS}")
        if isinstance(latency_ms, bool) or not isinstance(latency_ms, int) or not 0 <= latency_ms <= 60_000:
            raise ConfigException(f"latency_ms={latency_ms!r}: must be 0..60000")
        _check_racks(racks, brokers)
        broker_config = BrokerConfig({"default.replication.factor": min(3, brokers), **(config or {})})
        rng = random.Random(seed)
        self.seed = seed
        self.closed = False
        self.loop = make_loop(clock)
        self.clock = clock
        self.origin_ms = self.loop.now_ms()
        capacity = journal if isinstance(journal, int) and not isinstance(journal, bool) else None
        self.journal = Journal(self.origin_ms, capacity=capacity, enabled=journal is not False)
        self._machines = Machines(
            list(racks or [None] * brokers),
            broker_config,
            loop=self.loop,
            journal=self.journal,
            rng=rng,
            latency_ms=latency_ms,
            trace_messages=trace_messages,
        )
        self.network = self._machines.network
        self.record = self._machines.record
        self._brokers = self._machines.brokers
        self._connections: dict[int, InProcessConnection] = {}
        self._connection_ids = count()
        self._server: Served | None = None
        self.bootstrap_servers = publish(self, rng)
        self.loop.enter(self._machines.start_all)

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def kill_broker(self, broker_id: int) -> None:
        """Lose a broker without a goodbye: connections break, its memory is gone, what it led and coordinated moves."""
        self._check_broker(broker_id, alive=True)
        self.loop.enter(lambda: self._machines.kill(broker_id))

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in an orderly way: what it leads moves first, then its connections are closed."""
        self._check_broker(broker_id, alive=True)
        self.loop.enter(lambda: self._machines.stop(broker_id))

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker again; its logs are as they were, its memory is empty."""
        self._check_broker(broker_id, alive=False)
        self.loop.enter(lambda: self._machines.start(broker_id))

    def elect_preferred_leaders(self) -> None:
        """Give each partition back to the first of its replicas that is alive."""
        self.loop.enter(self._machines.controller.elect_preferred_leaders)

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
        connection = InProcessConnection(self, actor, client_id, self.connection_id())
        self._connections[connection.connection_id] = connection
        return connection

    def client_rng(self) -> random.Random:
        """A generator for a client's ids, seeded from the cluster's."""
        return self._machines.fork_rng()

    def crash(self, client: Any) -> None:
        """Lose a client as when its machine loses power: nobody is told, and its locks have to expire."""
        self._check_open()
        mine = getattr(client, "__dict__", {}).values()
        for connection in self._connections.values():
            if connection in mine:
                self.record(FaultInjected(f"{connection.client_id} crashed"))
                connection.crash()
                return
        raise IllegalStateException(f"{client!r} is not a client of {self.bootstrap_servers}")

    def connection_id(self) -> int:
        """A number for a connection, from within or over TCP; share sessions belong to it."""
        return next(self._connection_ids)

    # ---- over TCP ----------------------------------------------------------------------------------------------------

    def serve(self, host: str = "127.0.0.1", ports: int | Sequence[int] | None = None) -> Served:
        """Let real Kafka clients in: each broker gets a port of its own, until `close()` of what is returned.

            with cluster.serve() as server:
                confluent_kafka.ShareConsumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "payments"})

        `ports`: None takes free ones; a number is the first broker's, the others follow it; or one for each broker.
        Clients in this process go on beside those over TCP, and the journal tells of both. On a virtual clock TCP
        clients see time move only by `advance()`: a fetch waits, and a lock holds, until then. ConfigException names
        what is wrong with the host or a port; a cluster is served once at a time (IllegalStateException).
        """
        self._check_open()
        return serve(self, host, ports)

    def served_by(self, server: Served) -> None:
        """For what serves, before it opens a port: IllegalStateException where somebody does already."""
        self._check_open()
        if self._server is not None and not self._server.closed:
            where = self._server.bootstrap_servers
            raise IllegalStateException(
                f"{self.bootstrap_servers} is served at {where} already: close that server first"
            )
        self._server = server

    def readdress(
        self, addresses: Mapping[int, tuple[str, int]], watcher: Callable[[int, bool], None] | None = None
    ) -> None:
        """Let metadata show these addresses of brokers: those of a server, or of a proxy before one.

        The server passes `watcher`, which is called with (broker_id, alive) when a broker starts or ends; None keeps
        the one that is set.
        """

        def move_in() -> None:
            if watcher is not None:
                self._machines.watcher = watcher
            self._machines.readdress(addresses)

        self.loop.enter(move_in)

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
        self._control(lambda: self._machines.controller.create_topic(name, partitions, replication_factor, texts)[0])

    def configure_group(self, group_id: str, configs: Mapping[str, object | None]) -> None:
        """Set configurations of a group, or remove them with None."""
        texts = {key: None if value is None else str(value) for key, value in configs.items()}
        self._control(lambda: self._machines.controller.alter_group_configs(group_id, texts))

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
        self.record(FaultInjected(f"the next {times} appends to {topic} fail with {error.name}"))
        self._machines.storage.break_appends(topic, error, times)

    def clear_faults(self) -> None:
        """Let every append succeed again that was told to fail and has not been tried yet."""
        self._machines.storage.clear_faults()

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata now."""
        return self._machines.controller.image

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        """Ids of the running brokers, ascending."""
        return tuple(sorted(self._brokers))

    def log(self, topic: str, partition: int) -> MemoryLog:
        """The log of a partition, to look into; raises KafkaException where there is none."""
        found = self._machines.storage.log(topic, partition)
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
            if self._server is not None:
                self._server.close()
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


def _check_racks(racks: Sequence[str | None] | None, brokers: int) -> None:
    """ConfigException unless there is one rack for each broker, each a name or None."""
    listed = not isinstance(racks, str) and all(
        rack is None or (isinstance(rack, str) and rack) for rack in racks or ()
    )
    if racks is not None and not (listed and len(racks) == brokers):
        raise ConfigException(f"racks={racks!r}: must be {brokers}, one for each broker, each a name or None")
