"""The ports of the proxy: one for each broker of the cluster, opened when the broker is named for the first time."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Mapping

from shareq.model.errors import KafkaError, KafkaException
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.proxy.tls import handshake_failure
from shareq.wire.address import Address
from shareq.wire.client.addresses import parse_bootstrap_servers
from shareq.wire.errors import MalformedFrame
from shareq.wire.frames import decode_response, encode_request
from shareq.wire.listener import Listener, ports_of

_log = logging.getLogger("shareq.tap")

BOOTSTRAP_S = 5.0
METADATA_VERSION = 12
"""A version of Metadata that every Kafka with share groups offers."""

_SIZE = struct.Struct(">i")
MAX_BROKERS_BYTES = 1 << 20


def brokers_of(bootstrap_servers: str, tls: ssl.SSLContext | None = None) -> dict[int, Address]:
    """The brokers of a cluster, by id. KafkaException if no server answers: its reason is that of the last one."""
    reason = ""
    for address in parse_bootstrap_servers(bootstrap_servers):
        try:
            found = _ask(address, tls)
        except MalformedFrame as problem:
            reason = f"{address}: {problem}"
            continue
        except OSError as problem:
            reason = f"{address}: {handshake_failure(problem)}"
            continue
        if found:
            return found
        reason = f"{address}: names no broker"
    raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"no Kafka at {bootstrap_servers} answers ({reason})"))


def _ask(address: Address, tls: ssl.SSLContext | None) -> dict[int, Address]:
    with _connected(address, tls) as opened:
        opened.sendall(encode_request(MetadataRequest(topics=()), METADATA_VERSION, 0, "shareq-tap"))
        (size,) = _SIZE.unpack(_exactly(opened, _SIZE.size))
        if not 0 < size <= MAX_BROKERS_BYTES:
            raise MalformedFrame("it does not speak Kafka's protocol; a port with TLS needs --tls, or ssl=")
        _, response = decode_response(MetadataRequest.API_KEY, METADATA_VERSION, _exactly(opened, size))
    assert isinstance(response, MetadataResponse)
    return {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}


def _connected(address: Address, tls: ssl.SSLContext | None) -> socket.socket:
    plain = socket.create_connection(address, timeout=BOOTSTRAP_S)
    try:
        return plain if tls is None else tls.wrap_socket(plain, server_hostname=address.host)
    except OSError:
        plain.close()
        raise


def _exactly(opened: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = opened.recv(size - len(data))
        if not part:
            raise MalformedFrame("it has closed the connection; if it requires SASL: the tap has no login of its own")
        data += part
    return data


class Ports:
    """Listeners by broker id, and the addresses of the brokers. `make(broker_id)`: the protocol of a new connection."""

    def __init__(
        self,
        brokers: Mapping[int, Address],
        host: str,
        port: int | None,
        make: Callable[[int], asyncio.BaseProtocol],
    ) -> None:
        self.host = host
        self._make = make
        self._brokers = dict(brokers)
        self._listeners: dict[int, Listener] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            for broker_id, number in zip(sorted(brokers), ports_of(host, port, len(brokers)), strict=True):
                self._bind(broker_id, number)
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(str(self.address(broker_id)) for broker_id in sorted(self._listeners))

    @property
    def brokers(self) -> dict[int, Address]:
        """The addresses of the brokers themselves, by id."""
        return dict(self._brokers)

    def address(self, broker_id: int) -> Address:
        """The address of the proxy for a broker."""
        return Address(self.host, self._listeners[broker_id].port)

    def lookup(self, node_id: int, address: Address) -> Address | None:
        """The address in place of that of a broker; a new broker gets a port. To be called in the proxy's thread."""
        if node_id < 0 or not address.host:
            return None
        self._brokers[node_id] = address
        if node_id not in self._listeners:
            _log.info("broker %s is new", node_id)
            self._open(self._bind(node_id, 0))
        return self.address(node_id)

    def open(self) -> None:
        """Accept connections. To be called in the proxy's thread."""
        for listener in self._listeners.values():
            self._open(listener)

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    def _bind(self, broker_id: int, port: int) -> Listener:
        found = self._listeners[broker_id] = Listener(self.host, port, lambda: self._make(broker_id))
        return found

    def _open(self, listener: Listener) -> None:
        task = asyncio.get_running_loop().create_task(listener.follow(True))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
