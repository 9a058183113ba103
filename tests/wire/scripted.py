"""A scripted broker on its own socket, and a client actor that only records its messages.

    with ScriptedBroker() as broker:
        broker.answers[MetadataRequest] = lambda peer, request: METADATA

The answer is a response, bytes that are sent as they are, or None: the script sends the response later, or never.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Self

from shareq.model.actor import ANY_NODE, Answer, Call, Effect, Tick
from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.wire.apis import APIS
from shareq.wire.client import TcpConnection, TcpTransport
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import FrameReader, decode_request, encode_response
from tests.polling import PATIENCE_S

METADATA = MetadataResponse(brokers=(), cluster_id="c", controller_id=-1)


def versions(*, transactions: int = 2, **ranges: tuple[int, int] | None) -> ApiVersionsResponse:
    """ApiVersions of all APIs that shareq offers. `ranges` replaces an API's range by name; None removes the API."""
    offered = {api.name: (api.min_version, api.max_version) for api in APIS} | ranges
    keys = {api.name: api.key for api in APIS}
    feature = ApiVersionsResponse.FinalizedFeatureKey(
        name="transaction.version", max_version_level=transactions, min_version_level=transactions
    )
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersionsResponse.ApiVersion(api_key=keys[name], min_version=low_high[0], max_version=low_high[1])
            for name, low_high in offered.items()
            if low_high is not None
        ),
        finalized_features=(feature,),
    )


class Received(NamedTuple):
    peer: Peer
    header: RequestHeader
    request: Any


class Peer:
    """A connection at the broker. `closed` is True after the client has closed its side."""

    def __init__(self, broker: ScriptedBroker, opened: socket.socket) -> None:
        self.closed = False
        self._broker = broker
        self._socket = opened
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        reader = FrameReader()
        with suppress(OSError):
            while data := self._socket.recv(1 << 16):
                for frame in reader.feed(data):
                    self._take(frame)
        self._broker.change(lambda: setattr(self, "closed", True))

    def _take(self, frame: bytes) -> None:
        header, request = decode_request(frame)
        answer = self._broker.answers.get(type(request), lambda peer, request: None)(self, request)
        self._broker.change(lambda: self._broker.received.append(Received(self, header, request)))
        if answer is not None:
            self.send(answer if isinstance(answer, bytes) else encode_response(header, answer))

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hang_up(self) -> None:
        """Close the broker's side. `closed` follows when the client closes its side."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class ScriptedBroker:
    """Listens on a free port; with `listening=False` connections to `address` are refused."""

    def __init__(self, *, listening: bool = True) -> None:
        self.answers: dict[type[Request], Callable[[Peer, Any], Response | bytes | None]] = {
            ApiVersionsRequest: lambda peer, request: versions(),
            MetadataRequest: lambda peer, request: METADATA,
        }
        self.received: list[Received] = []
        self.peers: list[Peer] = []
        self._changed = threading.Condition()
        self._accepting: threading.Thread | None = None
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        if listening:
            self.listen()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def node(self) -> MetadataResponse.Broker:
        """This broker in the metadata of another broker; the port is also its node id."""
        return MetadataResponse.Broker(node_id=self.port, host="127.0.0.1", port=self.port)

    def listen(self) -> None:
        self._listener.listen()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                opened, _ = self._listener.accept()
                self.change(partial(self._welcome, opened))

    def _welcome(self, opened: socket.socket) -> None:
        self.peers.append(Peer(self, opened))

    def change(self, change: Callable[[], object]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()

    def wait(self, until: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(until, PATIENCE_S), f"condition not met; received {self.received}"

    def requests(self, kind: type[Request]) -> list[Received]:
        return [received for received in self.received if isinstance(received.request, kind)]

    def wait_for(self, kind: type[Request], count: int = 1) -> list[Received]:
        """Wait for at least `count` requests of a type."""
        self.wait(lambda: len(self.requests(kind)) >= count)
        return self.requests(kind)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        if self._accepting is not None:  # an accept under way must not meet the next socket of this number
            self._accepting.join(PATIENCE_S)
        self._listener.close()
        for peer in self.peers:
            peer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Probe:
    """An actor that only records its messages. `on_answer` returns the effects of an answer."""

    def __init__(self) -> None:
        self.wake_at_ms: int | None = None
        self.answers: dict[int, Answer] = {}
        """Answers by the id of their call."""
        self.ticks: list[int] = []
        self.on_answer: Callable[[Answer], list[Effect]] = lambda answer: []

    def handle(self, message: object, now_ms: int) -> list[Effect]:
        if isinstance(message, Tick):
            self.ticks.append(now_ms)
            self.wake_at_ms = None
        elif isinstance(message, Answer):
            self.answers[message.id] = message
            return self.on_answer(message)
        return []


def dotted(conf: Mapping[str, object]) -> dict[str, object]:
    return {key.replace("_", "."): value for key, value in conf.items()}


NEVER_MS = 600_000
"""Longer than any test waits: a client times out only if its test sets a shorter time."""


class Client:
    """A connection with a probe. `conf` has further configurations, with underscores for dots."""

    def __init__(self, *brokers: ScriptedBroker | str, client_id: str = "probe", **conf: object) -> None:
        servers = ",".join(broker if isinstance(broker, str) else broker.address for broker in brokers)
        self.probe = Probe()
        given = dotted({"socket_connection_setup_timeout_ms": NEVER_MS, **conf})
        self.connection: TcpConnection = TcpTransport(servers, given).connect(self.probe, client_id)
        self._last_id = 0

    def send(self, request: Request, node: int = ANY_NODE, timeout_ms: int = NEVER_MS) -> int:
        self._last_id += 1
        call = Call(self._last_id, node, request, timeout_ms)
        self.connection.run(lambda now_ms: [call])
        return call.id

    def answer(self, call_id: int) -> Answer:
        """Wait for the answer to the call and return it."""
        assert self.connection.wait(lambda: call_id in self.probe.answers, PATIENCE_S * 1000), "no answer"
        return self.probe.answers[call_id]

    def ask(self, request: Request, node: int = ANY_NODE, timeout_ms: int = NEVER_MS) -> Answer:
        return self.answer(self.send(request, node, timeout_ms))

    def wake_in(self, delay_ms: int) -> int:
        """Set the probe's next tick; returns its due time. The tick can arrive before this call returns."""
        due_ms: list[int] = []

        def set_tick(now_ms: int) -> list[Effect]:
            self.probe.wake_at_ms = now_ms + delay_ms
            due_ms.append(self.probe.wake_at_ms)
            return []

        self.connection.run(set_tick)
        return due_ms[0]

    def learn_brokers(self, *brokers: ScriptedBroker) -> None:
        """Send Metadata to the first broker, whose response has the addresses of all brokers."""
        metadata = MetadataResponse(brokers=tuple(b.node for b in brokers), cluster_id="c", controller_id=-1)
        brokers[0].answers[MetadataRequest] = lambda peer, request: metadata
        assert self.ask(MetadataRequest()).error is Errors.NONE

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
