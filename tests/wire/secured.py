"""Secured servers for tests, each with the configuration of a client that gets in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shareq import Cluster
from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from shareq.wire.request_log import ServedRequest
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.server import Server
from tests.wire.certificates import PASSWORD, Authority, TokenIssuer
from tests.wire.raw import Raw

KINDS = ("TLS", "mutual TLS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

QUICK = {"group.share.min.heartbeat.interval.ms": 100, "group.share.heartbeat.interval.ms": 100}
"""A new member is assigned partitions at its second heartbeat."""


class Vault:
    """The certificates and the issuer of tokens of one test module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder, "good")
        self.stranger = Authority(folder, "stranger")
        self.server = self.authority.issue("127.0.0.1", "localhost")
        self.elsewhere = self.authority.issue("elsewhere.example")
        self.client = self.authority.issue("alice@example.com", common_name="alice", organization="shareq")
        self.issuer = TokenIssuer(folder)

    def client_config(self, kind: str) -> dict[str, Any]:
        """The configuration of a client that gets in; the token of OAUTHBEARER is in a file."""
        if kind in ("TLS", "mutual TLS"):
            conf = {"security.protocol": "ssl"}
        else:
            conf = {"security.protocol": "sasl_ssl", "sasl.mechanism": kind}
        conf["ssl.ca.location"] = self.authority.file
        if kind == "mutual TLS":
            conf |= {"ssl.certificate.location": self.client.cert, "ssl.key.location": self.client.key}
        elif kind == "OAUTHBEARER":
            conf |= {"sasl.oauthbearer.token.endpoint.url": self.token_file(self.issuer.token())}
        elif kind != "TLS":
            conf |= {"sasl.username": "alice", "sasl.password": PASSWORD}
        return conf

    def token_file(self, token: str) -> str:
        """The URL of a file with a token."""
        path = self.folder / f"token-{time.monotonic_ns()}"
        path.write_text(token)
        return path.as_uri()


@dataclass(frozen=True)
class Secured:
    server: Server
    cluster: Cluster

    @property
    def bootstrap_servers(self) -> str:
        return self.server.bootstrap_servers


@contextmanager
def secured(
    vault: Vault,
    kind: str,
    config: Mapping[str, object] | None = None,
    *,
    observer: Callable[[ServedRequest], None] | None = None,
    trace_messages: bool = False,
) -> Iterator[Secured]:
    """A server of one broker on a wall clock, with a topic `orders` of one partition that the group `g` reads from its
    start."""
    given = {"jwks.endpoint.url": vault.issuer.url, "expected.audience": "kafka", "expected.issuer": "issuer"}
    keys = {f"sasl.oauthbearer.{key}": value for key, value in given.items()}
    files: dict[str, Any] = {"tls_cert": vault.server.cert, "tls_key": vault.server.key}
    if kind == "mutual TLS":
        files["tls_client_ca"] = vault.authority.file
    elif kind != "TLS":
        files["users"] = {"alice": PASSWORD}
    chosen = {**QUICK, **(keys if kind == "OAUTHBEARER" else {}), **(config or {})}
    with (
        Cluster(brokers=1, clock="wall", config=chosen, trace_messages=trace_messages) as cluster,
        Server(cluster, security=ListenerSecurity(**files), observer=observer) as server,
    ):
        cluster.create_topic("orders")
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        yield Secured(server, cluster)


def log_in(raw: Raw) -> None:
    """Log in as alice, by PLAIN."""
    raw.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    answer = raw.ask(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}".encode()))
    assert not answer.error_code
