"""Requests of this process to the brokers of the backend."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from shareq.broker.loop import EventLoop
from shareq.client.config import ClientConfig
from shareq.model.actor import ANY_NODE, NEWEST_VERSION, Answer, Call, Effect, Message
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataResponse
from shareq.wire.client import io_thread
from shareq.wire.client.addresses import parse_bootstrap_servers
from shareq.wire.client.client_host import TcpClientHost
from shareq.wire.client.socket_settings import SocketSettings

REQUEST_TIMEOUT_MS = 10_000

Done = Callable[[Answer], object]


class _Calls:
    """The actor of a lane: it pairs answers with callers, and calls `take(done, answer)` under the lane's lock."""

    wake_at_ms = None

    def __init__(self, take: Callable[[Done, Answer], None]) -> None:
        self._take = take
        self._pending: dict[int, Done] = {}
        self._last_id = 0

    def call(self, node: int, request: Request, done: Done, timeout_ms: int, version: int) -> Iterable[Effect]:
        self._last_id += 1
        self._pending[self._last_id] = done
        return (Call(self._last_id, node, request, timeout_ms, version),)

    @property
    def idle(self) -> bool:
        return not self._pending

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        del now_ms
        assert isinstance(message, Answer), "the actor only calls"
        self._take(self._pending.pop(message.id), message)
        return []


class BackendClient:
    """Connections to all brokers of the backend. Answers arrive on the cluster's event loop, in their order.

    A lane has a connection of its own to each broker. Requests on one lane are answered in order, so a request that
    waits for records delays only its own lane.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        loop: EventLoop,
        rng: random.Random,
        client_id: str,
        config: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """`config`: sockets and security of all connections, in confluent-kafka's keys. KafkaException (_INVALID_ARG)
        for an impossible one."""
        checked = ClientConfig({**config, "bootstrap.servers": bootstrap_servers}, ())
        self._settings = SocketSettings.of(checked.sockets)
        self._servers = parse_bootstrap_servers(bootstrap_servers, self._settings.security.protocol)
        self._loop = loop
        self._rng = rng
        self._client_id = client_id
        self._lanes: dict[str, tuple[TcpClientHost, _Calls]] = {}
        self._ending: set[str] = set()
        self._metadata: MetadataResponse | None = None
        self._answers: deque[tuple[Done, Answer]] = deque()
        self._closed = False
        self._io = io_thread.enter()

    def call(
        self,
        node: int,
        request: Request,
        done: Done,
        *,
        lane: str = "",
        client_id: str = "",
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        version: int = NEWEST_VERSION,
    ) -> None:
        """Send a request to a broker (ANY_NODE: any one); `done(answer)` is called later. A no-op once closed.

        `client_id`: the id that the requests of a new lane carry, else that of this process.
        """
        if not self._closed:
            host, calls = self._lanes.get(lane) or self._open(lane, client_id or self._client_id)
            host.run(lambda _: calls.call(node, request, done, timeout_ms, version))

    def call_any(self, request: Request, done: Done) -> None:
        """Send a request to any broker."""
        self.call(ANY_NODE, request, done)

    def _open(self, lane: str, client_id: str) -> tuple[TcpClientHost, _Calls]:
        calls = _Calls(self._take)
        host = TcpClientHost(calls, client_id, self._servers, self._rng, self._settings)
        if self._metadata is not None:
            host.directory.learn(self._metadata)
        self._lanes[lane] = host, calls
        return host, calls

    def learn(self, metadata: MetadataResponse) -> None:
        """Store the addresses of the backend's brokers."""
        self._metadata = metadata
        for host, _ in self._lanes.values():
            with host.lock:
                host.directory.learn(metadata)

    def soon(self, call: Callable[[], object]) -> None:
        """Call on the event loop when the responses that are ready now have been written. A no-op once closed."""
        self._io.soon(self._due, call)

    def later(self, delay_ms: float, call: Callable[[], object]) -> None:
        """Call on the event loop after a real time, whatever the speed of the cluster's clock. A no-op once closed."""
        self._io.soon(lambda: self._io.loop.call_later(delay_ms / 1000, self._due, call))

    def _due(self, call: Callable[[], object]) -> None:
        if not self._closed:
            self._loop.run(call)

    def has_lane(self, lane: str) -> bool:
        """True from the first request on a lane until the lane is to be closed."""
        return lane in self._lanes and lane not in self._ending

    def close_lane(self, lane: str, *, at_once: bool = False) -> None:
        """Close the connections of a lane when its last request is answered: a client may close its connection right
        after a Produce with acks=0. `at_once`: now; its requests are not answered."""
        if lane in self._lanes:
            host, calls = self._lanes[lane]
            if calls.idle or at_once:
                del self._lanes[lane]
                host.forget()
            else:
                self._ending.add(lane)

    def close(self) -> None:
        """Close all connections; answers under way are dropped. Repeatable."""
        if not self._closed:
            self._closed = True
            for host, _ in self._lanes.values():
                host.close()
            io_thread.leave(self._io)

    # ---- answers -----------------------------------------------------------------------------------------------------

    def _take(self, done: Done, answer: Answer) -> None:
        """Keep an answer for the event loop. The caller holds the lane's lock, under which the loop's lock must not be
        taken: the loop takes a lane's lock to send."""
        self._answers.append((done, answer))
        self._io.afterwards(self._hand_over)

    def _hand_over(self) -> None:
        if self._answers and not self._closed:
            self._loop.run(self._deliver)

    def _deliver(self) -> None:
        while self._answers:
            done, answer = self._answers.popleft()
            done(answer)
        for lane in [lane for lane in self._ending if self._lanes[lane][1].idle]:
            self._ending.discard(lane)
            self.close_lane(lane)
