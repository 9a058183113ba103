"""A whole Kafka cluster in this process: brokers, controller, logs, network, clock, journal."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shareq.broker import cluster_arguments as arguments
from shareq.broker.cluster_html import clock_and_persister, cluster_html
from shareq.broker.cluster_runtime import ClusterRuntime
from shareq.broker.loop import WallLoop, checked_scale, make_loop
from shareq.broker.message_faults import MessageFaults
from shareq.broker.placement import ErrorWithMessage
from shareq.broker.runtimes import make_runtime
from shareq.broker.storage import check_delay
from shareq.broker.transport import Client, InProcessConnection, client_fault, open_connection
from shareq.html import html
from shareq.log.memory import MemoryLog
from shareq.model.actor import ANONYMOUS, Actor
from shareq.model.closing import Closing
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import FaultInjected
from shareq.model.image import Addresses, ClusterImage
from shareq.model.numbers import plain
from shareq.model.transport import Served
from shareq.trace import Journal
from shareq.transports import publish
from shareq.wire.served_cluster import ServedBrokers

if TYPE_CHECKING:
    from shareq.wire.security.listener_security import ListenerSecurity


class Cluster(Closing):
    """A cluster of `brokers` brokers in this process (default: 3), or share groups on the topics of a `backend`.

    `clock`: "virtual" (time passes only during calls that wait, and then at once), "wall", or a factor such as 10.0.
    `seed` is that of every random choice (default: 0). `config` overrides broker configurations by their Kafka names.
    `journal`: True, False, or the number of newest events to keep. `latency_ms`: how long a message takes each way.
    `racks`: the rack of each broker, None for one without. `persister`: where states of records are kept: "state-topic"
    (default), "compacted-topic", "control-records" or "none". ConfigException for an invalid argument.

    `backend`: the `bootstrap.servers` of an Apache Kafka 3.9 or newer, which need not know share groups. Brokers,
    topics and logs are the backend's; share groups are served by this process, and kept with the states of their
    records in topics of the backend (`shareq-...`), so that the next process continues where this one ends. Several
    processes that are served (`serve`) share the work on a backend; a process that is not served works there alone, or
    uses the ones that are. The clock is "wall" (the default) or a factor. `config` overrides the configurations of
    share groups and their coordinators; `backend_config` has confluent-kafka's keys for connections to a secured
    backend, `peer_config` those for connections to other processes whose first listener is secured. The faults of
    brokers and logs of this process raise IllegalStateException. KafkaException if the backend does not answer.
    """

    def __init__(
        self,
        brokers: int | None = None,
        *,
        backend: str | None = None,
        backend_config: Mapping[str, object] | None = None,
        peer_config: Mapping[str, object] | None = None,
        clock: str | float | None = None,
        seed: int | None = None,
        config: Mapping[str, object] | None = None,
        persister: str | None = None,
        journal: bool | int = True,
        latency_ms: int = 0,
        trace_messages: bool = False,
        racks: Sequence[str | None] | None = None,
    ) -> None:
        self.backend = backend
        self.clock: str | float = plain(clock) if clock is not None else "virtual" if backend is None else "wall"
        brokers = 3 if brokers is None and backend is None else plain(brokers)
        config = arguments.broker_overrides(config, persister)
        connections: Any = {"backend_config": backend_config, "peer_config": peer_config}
        in_memory: Any = {"racks": racks, "latency_ms": plain(latency_ms)}
        arguments.check_arguments(self.clock, config, backend, connections, brokers=brokers, **in_memory)
        # A second process on a backend must not repeat the ids of the first.
        self.seed = plain(seed) if seed is not None else 0 if backend is None else random.Random().getrandbits(32)
        rng = random.Random(self.seed)
        self.closed = False
        self.loop = make_loop(self.clock)
        self.origin_ms = self.loop.time_ms()
        capacity = arguments.checked_capacity(journal := plain(journal))
        self.journal = Journal(self.origin_ms, capacity=capacity, enabled=journal is not False)
        self._connection_ids = count()
        self._server: Served | None = None
        shared: Any = {"loop": self.loop, "journal": self.journal, "rng": rng, "trace_messages": trace_messages}
        self._runtime = make_runtime(brokers, backend, config, **connections, **in_memory, **shared)
        self.network = self._runtime.network
        self.front: ServedBrokers = self._runtime.front
        self.record = self._runtime.record
        self._brokers: Mapping[int, Any] = self._runtime.brokers
        self.bootstrap_servers = publish(self, rng)
        try:
            self.loop.enter(self._runtime.start_all)
            self._runtime.await_start()
        except BaseException:
            self.close()
            raise

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def kill_broker(self, broker_id: int) -> None:
        """Kill a broker: its connections break, its memory is lost, leadership and coordinators move."""
        self.loop.enter(partial(self._runtime.kill, self._known_broker(broker_id, alive=True)))

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in an orderly way: leadership moves first, then its connections are closed."""
        self.loop.enter(partial(self._runtime.stop, self._known_broker(broker_id, alive=True)))

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker again; its logs are as they were, its memory is empty."""
        self.loop.enter(partial(self._runtime.start, self._known_broker(broker_id, alive=False)))

    def elect_preferred_leaders(self) -> None:
        """Give each partition back to the first of its replicas that is alive."""
        self.loop.enter(self._runtime.controller.elect_preferred_leaders)

    def _known_broker(self, broker_id: int, *, alive: bool) -> int:
        self._check_open()
        known, running = self.image.brokers, self.brokers_alive
        return broker_id if self.backend else arguments.known_broker(broker_id, known, running, alive=alive)

    # ---- clients -----------------------------------------------------------------------------------------------------

    def bootstrap_servers_as(self, user: str) -> str:
        """The value of `bootstrap.servers` for clients in this process that are this user: its principal is
        "User:alice". Clients of `bootstrap_servers` are "User:ANONYMOUS". ConfigException for an empty name."""
        scheme, _, name = self.bootstrap_servers.partition("://")
        return f"{scheme}://{arguments.checked_user(user)}@{name}"

    def connect(self, actor: Actor, client_id: str, principal: str = ANONYMOUS) -> InProcessConnection:
        """Run a client's actor on this cluster; clients call this through `bootstrap_servers`."""
        self._check_open()
        return InProcessConnection(self, actor, client_id, self.connection_id(), principal)

    def client_rng(self) -> random.Random:
        """A generator for a client's ids, seeded from the cluster's."""
        return self._runtime.fork_rng()

    def crash(self, client: Client) -> None:
        """Crash a client of this cluster: it sends no further request, and its locks have to expire.
        IllegalStateException for anything but an open client that was connected through `bootstrap_servers`."""
        connection = self._connection_of(client)
        self.record(client_fault(client, f"{connection.client_id} crashed", "crashed"))
        connection.crash()

    def freeze(self, client: Client) -> None:
        """Freeze a client of this cluster, as a long pause does: it stays connected, sends no request and no heartbeat,
        and handles no response until `unfreeze`. Its calls raise IllegalStateException. IllegalStateException as for
        `crash`, and if it is frozen already."""
        connection = self._connection_of(client)
        if connection.frozen:
            raise IllegalStateException(f"{connection.client_id} is frozen already")
        self.record(client_fault(client, f"{connection.client_id} is frozen", "frozen"))
        connection.freeze()

    def unfreeze(self, client: Client) -> None:
        """Let a frozen client continue. IllegalStateException as for `crash`, and if it is not frozen."""
        connection = self._connection_of(client)
        if not connection.frozen:
            raise IllegalStateException(f"{connection.client_id} is not frozen")
        self.record(client_fault(client, f"{connection.client_id} is unfrozen", "unfrozen"))
        connection.unfreeze()

    def _connection_of(self, client: Client) -> InProcessConnection:
        self._check_open()
        return open_connection(client, self)

    def connection_id(self) -> int:
        """A number for a connection; share sessions belong to it."""
        return next(self._connection_ids)

    # ---- over TCP ----------------------------------------------------------------------------------------------------

    def serve(
        self,
        host: str = "127.0.0.1",
        ports: int | Sequence[int] | None = None,
        *,
        listeners: Sequence[str] | None = None,
        security: ListenerSecurity | None = None,
    ) -> Served:
        """Serve the cluster to Kafka clients over TCP, each broker on its own port, until the server is closed.

            with cluster.serve() as server:
                confluent_kafka.ShareConsumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "payments"})

        `ports`: None takes free ones; a number is the first broker's, the others follow it; or one for each broker.
        `security`: TLS and logins; without it the ports are open to all that reach them.
        `listeners`: in place of `host` and `ports`, one or several texts such as "PLAINTEXT://127.0.0.1:9092" and
        "SASL_SSL://10.0.0.1:9093" (the first broker's port; 0: free ports), which have what their protocol needs of
        `security`. A client gets the addresses of the listener by which it has come.
        Clients in this process and over TCP can be used together, and the journal has the events of both.
        ConfigException for an invalid host, port or security. IllegalStateException for a cluster that is served
        already, or has a virtual clock: its time would stand still while TCP clients wait.
        """
        self._check_open()
        arguments.check_servable(self.clock)
        from shareq.wire.server import Server  # a program without a server loads no sockets

        return Server(self, host, ports, listeners=listeners, security=security)

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
            if self.backend:  # other processes there cannot reach this one any more
                self.loop.enter(lambda: self._runtime.readdress({}, {}))

    def readdress(
        self,
        addresses: Addresses,
        watcher: Callable[[int, bool], None] | None = None,
        listeners: Mapping[str, Addresses] = MappingProxyType({}),
    ) -> None:
        """Show these addresses of brokers in metadata: those of a server, or of a proxy before it; `listeners`: those
        of each of several listeners. `watcher(broker_id, alive)` is called when a broker starts or ends; None keeps the
        present watcher."""

        def move_in() -> None:
            if watcher is not None:
                self._runtime.watch(watcher)
            self._runtime.readdress(addresses, listeners)

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
        given = arguments.topic_arguments(name, partitions, replication_factor, configs)
        self._control(lambda done: self._runtime.create_topic(*given, done))

    def configure_group(self, group_id: str, configs: Mapping[str, object | None]) -> None:
        """Set configurations of a group, or remove them with None."""
        texts = arguments.changed_configs(configs)
        self._control(lambda done: self._runtime.configure_group(group_id, texts, done))

    def _control(self, change: Callable[[Callable[[ErrorWithMessage], object]], object]) -> None:
        self._check_open()
        outcomes: list[ErrorWithMessage] = []
        self.loop.enter(lambda: change(outcomes.append))
        if not outcomes:
            self.loop.wait(lambda: bool(outcomes), None)
        error, why = outcomes[0]
        if error:
            raise KafkaException(KafkaError(error, why))

    # ---- time --------------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The clock of the journal and of all durations, ms since the epoch; timestamps follow the system's clock."""
        return self.loop.time_ms()

    def advance(self, ms: float) -> None:
        """Let `ms` of the cluster's time pass: at once on a virtual clock, really on the others."""
        ms = arguments.checked_ms(ms)
        self._check_open()
        self.loop.wait(lambda: False, plain(ms))

    def change_speed(self, factor: float) -> None:
        """Let the clock run `factor` times as fast as the wall clock from now on; ConfigException outside 0.001..1000.

        Waits in progress keep their old time-outs. IllegalStateException on a virtual clock, which does not run.
        """
        self._check_open()
        if not isinstance(self.loop, WallLoop):
            raise IllegalStateException("clock='virtual' does not run: only clock='wall' or a factor has a speed")
        self.loop.change_scale(checked_scale("factor", factor))
        self.clock = plain(factor)

    def step(self) -> bool:
        """Run the next event of a virtual clock, jumping to its time. False if there is none."""
        self._check_open()
        return arguments.virtual_loop(self.loop, self.clock, "be stepped").step()

    def jump_clock(self, ms: int, *, of_day: bool = False) -> None:
        """Let `ms` pass at once without an event, as a pause of the machine does: what was due meanwhile happens at the
        next call that waits, late. `of_day`: no time passes, but the system's clock is set ahead, or back if `ms` is
        negative; timestamps follow it, durations do not. ConfigException outside 0..31536000000 (`of_day`: from
        -31536000000 on); IllegalStateException unless the clock is virtual."""
        self._check_open()
        loop = arguments.virtual_loop(self.loop, self.clock, "jump")
        (loop.set_day if of_day else loop.jump)(arguments.checked_jump(ms, of_day=of_day))
        self.record(FaultInjected(f"the {'time of day' if of_day else 'clock'} has jumped by {ms} ms"))

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Wait until `until()` holds, at most `timeout` seconds of the cluster's time; return whether it holds."""
        self._check_open()
        return self.loop.wait(until, timeout * 1000)

    # ---- faults ------------------------------------------------------------------------------------------------------

    def fail_appends(self, topic: str, error: Errors = Errors.NOT_ENOUGH_REPLICAS, times: int = 1) -> None:
        """Let the next `times` appends to `topic` fail; `__share_group_state` makes state writes fail."""
        self._runtime.storage.break_appends(topic, error, times)
        self.record(FaultInjected(f"the next {times} appends to {topic} fail with {error.name}"))

    def delay_appends(self, topic: str, ms: int) -> None:
        """Let each append of a producer, or of a coordinator to its own topic, be answered `ms` later; 0: no delay.
        `__share_group_state` delays state writes. ConfigException for an unknown topic, and outside 0..3600000."""
        self._check_open()
        check_delay(topic, ms, self.image)
        storage = self._runtime.storage
        self.record(FaultInjected(f"appends to {topic} take {ms} ms longer" if ms else f"no delay of {topic}"))
        storage.delays_ms[topic] = plain(ms)

    def append_delay_ms(self, topic: str) -> int:
        """The present delay of appends to a topic."""
        return 0 if self.backend else self._runtime.storage.delays_ms.get(topic, 0)

    def clear_faults(self) -> None:
        """Remove the injected faults that have not been used, and all delays; all messages pass."""
        if isinstance(self._runtime, ClusterRuntime):
            self._runtime.storage.clear_faults()
            self._runtime.message_faults.heal()

    @property
    def messages(self) -> MessageFaults:
        """Loss, delay and partitions of the network; ConfigException on a backend, whose network is real."""
        if not isinstance(self._runtime, ClusterRuntime):
            raise ConfigException(f"backend={self.backend!r}: messages are lost or late only within this process")
        return self._runtime.message_faults

    def clean_logs(self) -> None:
        """Run retention and compaction of all logs now; otherwise they run every five minutes. What the groups are to
        be asked for (an experiment) is deleted when they have answered."""
        self._check_open()
        self.loop.enter(self._runtime.clean_logs)

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata now."""
        return self._runtime.image

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        """Ids of the running brokers, ascending."""
        return self._runtime.brokers_alive

    def log(self, topic: str, partition: int) -> MemoryLog:
        """The log of a partition, to look into; raises KafkaException where there is none."""
        return self._runtime.storage.existing_log(topic, partition)

    def __repr__(self) -> str:
        topics = sum(not name.startswith("__") for name in self.image.topics)
        state = "closed" if self.closed else f"brokers {list(self.brokers_alive)} of {len(self.image.brokers)} alive"
        where = self.bootstrap_servers + (f", backend {self.backend}" if self.backend else "")
        clock = clock_and_persister(self.clock, self.image)
        return f"Cluster({where}, {clock}, {state}, {topics} topic{'s' * (topics != 1)})"

    def _repr_html_(self) -> str:
        if self.backend:
            return f"<code>{html(repr(self))}</code>"
        about = f"{clock_and_persister(self.clock, self.image)}, seed {self.seed}"
        served = self._server is not None and not self._server.closed
        return cluster_html(self.bootstrap_servers, about, self.image, self.log, served=served)

    # ---- the rest ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the cluster and its server; later calls of clients raise. Repeatable."""
        if not self.closed:
            if self._server is not None:
                self._server.close()
            self.closed = True
            self._runtime.close()
            self.loop.close()

    def _check_open(self) -> None:
        if self.closed:
            raise IllegalStateException(f"{self.bootstrap_servers} is closed")
