"""Apache Kafka on this machine in one call, until its `with` block or this process ends."""

from __future__ import annotations

import logging
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from shareq.html import strong, table
from shareq.jvm import find_java
from shareq.kafka.broker_process import HOST, BrokerProcess, KafkaCommand, new_id
from shareq.kafka.jars import kafka_jars
from shareq.kafka.known_keys import unused_keys
from shareq.kafka.refusals import reason_in
from shareq.model.errors import ConfigException, IllegalStateException, KafkaException
from shareq.model.hidden_values import shown_argument
from shareq.model.numbers import plain
from shareq.proxy import Tap
from shareq.proxy import tap as open_tap
from shareq.proxy.ports import brokers_of
from shareq.trace import Journal
from shareq.wire.acceptor import bind, ports_of

_log = logging.getLogger(__name__)
_ATTEMPTS = 3
_POLL_S = 0.05
_ARCHIVED_S = 30.0
"""The most that a first stop waits for Java's archive of classes."""
_PORT_TAKEN = ("Address already in use", "BindException")

# Keys that a local Kafka sets itself: with an override it would not start, or could not be reached.
_OWN_KEYS = {
    *("process.roles", "node.id", "broker.id", "listeners", "advertised.listeners", "log.dir", "log.dirs"),
    *("controller.quorum.voters", "controller.quorum.bootstrap.servers", "controller.listener.names"),
}


class LocalKafkaError(RuntimeError):
    """Kafka did not start; the message ends with the last lines of its log."""


def laptop_config(brokers: int) -> dict[str, object]:
    """The broker configuration where it differs from Kafka's defaults: small, quick, and with the widest limits for
    share groups that Kafka allows, so that a lock may last one second."""
    return {
        "offsets.topic.num.partitions": brokers,
        "offsets.topic.replication.factor": brokers,
        "transaction.state.log.num.partitions": brokers,
        "transaction.state.log.replication.factor": brokers,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": brokers,
        "share.coordinator.state.topic.replication.factor": brokers,
        "share.coordinator.state.topic.min.isr": 1,
        "default.replication.factor": brokers,
        "group.initial.rebalance.delay.ms": 0,
        "group.share.heartbeat.interval.ms": 1000,  # a member gets its first partitions with its second heartbeat
        "group.share.min.heartbeat.interval.ms": 100,
        "group.share.min.session.timeout.ms": 1000,
        "group.consumer.heartbeat.interval.ms": 1000,
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.share.min.record.lock.duration.ms": 1000,
        "group.share.max.record.lock.duration.ms": 3600000,
        "group.share.max.delivery.count.limit": 25,
        "group.share.max.partition.max.record.locks": 10000,
        "broker.heartbeat.interval.ms": 500,
        "broker.session.timeout.ms": 3000,  # the time until a killed broker's partitions get other leaders
    }


class LocalKafka:
    """Apache Kafka on loopback ports: KRaft, share groups enabled, data in a temporary folder until it stops.

        with LocalKafka() as kafka:
            Producer({"bootstrap.servers": kafka.bootstrap_servers})

    `brokers`: 1 or 3. `config` overrides broker configurations by their Kafka names, and the log has a warning
    for each that this Kafka does not have; `laptop_config` has the other differences from Kafka's defaults. `version`
    and `allow_unpinned`: see `kafka_jars`. `port`: that of the first broker, others follow; None: free ports.
    `timeout`: the limit of a start, seconds, above 0. `tap`: put a proxy in front of it, see `shareq.tap`: then
    `bootstrap_servers` is that of the proxy, and `journal` shows the share groups of all clients, so that views take a
    local Kafka where they take a cluster. It ends with `stop()`, with its `with` block, and with this process, even a
    killed one. ConfigException for an invalid argument; JavaNotFound, KafkaNotFound or LocalKafkaError, with the
    remedy, if it cannot start.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        config: Mapping[str, object] | None = None,
        version: str | None = None,
        allow_unpinned: bool = False,
        port: int | None = None,
        timeout: float = 90.0,
        tap: bool = False,
        trace_messages: bool = False,
    ) -> None:
        brokers = plain(brokers)
        if brokers not in {1, 3} or isinstance(brokers, bool):
            raise ConfigException(f"brokers={brokers!r}: must be 1 or 3")
        if not isinstance(config, Mapping | None):
            raise ConfigException(f"config={shown_argument(config)}: must be a dict of configurations by their keys")
        if version is not None and not isinstance(version, str):
            raise ConfigException(f"version={version!r}: must be a text such as '4.4.0'")
        for key in config or {}:
            if key in _OWN_KEYS:
                raise ConfigException(f"{key}={(config or {})[key]!r}: must not be set, a local Kafka sets it itself")
        if trace_messages and not tap:
            raise ConfigException("trace_messages=True: needs tap=True, which sees the messages")
        self.config = {**laptop_config(brokers), **(config or {})}
        self._count = brokers
        self._wanted_version, self._allow_unpinned = version, allow_unpinned
        self._ports = None if port is None else ports_of(HOST, port, brokers)
        self._timeout = _checked_timeout(plain(timeout))
        self._wants_tap, self._trace_messages = tap, trace_messages
        self._tap: Tap | None = None
        self._root: Path | None = None
        self._program: KafkaCommand | None = None
        self._brokers: tuple[BrokerProcess, ...] = ()

    # ---- life --------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all brokers and wait until they serve clients. A no-op if it is running."""
        if self._root is not None:
            return self
        if sys.platform == "win32":
            raise LocalKafkaError("a local Kafka runs on Linux and macOS: on Windows use WSL")
        _check_free(self._ports or [])
        self._program = KafkaCommand(find_java(), kafka_jars(self._wanted_version, allow_unpinned=self._allow_unpinned))
        own = laptop_config(self._count)
        for sentence in unused_keys(self._program, {key: self.config[key] for key in self.config.keys() - own.keys()}):
            _log.warning(sentence)
        for _ in range(
            0 if self._ports else _ATTEMPTS - 1
        ):  # another program may take a free port before Kafka binds it
            try:
                return self._attempt(self._program)
            except _PortTaken:
                continue
        return self._attempt(self._program)

    def stop(self) -> None:
        """Kill all brokers and remove their data. Idempotent.

        The first stop with a Java ends its broker in an orderly way, once, so that later brokers start in half the
        time.
        """
        try:
            if self._tap is not None:
                self._tap.close()
            self._archive_classes()
        finally:
            self._kill()

    def _archive_classes(self) -> None:
        """A broker of several cannot end in an orderly way without the others."""
        if self._program is not None and self._program.archive.missing and self._count == 1:
            for broker in self._brokers:
                if broker.alive and broker.ready:
                    broker.terminate()
                    broker.wait(_ARCHIVED_S)
                self._program.archive.keep(broker.draft)

    def _kill(self) -> None:
        for broker in self._brokers:
            broker.kill()
        for broker in self._brokers:
            broker.wait(10)
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
        self._root, self._brokers = None, ()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _attempt(self, program: KafkaCommand) -> Self:
        self._root = Path(tempfile.mkdtemp(prefix="shareq-kafka-"))
        ports, controller_ports = _with_controllers(self._ports, self._count)
        self._brokers = tuple(
            BrokerProcess(program, self._root, number, port, controller_port)
            for number, (port, controller_port) in enumerate(zip(ports, controller_ports, strict=True))
        )
        try:
            self._format()
            for broker in self._brokers:
                broker.start()
            self._wait_ready(*self._brokers)
            if self._wants_tap:
                self._tap = open_tap(self.direct_servers, trace_messages=self._trace_messages)
        except BaseException:
            self.stop()
            raise
        return self

    def _format(self) -> None:
        voters = [broker.voter for broker in self._brokers]
        for broker in self._brokers:
            broker.configure(voters, self.config)
        cluster_id, (first, *others) = new_id(), self._brokers
        done = first.format(cluster_id)
        if done.returncode:
            output = done.stdout + done.stderr
            why = reason_in(output) or f"\n{_last(output, 15)}"
            raise LocalKafkaError(f"Apache Kafka refuses its configuration: {why}")
        for broker in others:
            broker.format_like(first, cluster_id)

    def _wait_ready(self, *brokers: BrokerProcess) -> None:
        deadline = time.monotonic() + self._timeout
        for broker in brokers:
            while not broker.ready:
                output = broker.output()
                if any(sign in output for sign in _PORT_TAKEN):
                    raise _PortTaken(_with_log(broker, "could not bind its port"))
                if not broker.alive:
                    raise LocalKafkaError(_end_of_start(broker, output))
                if time.monotonic() > deadline:
                    raise LocalKafkaError(_with_log(broker, f"was not ready after {self._timeout:g} s"))
                time.sleep(_POLL_S)
        self._wait_listed(deadline)

    def _wait_listed(self, deadline: float) -> None:
        """Wait until each broker names all others in its metadata: a client drops its connection to a broker that the
        metadata does not name, and a broker that serves clients learns of the others up to 0.3 s later."""
        running = [broker for broker in self._brokers if broker.alive]
        if len(running) == 1:
            return
        expected = {broker.broker_id for broker in running}
        for broker in running:
            while missing := expected - _named_by(broker):
                if not broker.alive or time.monotonic() > deadline:
                    text = f"did not name brokers {sorted(missing)} within {self._timeout:g} s"
                    raise LocalKafkaError(_with_log(broker, text))
                time.sleep(_POLL_S)

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def kill_broker(self, broker_id: int) -> None:
        """Kill a broker. Its partitions get other leaders within seconds, when its session at the controller ends."""
        self._end(broker_id, BrokerProcess.kill)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in an orderly way: its partitions get other leaders first."""
        self._end(broker_id, BrokerProcess.terminate)

    def start_broker(self, broker_id: int) -> None:
        """Start a killed or stopped broker again, on its port and with its data, and wait until it serves clients."""
        broker = self._broker(broker_id, alive=False)
        broker.start()
        self._wait_ready(broker)

    def _end(self, broker_id: int, order: Callable[[BrokerProcess], None]) -> None:
        broker = self._broker(broker_id, alive=True)
        order(broker)
        if not broker.wait(self._timeout):
            raise LocalKafkaError(_with_log(broker, "does not end"))

    def _broker(self, broker_id: int, *, alive: bool | None = None) -> BrokerProcess:
        self._check_running()
        if broker_id not in range(self._count):
            raise ConfigException(f"broker_id={broker_id!r}: must be one of {list(range(self._count))}")
        broker = self._brokers[broker_id]
        if alive is not None and broker.alive != alive:
            raise IllegalStateException(f"broker {broker_id} is {'not running' if alive else 'already running'}")
        return broker

    # ---- state -------------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The value of a client's `bootstrap.servers`: the brokers, or with `tap=True` the proxy in front of them."""
        direct = self.direct_servers
        return direct if self._tap is None else self._tap.bootstrap_servers

    @property
    def direct_servers(self) -> str:
        """The addresses of the brokers themselves."""
        self._check_running()
        return ",".join(broker.address for broker in self._brokers)

    @property
    def tap(self) -> Tap:
        """The proxy in front of the brokers; it stays readable after a stop. IllegalStateException without one."""
        if self._tap is None:
            raise IllegalStateException("this local Kafka has no tap: start it with LocalKafka(tap=True)")
        return self._tap

    @property
    def journal(self) -> Journal:
        """The journal of the tap. IllegalStateException without one."""
        return self.tap.journal

    @property
    def brokers_alive(self) -> tuple[int, ...]:
        """The ids of the running brokers, ascending."""
        return tuple(broker.broker_id for broker in self._brokers if broker.alive)

    @property
    def version(self) -> str | None:
        """The version of Apache Kafka; before the first start the requested one."""
        return self._program.jars.version if self._program else self._wanted_version

    @property
    def logs(self) -> Path:
        """The folder with one log file per broker."""
        self._check_running()
        return self._brokers[0].log.parent

    def tail(self, lines: int = 20, broker_id: int = 0) -> str:
        """The last lines of a broker's log."""
        return _last(self._broker(broker_id).log.read_text(errors="replace"), lines)

    def _check_running(self) -> None:
        if self._root is None:
            raise IllegalStateException("this local Kafka is not running: call start(), or use it in a `with` block")

    def __repr__(self) -> str:
        if self._root is None:
            return "LocalKafka(not running)"
        alive = f"brokers {list(self.brokers_alive)} of {self._count} alive"
        return f"LocalKafka({self.bootstrap_servers}, Apache Kafka {self.version}, {alive})"

    def _repr_html_(self) -> str:
        rows = [(b.broker_id, strong(b.address), "serving" if b.alive else "not running", b.log) for b in self._brokers]
        title = f"Apache Kafka {self.version}" if self._root else "Apache Kafka, not running"
        return table(("broker", "address", "state", "log"), rows, caption=title)


class _PortTaken(LocalKafkaError):
    """Another program has bound a port after it was chosen and before Kafka bound it."""


def _checked_timeout(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ConfigException(f"timeout={timeout!r}: must be a number of seconds above 0")
    return timeout


def _free_ports(count: int) -> list[int]:
    """Free ports; all are bound at the same time, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [taken.getsockname()[1] for taken in sockets]


def _with_controllers(ports: list[int] | None, brokers: int) -> tuple[list[int], list[int]]:
    """The ports of brokers, which may be chosen, and free ones of their controllers."""
    free = [port for port in _free_ports(2 * brokers + len(ports or [])) if port not in (ports or [])]
    return ports or free[:brokers], free[brokers : 2 * brokers]


def _check_free(ports: list[int]) -> None:
    """ConfigException if another program uses one of the ports: Kafka would fail after seconds, and with a trace."""
    for port in ports:
        bind(HOST, port).close()


def _named_by(broker: BrokerProcess) -> set[int]:
    """The brokers in the metadata that a broker answers with; none if it does not answer."""
    try:
        return set(brokers_of(broker.address))
    except KafkaException:
        return set()


def _with_log(broker: BrokerProcess, what: str) -> str:
    return f"Kafka's broker {broker.broker_id} {what}:\n{_last(broker.output(), 25)}"


def _end_of_start(broker: BrokerProcess, output: str) -> str:
    """Why a broker has ended while it started: the exception, else the end of its log."""
    what = "ended while it started"
    why = reason_in(output)
    return f"Kafka's broker {broker.broker_id} {what}: {why}" if why else _with_log(broker, what)


def _last(text: str, lines: int) -> str:
    return "\n".join(text.splitlines()[-lines:])
