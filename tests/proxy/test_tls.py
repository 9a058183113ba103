"""A tap that speaks TLS to the brokers: in front of Apache Kafka, and in front of sockets that refuse it."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shareq import Admin, KafkaException, NewTopic, Producer, ShareConsumer, tap, view
from shareq.cli import main
from shareq.model.errors import ConfigException
from shareq.wire.client.tls import client_context
from tests.kafka.fixtures import kafka_or_skip
from tests.polling import PATIENCE_S, configure, eventually, take

HERE = Path(__file__).parent / "certificates"
CA, BROKER, CLIENT, ELSEWHERE = (HERE / f"{name}.pem" for name in ("ca", "broker", "client", "elsewhere"))


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


@contextmanager
def one_connection(context: ssl.SSLContext | None, then: bytes = b"") -> Iterator[str]:
    """The address of a port that accepts one connection: it does the handshake, reads, sends `then` and closes."""

    def serve() -> None:
        plain, _ = door.accept()
        plain.settimeout(PATIENCE_S)
        with (
            plain,
            suppress(OSError),  # the tap refuses the certificate
            context.wrap_socket(plain, server_side=True) if context is not None else plain as opened,
        ):
            opened.recv(1 << 16)
            opened.sendall(then)

    with socket.create_server(("127.0.0.1", 0)) as door, ThreadPoolExecutor(1) as pool:
        done = pool.submit(serve)
        yield f"127.0.0.1:{door.getsockname()[1]}"
        done.result()


@pytest.mark.parametrize(
    ("server", "ca", "message"),
    [
        pytest.param(BROKER, None, "its certificate is not trusted (unable to get local issuer certificate)", id="CA"),
        pytest.param(ELSEWHERE, CA, "its certificate is that of another host: IP address mismatch", id="host"),
        pytest.param(None, CA, "it does not speak TLS", id="no TLS"),
    ],
)
def test_a_handshake_that_fails_names_the_reason(server: Path | None, ca: Path | None, message: str) -> None:
    context = None if server is None else server_context(server)
    with (
        one_connection(context, b"\0\0\0\4none") as address,
        pytest.raises(KafkaException, match=re.escape(f"({address}: {message}")),
    ):
        tap(address, ssl=client_context(ca))


def test_a_port_with_tls_needs_the_option() -> None:
    alert = b"\x15\3\3\0\2\2\x50"  # the answer of TLS to other bytes
    with one_connection(None, alert) as address, pytest.raises(KafkaException, match="a port with TLS needs --tls"):
        tap(address)


def test_a_broker_that_closes_may_require_sasl() -> None:
    with (
        one_connection(server_context(BROKER)) as address,
        pytest.raises(KafkaException, match="it may require a login: --command-config, or config="),
    ):
        tap(address, ssl=client_context(CA))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ca": HERE / "make.sh"}, "must be a file of certificates in PEM"),
        ({"certificate": CA}, "ca.pem"),
        ({"key": CLIENT}, "needs the certificate of this key"),
    ],
)
def test_files_that_cannot_be_used_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        client_context(**arguments)


def test_ssl_is_a_context() -> None:
    with pytest.raises(ConfigException, match=r"ssl='yes': must be an ssl\.SSLContext"):
        tap("127.0.0.1:1", ssl="yes")  # type: ignore[arg-type]


def test_the_options_of_the_command_need_tls() -> None:
    result = CliRunner().invoke(main, ["tap", "127.0.0.1:1", "--ca", str(CA)])
    assert result.exit_code == 2
    assert "--ca, --cert and --key need --tls" in result.output


@pytest.mark.kafka
def test_clients_without_tls_reach_a_kafka_with_tls() -> None:
    """BEHAVIOUR.md, 1.8: the broker asks for a certificate, and observers are connected through the tap."""
    with kafka_or_skip(1, TLS_LISTENER) as kafka:
        with pytest.raises(KafkaException, match="no Kafka at"):
            tap(kafka.bootstrap_servers, ssl=client_context(CA))
        with tap(kafka.bootstrap_servers, interval_ms=100, ssl=client_context(CA, CLIENT)) as tapped:
            servers = {"bootstrap.servers": tapped.bootstrap_servers}
            with Admin(servers) as admin:
                admin.create_topics([NewTopic("orders", 1)]).check()
                configure(admin, "crew", {"share.auto.offset.reset": "earliest"})
            with Producer(servers) as producer:
                producer.produce("orders", "0")
            with ShareConsumer({**servers, "group.id": "crew"}) as anna:
                anna.subscribe(["orders"])
                take(anna, 1)
                anna.commit_sync()
            eventually(lambda: view(tapped, "crew", "orders", 0).snapshot()["text"], "SPSO 1 | empty")
            assert tapped.refresh()
            assert not tapped.failures


TLS_LISTENER = {
    "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "ssl.client.auth": "required",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": BROKER,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": CA,
}
