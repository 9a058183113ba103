"""`inproc://name`: clients of a cluster in this process. A client's actor runs on the cluster's own loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from shareq.broker.host import Host
from shareq.broker.loop import EventLoop, Timer
from shareq.broker.network import Network
from shareq.model.actor import ANONYMOUS, Actor, Call, ClientContext, Effect, Message
from shareq.model.errors import ClientFailedException, IllegalStateException, KafkaError, KafkaException
from shareq.model.events import Event, FaultInjected
from shareq.model.image import ClusterImage
from shareq.model.transport import Connection

MAX_IDLE = "connections.max.idle.ms"


class ClusterAccess(Protocol):
    """The part of a cluster that a client's connection uses."""

    loop: EventLoop
    network: Network
    closed: bool
    bootstrap_servers: str

    @property
    def image(self) -> ClusterImage: ...
    def record(self, event: Event) -> None: ...


class InProcessClientHost(Host):
    """The host of a client's actor. An exception of the actor ends this client; all else runs on.

    A frozen host, like a process after SIGSTOP, keeps the messages that arrive, and handles them when it is unfrozen.
    """

    __slots__ = ("_kept", "failure", "watcher")

    def __init__(
        self,
        name: str,
        actor: Actor,
        loop: EventLoop,
        carry: Mapping[type, Callable[[Host, Any], None]],
        record: Callable[[Event], None],
    ) -> None:
        super().__init__(name, actor, loop, carry, record)
        self.failure: Exception | None = None
        self.watcher: Callable[[], object] | None = None
        self._kept: list[Message] | None = None
        """The messages that a frozen host has not handled; None: it is not frozen."""

    def deliver(self, message: Message) -> None:
        if self._kept is not None:
            self._kept.append(message)
        elif self.alive and self.failure is None:
            try:
                self.perform(self.actor.handle(message, self._loop.time_ms()))
            except Exception as failure:
                self.failure = failure
            if self.watcher is not None:
                self.watcher()

    @property
    def frozen(self) -> bool:
        return self._kept is not None

    def freeze(self) -> None:
        if self._kept is None:
            self._kept = []

    def unfreeze(self) -> None:
        kept, self._kept = self._kept or [], None
        for message in kept:
            self.deliver(message)

    def carry_out(self, action: Callable[[int], Iterable[Effect]]) -> None:
        """Run `action` on the actor from the application's thread, and carry out its effects."""
        try:
            self.perform(action(self._loop.time_ms()))
        except Exception as failure:
            self.failure = failure


class InProcessConnection:
    """One client on a cluster: a host on the loop, and connections to the brokers that it calls.

    A connection without a request for connections.max.idle.ms is closed, as over TCP: this is how brokers detect a
    client that has crashed.
    """

    def __init__(
        self, cluster: ClusterAccess, actor: Actor, client_id: str, connection_id: int, principal: str = ANONYMOUS
    ) -> None:
        self.client_id = client_id
        self.connection_id = connection_id
        self._cluster = cluster
        self._context = ClientContext(client_id=client_id, connection_id=connection_id, principal=principal)
        self._host = InProcessClientHost(client_id, actor, cluster.loop, {Call: self._call}, cluster.record)
        self._used_ms: dict[int, int] = {}  # by broker: when it was called last
        self._idle_timer: Timer | None = None

    def now_ms(self) -> int:
        return self._cluster.loop.time_ms()

    def time_of_day(self, time_ms: int) -> int:
        return self._cluster.loop.time_of_day(time_ms)

    def run(self, action: Callable[[int], Iterable[Effect]]) -> None:
        self._check()
        if self._host.frozen:
            raise IllegalStateException(f"client {self.client_id!r} is frozen: call cluster.unfreeze(client) first")
        self._cluster.loop.enter(lambda: self._host.carry_out(action))
        if self._host.failure is not None:
            self._check()

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        self._check()
        host = self._host
        happened = self._cluster.loop.wait(lambda: host.failure is not None or until(), timeout_ms)
        if host.failure is not None:
            self._check()
        return happened

    def close(self) -> None:
        """Close the client's connections in an orderly way: brokers close its share sessions at once."""
        if self._host.alive:
            self._cluster.loop.enter(self._disconnect)

    def watch(self, watcher: Callable[[], object] | None) -> None:
        """Call `watcher()` on the event loop after each message that the client has handled, and after `unfreeze`. None
        ends it. It replaces the previous watcher."""
        self._host.watcher = watcher

    def freeze(self) -> None:
        """Stop the client's process without closing its connections: it neither sends nor handles anything."""
        self._cluster.loop.enter(self._host.freeze)

    def unfreeze(self) -> None:
        """Let a frozen client continue: it handles the messages that have arrived meanwhile."""

        def go_on() -> None:
            self._host.unfreeze()
            if self._host.watcher is not None:
                self._host.watcher()

        self._cluster.loop.enter(go_on)

    @property
    def frozen(self) -> bool:
        return self._host.frozen

    def crash(self) -> None:
        """Stop the client as a power failure does: brokers are not informed, and its locks have to expire."""
        self._cluster.loop.enter(self._host.die)

    @property
    def failure(self) -> Exception | None:
        return self._host.failure

    def belongs_to(self, cluster: object) -> bool:
        """True if the client was connected to `cluster`."""
        return self._cluster is cluster

    @property
    def alive(self) -> bool:
        return self._host.alive

    def _disconnect(self) -> None:
        self._host.die()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._cluster.network.disconnect(self.connection_id)

    def _call(self, host: Host, effect: Any) -> None:
        self._used_ms[effect.node] = now_ms = self.now_ms()
        if self._idle_timer is None:
            self._idle_timer = self._cluster.loop.at(now_ms + self._max_idle_ms, self._close_idle)
        self._cluster.network.call(host, effect, self._context)

    @property
    def _max_idle_ms(self) -> int:
        limit_ms: int = self._cluster.image.broker_config[MAX_IDLE]
        return limit_ms

    def _close_idle(self) -> None:
        """Close idle connections, and set the timer for the next one that may become idle."""
        network, now_ms, max_idle_ms = self._cluster.network, self.now_ms(), self._max_idle_ms
        for broker_id, used_ms in list(self._used_ms.items()):
            if network.awaits(self._host, broker_id):
                self._used_ms[broker_id] = now_ms
            elif used_ms + max_idle_ms <= now_ms:
                del self._used_ms[broker_id]
                network.disconnect(self.connection_id, broker_id)
        due_ms = min(self._used_ms.values(), default=None)
        self._idle_timer = None
        if due_ms is not None:
            self._idle_timer = self._cluster.loop.at(due_ms + max_idle_ms, self._close_idle)

    def _check(self) -> None:
        if self._cluster.closed:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"{self._cluster.bootstrap_servers} is closed"))
        if self._host.failure is not None:
            raise ClientFailedException.of(self.client_id, self._host.failure) from self._host.failure
        if not self._host.alive:
            raise KafkaException(
                KafkaError(KafkaError._TRANSPORT, f"client {self.client_id!r} has lost its connection")
            )


class Client(Protocol):
    """A client as `Cluster.crash` needs it: ShareConsumer, Producer, Admin."""

    @property
    def connection(self) -> Connection: ...


@runtime_checkable
class HasMemberId(Protocol):
    """A client that can be a member of a share group: ShareConsumer."""

    def member_id(self) -> str: ...


def client_fault(client: Client, text: str, fault: str) -> FaultInjected:
    """The event of a fault of this client."""
    return FaultInjected(text, client.member_id() if isinstance(client, HasMemberId) else None, fault)


def open_connection(client: Client, cluster: ClusterAccess) -> InProcessConnection:
    """The connection of an open client in the process of its cluster; IllegalStateException for anything else."""
    connection = getattr(client, "connection", None)
    if not (isinstance(connection, InProcessConnection) and connection.alive and connection.belongs_to(cluster)):
        raise IllegalStateException(
            f"{client!r} is not an open client of {cluster.bootstrap_servers}: "
            "pass a ShareConsumer, Producer or Admin that is connected to it"
        )
    return connection
