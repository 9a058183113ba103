"""The ports of the proxy: one for each broker of the cluster, opened when the broker is named for the first time."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace

from shareq.client.patience import SILENT_MS, silence_of, warn_of_trying
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.wire.acceptor import Acceptor, ports_of
from shareq.wire.address import Address, is_loopback
from shareq.wire.client.addresses import parse_bootstrap_servers
from shareq.wire.client.client_security import PLAINTEXT, ClientSecurity
from shareq.wire.client.login import Login, LoginFailed
from shareq.wire.client.tls import handshake_failure
from shareq.wire.errors import MalformedFrame
from shareq.wire.frames import decode_response, encode_request

_log = logging.getLogger("shareq.tap")

BOOTSTRAP_S = 5.0
METADATA_VERSION = 12
"""A version of Metadata that every Kafka with share groups offers."""

SASL_VERSION = 1
"""A version of both requests of a login that every Kafka with share groups offers."""

_SIZE = struct.Struct(">i")
MAX_BROKERS_BYTES = 1 << 20


def brokers_of(
    bootstrap_servers: str, tls: ssl.SSLContext | None = None, security: ClientSecurity = PLAINTEXT
) -> dict[int, Address]:
    """The brokers of a cluster, by id. KafkaException if no server answers: its reason is that of the last one."""
    reason, protocol = "", replace(security, context=tls).protocol
    for address in parse_bootstrap_servers(bootstrap_servers, protocol):
        try:
            found = _patiently_asked(address, tls, security)
        except (MalformedFrame, LoginFailed) as problem:
            reason = f"{address}: {problem}"
            continue
        except OSError as problem:
            reason = f"{address}: {handshake_failure(problem)}"
            continue
        if found:
            return found
        reason = f"{address}: names no broker"
    raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"no Kafka at {bootstrap_servers} answers ({reason})"))


def _patiently_asked(address: Address, tls: ssl.SSLContext | None, security: ClientSecurity) -> dict[int, Address]:
    try:
        return _ask(address, tls, security.new_login(), SILENT_MS / 1000)
    except TimeoutError:
        warn_of_trying(silence_of(str(address)), BOOTSTRAP_S)
        return _ask(address, tls, security.new_login(), BOOTSTRAP_S)


def _ask(address: Address, tls: ssl.SSLContext | None, login: Login | None, timeout_s: float) -> dict[int, Address]:
    with _connected(address, tls, timeout_s) as opened:
        request = login.first() if login else None
        while login is not None and request is not None:
            request = login.next(_exchange(opened, request, SASL_VERSION))
        response = _exchange(opened, MetadataRequest(topics=()), METADATA_VERSION)
    assert isinstance(response, MetadataResponse)
    return {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}


def _exchange(opened: socket.socket, request: Request, version: int) -> Response:
    opened.sendall(encode_request(request, version, 0, "shareq-tap"))
    (size,) = _SIZE.unpack(_exactly(opened, _SIZE.size))
    if not 0 < size <= MAX_BROKERS_BYTES:
        raise MalformedFrame("it does not speak Kafka's protocol; a port with TLS needs --tls, or ssl=")
    return decode_response(request.API_KEY, version, _exactly(opened, size))[1]


def _connected(address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> socket.socket:
    plain = socket.create_connection(address, timeout=timeout_s)
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
            raise MalformedFrame("it has closed the connection; it may require a login: --command-config, or config=")
        data += part
    return data


def warn(address: str) -> None:
    """Warn of an address of the proxy that others can reach."""
    if not is_loopback(address):
        text = "tapping on %s without TLS: each program that reaches it can read the journal and use the brokers"
        _log.warning(text, address)


class Ports:
    """Acceptors by broker id, and the addresses of the brokers. `make(broker_id)`: the protocol of a new connection."""

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
        self._acceptors: dict[int, Acceptor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            for broker_id, number in zip(sorted(brokers), ports_of(host, port, len(brokers)), strict=True):
                opened = self._bind(broker_id, number)
            warn(opened.address)
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(str(self.address(broker_id)) for broker_id in sorted(self._acceptors))

    @property
    def brokers(self) -> dict[int, Address]:
        """The addresses of the brokers themselves, by id."""
        return dict(self._brokers)

    def address(self, broker_id: int) -> Address:
        """The address of the proxy for a broker."""
        return Address(self.host, self._acceptors[broker_id].port)

    def lookup(self, node_id: int, address: Address) -> Address | None:
        """The address in place of that of a broker; a new broker gets a port. To be called in the proxy's thread."""
        if node_id < 0 or not address.host:
            return None
        self._brokers[node_id] = address
        if node_id not in self._acceptors:
            _log.info("broker %s is new", node_id)
            self._open(self._bind(node_id, 0))
        return self.address(node_id)

    def open(self) -> None:
        """Accept connections. To be called in the proxy's thread."""
        for acceptor in self._acceptors.values():
            self._open(acceptor)

    def close(self) -> None:
        for acceptor in self._acceptors.values():
            acceptor.close()

    def _bind(self, broker_id: int, port: int) -> Acceptor:
        found = self._acceptors[broker_id] = Acceptor(self.host, port, lambda _: self._make(broker_id))
        return found

    def _open(self, acceptor: Acceptor) -> None:
        task = asyncio.get_running_loop().create_task(acceptor.follow(True))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
