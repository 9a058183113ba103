"""Addresses of brokers: bootstrap servers, and nodes from responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from shareq.model.errors import KafkaError, KafkaException
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import FindCoordinatorResponse, MetadataResponse
from shareq.version import __version__
from shareq.wire.address import Address

MAX_PORT = 65535

NODE_VERSION = 5
"""The first version of ApiVersions with the cluster and the node that the client expects (KIP-1242)."""


PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")


def parse_bootstrap_servers(servers: str, protocol: str | None = None) -> tuple[Address, ...]:
    """`a:9092,b:9092,[::1]:9092` as addresses, each once. KafkaException (_INVALID_ARG) names the invalid part.

    As for librdkafka, a server may have its protocol before it and a slash behind it: `PLAINTEXT://a:9092/`.
    `protocol`: that of the connections, which it must be then; None: any.
    """
    if not isinstance(servers, str):
        raise _refusal(servers, "must be a text, host:port,...")
    addresses = dict.fromkeys(
        _address(_without_protocol(server.strip(), servers, protocol), servers)
        for server in servers.split(",")
        if server.strip()
    )
    if not addresses:
        raise _refusal(servers, "must name at least one server")
    return tuple(addresses)


def _without_protocol(server: str, servers: str, expected: str | None) -> str:
    named, separator, place = server.rpartition("://")
    if not separator:
        return server
    if named == "inproc":
        raise _refusal(servers, f"{server!r} is an address within this process, and here it must be host:port")
    if named.lower() not in PROTOCOLS:
        raise _refusal(servers, f"{server!r} must be host:port, inproc://name, or of one of {', '.join(PROTOCOLS)}")
    if expected is not None and named.lower() != expected:
        why = f"{server!r} is an address for {named.upper()}, and security.protocol is {expected}"
        raise _refusal(servers, f"{why}: set security.protocol={named.lower()}, or name another address")
    return place.partition("/")[0]


def _address(server: str, servers: str) -> Address:
    host, colon, port = server.rpartition(":")
    if not colon or not host or (":" in host and not _bracketed(host)):
        raise _refusal(servers, f"{server!r} is not host:port (an IPv6 address needs brackets, [::1]:9092)")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= MAX_PORT):
        raise _refusal(servers, f"{server!r} must have a port in 1..{MAX_PORT}")
    return Address(host[1:-1] if _bracketed(host) else host, int(port))


def _bracketed(host: str) -> bool:
    return host.startswith("[") and host.endswith("]")


def _refusal(servers: str, why: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, f"bootstrap.servers={servers!r}: {why}"))


class BrokerDirectory:
    """The addresses of nodes, from responses, and the bootstrap servers.

    `checked`: connections name the cluster and the node that they expect (`metadata.cluster.check.enable`).
    """

    def __init__(self, bootstrap: tuple[Address, ...], *, checked: bool = True) -> None:
        self._bootstrap = bootstrap
        self._checked = checked
        self._nodes: dict[int, Address] = {}
        self._cluster_id = ""

    def address(self, node: int) -> Address | None:
        return self._nodes.get(node)

    def everywhere(self) -> tuple[Address, ...]:
        """Addresses for requests to any broker: known nodes first, the bootstrap servers last."""
        return tuple(dict.fromkeys((*self._nodes.values(), *self._bootstrap)))

    def name(self, address: Address) -> str:
        """A broker in messages: by its node id, if that is known."""
        node = next(iter(self._at(address)), None)
        return f"broker at {address}" if node is None else f"broker {node} at {address}"

    def _at(self, address: Address) -> list[int]:
        return [node for node, known in self._nodes.items() if known == address]

    def api_versions(self, address: Address, version: int) -> ApiVersionsRequest:
        """The first request of a connection. It names the cluster, and the node that alone has this address."""
        request = ApiVersionsRequest(client_software_name="shareq", client_software_version=__version__)
        nodes = self._at(address)
        if version < NODE_VERSION or not self._checked or not self._cluster_id or len(nodes) != 1:
            return request
        return replace(request, cluster_id=self._cluster_id, node_id=nodes[0])

    def forget(self) -> None:
        """Leave only the bootstrap servers: an address has another node, or another cluster, than responses named."""
        self._nodes.clear()
        self._cluster_id = ""

    def learn(self, response: Response) -> None:
        """Store the addresses in a response, and the cluster's id."""
        endpoints = _ENDPOINTS.get(type(response))
        brokers: Iterable[Any] = endpoints(response) if endpoints else getattr(response, "node_endpoints", ())
        for broker in brokers:
            self._nodes[broker.node_id] = Address(broker.host, broker.port)
        if isinstance(response, MetadataResponse):
            self._cluster_id = response.cluster_id


def _coordinators(response: Any) -> Iterable[FindCoordinatorResponse.Coordinator]:
    return (found for found in response.coordinators if not found.error_code and found.node_id >= 0)


_ENDPOINTS: dict[type[Response], Callable[[Any], Iterable[Any]]] = {
    MetadataResponse: lambda response: response.brokers,
    FindCoordinatorResponse: _coordinators,
}
"""Responses with brokers. Others have them in `node_endpoints` after a leader change (KIP-951)."""
