"""A whole Kafka cluster in this process: brokers, controller, logs, network, clock, journal.

with Cluster(brokers=3, seed=7) as cluster:
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "payments"})
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self, cast

from shareq.broker.cluster_html import cluster_html
from shareq.broker.cluster_runtime import ClusterRuntime
from shareq.broker.loop import VirtualLoop, WallLoop, checked_scale, make_loop
from shareq.broker.placement import ErrorWithMessage
from shareq.broker.storage import check_delay
from shareq.broker.transport import InProcessConnection
from shareq.log.memory import MemoryLog
from shareq.model.actor import Actor
from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS, BrokerConfig
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import FaultInjected
from shareq.model.image import ClusterImage
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.transport import Connection, Served
from shareq.trace import Journal
from shareq.transports import publish

MAX_BROKERS = 100


class Client(Protocol):
    """A client as `Cluster.crash` needs it: ShareConsumer, Producer, Admin."""

    @property
    def connection(self) -> Connection: ...


class Cluster:
    """A cluster of `brokers` brokers in this process.

    `clock`: "virtual" (time passes only during calls that wait, and then at once), "wall", or a factor such as 10.0.
    `seed` is that of every random choice. `config` overrides broker configurations by their Kafka names.
    `journal`: True, False (load runs do not pay for it), or the number of newest events to keep. `latency_ms`: how long
    a message takes each way. `racks`: the rack of each broker, None for a broker without one. ConfigException for an
    invalid argument.

    `backend`: the `bootstrap.servers` of an Apache Kafka whose brokers, topics and logs the cluster uses; it is a
    `BackendCluster` then, with the arguments of that class.
    """

    def __new__(cls, *args: Any, backend: str | None = None, **more: Any) -> Self:
        """A `BackendCluster` if a backend is named."""
        del args, more
        if backend is not None and cls is Cluster:
            from shareq.broker.backend.cluster import BackendCluster  # a cluster in memory loads no sockets

            return cast("Self", object.__new__(BackendCluster))
        return object.__new__(cls)

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
        backend: str | None = None,
    ) -> None:
        assert backend is None, "a cluster with a backend is a BackendCluster"
        if isinstance(brokers, bool) or not isinstance(brokers, int) or not 1 <= brokers <= MAX_BROKERS:
            raise ConfigException(f"brokers={brokers!r}: must be 1..{MAX_BROKERS}")
        if isinstance(latency_ms, bool) or not isinstance(latency_ms, int) or not 0 <= latency_ms <= 60_000:
            raise ConfigException(f"latency_ms={latency_ms!r}: must be 0..60000")
        _check_racks(racks, brokers)
        check_group_keys(config or {})
        broker_config = BrokerConfig({"default.replication.factor": min(3, brokers), **(config or {})})
        rng = random.Random(seed)
        self.seed = seed
        self.closed = False
        self.loop = make_loop(clock)
        self.clock = clock
        self.origin_ms = self.loop.now_ms()
        capacity = journal if isinstance(journal, int) and not isinstance(journal, bool) else None
        self.journal = Journal(self.origin_ms, capacity=capacity, enabled=journal is not False)
        self._runtime = ClusterRuntime(
            list(racks or [None] * brokers),
            broker_config,
            loop=self.loop,
            journal=self.journal,
            rng=rng,
            latency_ms=latency_ms,
            trace_messages=trace_messages,
        )
        self.network = self._runtime.network
        self.record = self._runtime.record
        self._brokers = self._runtime.brokers
        self._connection_ids = count()
        self._server: Served | None = None
        self.bootstrap_servers = publish(self, rng)
        self.loop.enter(self._runtime.start_all)

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def kill_broker(self, broker_id: int) -> None:
        """Kill a broker: its connections break, its memory is lost, leadership and coordinators move."""
        self._check_broker(broker_id, alive=True)
        self.loop.enter(lambda: self._runtime.kill(broker_id))

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in an orderly way: leadership moves first, then its connections are closed."""
        self._check_broker(broker_id, alive=True)
        self.loop.enter(lambda: self._runtime.stop(broker_id))

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker again; its logs are as they were, its memory is empty."""
        self._check_broker(broker_id, alive=False)
        self.loop.enter(lambda: self._runtime.start(broker_id))

    def elect_preferred_leaders(self) -> None:
        """Give each partition back to the first of its replicas that is alive."""
        self.loop.enter(self._runtime.controller.elect_preferred_leaders)

    def _check_broker(self, broker_id: int, *, alive: bool) -> None:
        self._check_open()
        if broker_id not in self.image.brokers:
            raise ConfigException(f"broker_id={broker_id!r}: must be one of {sorted(self.image.brokers)}")
        if (broker_id in self._brokers) != alive:
            raise IllegalStateException(f"broker {broker_id} is {'not running' if alive else 'running already'}")

    # ---- clients -----------------------------------------------------------------------------------------------------

    def connect(self, actor: Actor, client_id: str) -> InProcessConnection:
        """Run a client's actor on this cluster; clients call this through `bootstrap_servers`."""
        self._check_open()
        return InProcessConnection(self, actor, client_id, self.connection_id())

    def client_rng(self) -> random.Random:
        """A generator for a client's ids, seeded from the cluster's."""
        return self._runtime.fork_rng()

    def crash(self, client: Client) -> None:
        """Crash a client of this cluster: it sends no further request, and its locks have to expire.

        IllegalStateException for anything but an open client that was connected through `bootstrap_servers`.
        """
        connection = self._connection_of(client)
        self.record(FaultInjected(f"{connection.client_id} crashed"))
        connection.crash()

    def freeze(self, client: Client) -> None:
        """Freeze a client of this cluster, as a long pause does: it stays connected, sends no request and no heartbeat,
        and handles no response until `unfreeze`. Its calls raise IllegalStateException.

        IllegalStateException as for `crash`, and if it is frozen already.
        """
        connection = self._connection_of(client)
        if connection.frozen:
            raise IllegalStateException(f"{connection.client_id} is frozen already")
        self.record(FaultInjected(f"{connection.client_id} is frozen"))
        connection.freeze()

    def unfreeze(self, client: Client) -> None:
        """Let a frozen client continue. IllegalStateException as for `crash`, and if it is not frozen."""
        connection = self._connection_of(client)
        if not connection.frozen:
            raise IllegalStateException(f"{connection.client_id} is not frozen")
        self.record(FaultInjected(f"{connection.client_id} is unfrozen"))
        connection.unfreeze()

    def _connection_of(self, client: Client) -> InProcessConnection:
        self._check_open()
        connection = getattr(client, "connection", None)
        if not (isinstance(connection, InProcessConnection) and connection.alive and connection.belongs_to(self)):
            raise IllegalStateException(
                f"{client!r} is not an open client of {self.bootstrap_servers}: "
                "pass a ShareConsumer, Producer or Admin that is connected to it"
            )
        return connection

    def connection_id(self) -> int:
        """A number for a connection, from within or over TCP; share sessions belong to it."""
        return next(self._connection_ids)

    # ---- over TCP ----------------------------------------------------------------------------------------------------

    def serve(self, host: str = "127.0.0.1", ports: int | Sequence[int] | None = None) -> Served:
        """Serve the cluster to Kafka clients over TCP, each broker on its own port, until the server is closed.

            with cluster.serve() as server:
                confluent_kafka.ShareConsumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "payments"})

        `ports`: None takes free ones; a number is the first broker's, the others follow it; or one for each broker.
        Clients in this process and over TCP can be used together, and the journal has the events of both.
        ConfigException for an invalid host or port. IllegalStateException for a cluster that is served already, or
        that has a virtual clock: its time would stand still while TCP clients wait.
        """
        self._check_open()
        if isinstance(self.loop, VirtualLoop):
            raise IllegalStateException(
                "clock='virtual': a cluster on a virtual clock cannot be served, because its time would stand still "
                "while TCP clients wait: use Cluster(clock='wall'), or a factor such as clock=10.0"
            )
        from shareq.wire.server import Server  # a program without a server loads no sockets

        return Server(self, host, ports)

    def served_by(self, server: Served) -> None:
        """Register a server before it opens a port. IllegalStateException if another server is open.

        Unhandled errors in the event loop are reported to the server until `no_longer_served(server)`.
        """
        self._check_open()
        if self._server is not None and not self._server.closed:
            where = self._server.bootstrap_servers
            raise IllegalStateException(
                f"{self.bootstrap_servers} is served at {where} already: close that server first"
            )
        self._server = server
        self.loop.report_to(server.report)

    def no_longer_served(self, server: Served) -> None:
        """Unregister a server: unhandled errors are raised in the thread that runs the event loop again."""
        if server is self._server:
            self.loop.report_to(None)

    @property
    def backend_versions(self) -> ApiVersionsResponse | None:
        """What the backend supports; None, because there is none."""
        return None

    def readdress(
        self, addresses: Mapping[int, tuple[str, int]], watcher: Callable[[int, bool], None] | None = None
    ) -> None:
        """Show these addresses of brokers in metadata: those of a server, or of a proxy before it.

        `watcher(broker_id, alive)` is called when a broker starts or ends; None keeps the present watcher.
        """

        def move_in() -> None:
            if watcher is not None:
                self._runtime.watch(watcher)
            self._runtime.readdress(addresses)

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
        """Create a topic; KafkaException for an invalid one. `Admin.create_topics` is the same for any Kafka."""
        texts = {key: str(value) for key, value in (configs or {}).items()}
        self._control(lambda: self._runtime.controller.create_topic(name, partitions, replication_factor, texts)[0])

    def configure_group(self, group_id: str, configs: Mapping[str, object | None]) -> None:
        """Set configurations of a group, or remove them with None."""
        texts = {key: None if value is None else str(value) for key, value in configs.items()}
        self._control(lambda: self._runtime.controller.alter_group_configs(group_id, texts))

    def _control(self, change: Callable[[], ErrorWithMessage]) -> None:
        self._check_open()
        outcomes: list[ErrorWithMessage] = []
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

    def change_speed(self, factor: float) -> None:
        """Let the clock run `factor` times as fast as the wall clock from now on; ConfigException outside 0.001..1000.

        Waits in progress keep their old time-outs. IllegalStateException on a virtual clock, which does not run.
        """
        self._check_open()
        if not isinstance(self.loop, WallLoop):
            raise IllegalStateException("clock='virtual' does not run: only clock='wall' or a factor has a speed")
        self.loop.change_scale(checked_scale("factor", factor))
        self.clock = factor

    def step(self) -> bool:
        """Run the next event of a virtual clock, jumping to its time. False if there is none."""
        self._check_open()
        if not isinstance(self.loop, VirtualLoop):
            raise IllegalStateException(f"clock={self.clock!r} runs by itself: only clock='virtual' can be stepped")
        return self.loop.step()

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Wait until `until()` holds, at most `timeout` seconds of the cluster's time; return whether it holds."""
        self._check_open()
        return self.loop.wait(until, timeout * 1000)

    # ---- faults ------------------------------------------------------------------------------------------------------

    def fail_appends(self, topic: str, error: Errors = Errors.NOT_ENOUGH_REPLICAS, times: int = 1) -> None:
        """Let the next `times` appends to `topic` fail; `__share_group_state` makes state writes fail."""
        if times < 1:
            raise ConfigException(f"times={times!r}: must be >= 1")
        self.record(FaultInjected(f"the next {times} appends to {topic} fail with {error.name}"))
        self._runtime.storage.break_appends(topic, error, times)

    def delay_appends(self, topic: str, ms: int) -> None:
        """Let each append of a coordinator to its own topic take `ms` longer, until this is changed; 0: no delay.
        `__share_group_state` delays state writes. ConfigException for another topic, and outside 0..3600000."""
        self._check_open()
        check_delay(topic, ms)
        self.record(FaultInjected(f"appends to {topic} take {ms} ms longer" if ms else f"no delay of {topic}"))
        self._runtime.storage.delays_ms[topic] = ms

    def append_delay_ms(self, topic: str) -> int:
        """The present delay of appends to an internal topic."""
        return self._runtime.storage.delays_ms.get(topic, 0)

    def clear_faults(self) -> None:
        """Remove the injected faults that have not been used, and all delays."""
        self._runtime.storage.clear_faults()

    def clean_logs(self) -> None:
        """Run retention and compaction of all logs now; otherwise they run every five minutes."""
        self._check_open()
        self.loop.enter(lambda: self._runtime.storage.clean(self.loop.now_ms()))

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata now."""
        return self._runtime.controller.image

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        """Ids of the running brokers, ascending."""
        return tuple(sorted(self._brokers))

    def log(self, topic: str, partition: int) -> MemoryLog:
        """The log of a partition, to look into; raises KafkaException where there is none."""
        found = self._runtime.storage.log(topic, partition)
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
        """Close the cluster and its server; later calls of clients raise. Repeatable."""
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


def check_group_keys(config: Mapping[str, object]) -> None:
    """ConfigException for a configuration of groups, with the call that sets it."""
    for key, value in config.items():
        if key in GROUP_CONFIGS and key not in BROKER_CONFIGS:
            broker_key = GROUP_CONFIGS[key].broker_key
            for_all = f"; {broker_key} is the brokers' default for all groups" if broker_key else ""
            raise ConfigException(
                f"{key}={value!r}: a configuration of a group, not of a broker: "
                f"use cluster.configure_group(group_id, {{{key!r}: {value!r}}}){for_all}"
            )


def _check_racks(racks: Sequence[str | None] | None, brokers: int) -> None:
    """ConfigException unless there is one rack for each broker, each a name or None."""
    listed = not isinstance(racks, str) and all(
        rack is None or (isinstance(rack, str) and rack) for rack in racks or ()
    )
    if racks is not None and not (listed and len(racks) == brokers):
        raise ConfigException(f"racks={racks!r}: must be {brokers}, one for each broker, each a name or None")
