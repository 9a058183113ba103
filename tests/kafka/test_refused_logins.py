"""confluent-kafka's clients and Java's that do not get into a secured server of shareq: each reports an error soon, and
the server serves others meanwhile. `tests/wire/test_refused_tools.py` has shareq's own clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import confluent_kafka.admin
import pytest
from confluent_kafka import KafkaError

from shareq import Admin, Cluster, ListenerSecurity
from shareq.kafka import LocalKafka
from shareq.wire.server import Server
from tests.kafka.java_logins import JavaVault, java_config, write
from tests.tools.java_tools import JavaTools, started
from tests.wire.refused import CLIENTS, SOON_S, Conf, Says, assert_said_soon
from tests.wire.secured import secured

LAX = {"ssl.endpoint.identification.algorithm": "none"}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> JavaVault:
    return JavaVault(tmp_path_factory.mktemp("vault"))


@pytest.fixture(scope="module")
def java_tools(vault: JavaVault) -> Iterator[JavaTools]:
    with vault.allowed(), started() as running:
        yield running


class Failure(NamedTuple):
    """`server`: what it has; `conf` and `java`: the configurations of the clients that fail. `codes`: those under which
    confluent-kafka may report it; `text`, `java_text`: in the errors of confluent-kafka and of Java."""

    server: str
    conf: Callable[[JavaVault], Conf]
    java: Callable[[JavaVault], dict[str, str]]
    codes: tuple[int, ...]
    text: str
    java_text: str

    def reported_as(self, error: KafkaError) -> bool:
        return error.code() in self.codes and self.text in error.str()


def expired(vault: JavaVault) -> Conf:
    token = vault.issuer.token(lifetime_s=-120)
    conf = vault.client_config("OAUTHBEARER")
    del conf["sasl.oauthbearer.token.endpoint.url"]
    return {**conf, "oauth_cb": lambda _: (token, time.time() + 3600)}


FAILURES = {
    "wrong password": Failure(
        "SCRAM-SHA-512",
        lambda vault: {**vault.client_config("SCRAM-SHA-512"), "sasl.password": "wrong"},
        lambda vault: java_config(vault, "SCRAM-SHA-512", password="wrong"),
        (KafkaError._AUTHENTICATION,),
        "Authentication failed",
        "SaslAuthenticationException: Authentication failed",
    ),
    "expired token": Failure(
        "OAUTHBEARER",
        expired,
        lambda vault: {
            **java_config(vault, "OAUTHBEARER"),
            "sasl.oauthbearer.token.endpoint.url": vault.expired_token,
        },
        (KafkaError._AUTHENTICATION,),
        "invalid_token",
        "invalid_token",
    ),
    "untrusted certificate": Failure(
        "TLS",
        lambda vault: {**vault.client_config("TLS"), "ssl.ca.location": vault.stranger.file},
        lambda vault: {**java_config(vault, "TLS"), "ssl.truststore.location": vault.stranger.file},
        (KafkaError._SSL, KafkaError._TRANSPORT),
        "certificate verify failed",
        "SslAuthenticationException: SSL handshake failed",
    ),
    "wrong host name": Failure(
        "elsewhere",
        lambda vault: vault.client_config("TLS"),
        lambda vault: java_config(vault, "TLS"),
        (KafkaError._SSL, KafkaError._TRANSPORT),
        "certificate verify failed",
        "SslAuthenticationException: SSL handshake failed",
    ),
    # librdkafka 2.16 has a sentence for this ("connecting to a SSL listener?"), and no way of closing brings it out: it
    # compares the reason with "Disconnected" alone, to which it has added how the connection ended. It reads the counts
    # in its text again after it has compared them, so "1/1" is "0/2" when another thread adds a broker in between.
    "plaintext to TLS": Failure(
        "TLS", lambda _: {}, lambda _: {}, (KafkaError._ALL_BROKERS_DOWN,), " brokers are down", "TimeoutException"
    ),
    "TLS to plaintext": Failure(
        "plaintext",
        lambda vault: vault.client_config("TLS"),
        lambda vault: java_config(vault, "TLS"),
        (KafkaError._TRANSPORT,),
        "connecting to a PLAINTEXT broker listener?",
        "terminated during authentication",
    ),
}


@contextmanager
def serving(vault: JavaVault, kind: str) -> Iterator[tuple[Server, Conf]]:
    """A server, and the configuration of a client that gets in."""
    if kind not in ("elsewhere", "plaintext"):
        with secured(vault, kind) as made:
            yield made.server, vault.client_config(kind)
        return
    files = ListenerSecurity(tls_cert=vault.elsewhere.cert, tls_key=vault.elsewhere.key)
    with (
        Cluster(brokers=1, clock="wall") as cluster,
        Server(cluster, security=files if kind == "elsewhere" else None) as server,
    ):
        cluster.create_topic("orders")
        yield server, {**vault.client_config("TLS"), **LAX} if kind == "elsewhere" else {}


def assert_serves(server: Server, conf: Conf) -> None:
    began = time.monotonic()
    with Admin({"bootstrap.servers": server.bootstrap_servers, **conf}) as admin:
        assert "orders" in admin.list_topics()
    assert time.monotonic() - began < SOON_S
    assert not list(server.failures)


@pytest.fixture(params=FAILURES)
def failure(request: pytest.FixtureRequest) -> Failure:
    return FAILURES[request.param]


# ---- confluent-kafka -------------------------------------------------------------------------------------------------


def consumer(conf: Conf) -> Any:
    made = confluent_kafka.Consumer({**conf, "group.id": "g"})
    made.subscribe(["orders"])
    return made


@pytest.mark.parametrize("client", [confluent_kafka.Producer, consumer, confluent_kafka.admin.AdminClient])
def test_confluents_client_reports_why(vault: JavaVault, failure: Failure, client: Callable[[Conf], Any]) -> None:
    """Within `SOON_S`. It goes on trying, while others are served."""
    with serving(vault, failure.server) as (server, gets_in):
        errors: list[KafkaError] = []
        conf = {"bootstrap.servers": server.bootstrap_servers, "error_cb": errors.append, **failure.conf(vault)}
        running = client(conf)
        try:
            deadline = time.monotonic() + SOON_S
            while not any(map(failure.reported_as, errors)) and time.monotonic() < deadline:
                running.poll(0.1)
            assert any(map(failure.reported_as, errors)), errors
            assert_serves(server, gets_in)
        finally:
            if hasattr(running, "close"):
                running.close()


# ---- Java ------------------------------------------------------------------------------------------------------------


@pytest.mark.kafka
def test_javas_client_reports_why(vault: JavaVault, java_tools: JavaTools, failure: Failure, tmp_path: Path) -> None:
    """Its Admin takes a connection that closes before it is ready for a broker that is not there yet: what it reports
    then is that its time is over."""
    with serving(vault, failure.server) as (server, gets_in):
        patience = {"default.api.timeout.ms": "4000", "request.timeout.ms": "3000"}
        file = write(tmp_path / "client.properties", {**patience, **failure.java(vault)})
        began = time.monotonic()
        done = java_tools.run(
            "kafka-topics", "--bootstrap-server", server.bootstrap_servers, "--command-config", file, "--list"
        )
        assert time.monotonic() - began < SOON_S
        assert done.returncode == 1
        assert failure.java_text in done.stdout + done.stderr, done
        assert_serves(server, gets_in)


# ---- shareq's clients, and Apache Kafka without TLS; test_secured.py has one with it ---------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_tls_to_a_plaintext_apache_kafka_is_named_soon(
    vault: JavaVault, kafka: LocalKafka, client: Says, tmp_path: Path
) -> None:
    assert_said_soon(client, "TLS to plaintext", kafka.bootstrap_servers, vault.client_config("TLS"), tmp_path)
