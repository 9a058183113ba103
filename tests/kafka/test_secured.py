"""Java's tools against secured servers of shareq, and shareq's clients against a secured Apache Kafka."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, UserScramCredentialUpsertion  # type: ignore[attr-defined]
from confluent_kafka.admin import ScramMechanism as Mechanism  # type: ignore[attr-defined]

import shareq
from shareq import Admin, Cluster, KafkaException, ListenerSecurity, NewTopic, Producer, ShareConsumer, observe, tap
from shareq.cli import main
from shareq.kafka import LocalKafka
from shareq.kafka.local import LocalKafkaError
from shareq.kafka.tools import run
from shareq.model.errors import Errors, KafkaError
from shareq.model.events import RecordsHeld
from shareq.model.scram import ScramMechanism
from shareq.wire.server import Server
from tests.kafka.fixtures import kafka_or_skip
from tests.kafka.java_logins import (
    MODULES,
    PLAIN_MODULE,
    SCRAM_MODULE,
    TOKEN_MODULE,
    JavaVault,
    java_config,
    key_store,
    write,
)
from tests.polling import PATIENCE_S, QUICK, eventually, take
from tests.wire.certificates import PASSWORD
from tests.wire.refused import CLIENTS, Conf, Says, assert_said_soon
from tests.wire.secrets import Secrets, texts_of, texts_of_error
from tests.wire.secured import KINDS, secured

KEY_PASSWORD = "password-of-the-key"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaVault]:
    made = JavaVault(tmp_path_factory.mktemp("vault"))
    with made.allowed():
        yield made


# ---- Java's tools, and shareq's server -------------------------------------------------------------------------------


@pytest.mark.kafka
@pytest.mark.parametrize("kind", KINDS)
def test_javas_tools_get_in(vault: JavaVault, kind: str, tmp_path: Path) -> None:
    with secured(vault, kind) as broker:
        with Producer({"bootstrap.servers": broker.cluster.bootstrap_servers}) as producer:
            producer.produce("orders", b"hello")
            producer.flush()
        where = ("--bootstrap-server", broker.bootstrap_servers)
        file = write(tmp_path / "client.properties", java_config(vault, kind))
        found = run(
            *("kafka-console-share-consumer", *where, "--topic", "orders", "--group", "g", "--max-messages", "1"),
            *("--timeout-ms", "60000", "--command-config", file),
        )
        assert found.stdout.strip() == "hello", found.stderr[-2000:]
        ours = CliRunner().invoke(main, ["groups", *where, "--command-config", file, "--list"])
        assert ours.output.split() == ["g"]
        assert not list(broker.server.failures)


@pytest.mark.kafka
def test_javas_tool_alters_users(vault: JavaVault, tmp_path: Path) -> None:
    with secured(vault, "SCRAM-SHA-256") as broker:
        file = write(tmp_path / "client.properties", java_config(vault, "SCRAM-SHA-256"))
        tool = ("kafka-configs", "--bootstrap-server", broker.bootstrap_servers, "--command-config", file)
        of_bob = ("--entity-type", "users", "--entity-name", "bob")
        altered = run(
            *tool, "--alter", *of_bob, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=secret-of-bob]"
        )
        assert "Completed updating config for user bob" in altered.stdout, altered.stderr[-2000:]
        assert broker.cluster.image.users["bob"][ScramMechanism.SCRAM_SHA_512].iterations == 8192
        conf = {**vault.client_config("SCRAM-SHA-512"), "sasl.username": "bob", "sasl.password": "secret-of-bob"}
        with Admin({"bootstrap.servers": broker.bootstrap_servers, **conf}) as admin:
            assert "orders" in admin.list_topics()


# ---- shareq's clients, and Apache Kafka ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafka(vault: JavaVault) -> Iterator[LocalKafka]:
    """Apache Kafka whose clients need a certificate and a login, by any mechanism; its users are alice and admin. Its
    certificate has its address, and not the name `localhost`."""
    of = "listener.name.plaintext"
    check_token = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    users = f'required username="admin" password="admin" user_admin="admin" user_alice="{PASSWORD}";'
    config = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{of}.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": key_store(vault.authority.issue("127.0.0.1", common_name="kafka")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": vault.authority.file,
        f"{of}.plain.sasl.jaas.config": f"{PLAIN_MODULE} {users}",
        f"{of}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{of}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{of}.oauthbearer.sasl.jaas.config": f"{TOKEN_MODULE} required;",
        f"{of}.oauthbearer.sasl.server.callback.handler.class": check_token,
        f"{of}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": vault.issuer.url,
        f"{of}.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
        f"{of}.oauthbearer.sasl.oauthbearer.expected.issuer": "issuer",
        f"{of}.oauthbearer.connections.max.reauth.ms": 3000,
    }
    with kafka_or_skip(1, config) as running:
        admin = AdminClient({**conf_of(vault, running, "PLAIN"), "sasl.username": "admin", "sasl.password": "admin"})
        for mechanism in (Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            change = UserScramCredentialUpsertion("alice", info, PASSWORD.encode())
            admin.alter_user_scram_credentials([change])["alice"].result(PATIENCE_S)
        yield running


def conf_of(vault: JavaVault, kafka: LocalKafka, kind: str) -> dict[str, Any]:
    mutual = vault.client_config("mutual TLS")
    return {**mutual, **vault.client_config(kind), "bootstrap.servers": kafka.bootstrap_servers}


@pytest.mark.parametrize("kind", KINDS[2:])
def test_our_clients_get_into_apache_kafka(vault: JavaVault, kafka: LocalKafka, kind: str) -> None:
    conf = conf_of(vault, kafka, kind)
    topic = f"orders-{kind}"
    with Admin(conf) as admin:
        admin.create_topics([topic]).check()

        def altered() -> bool:
            """False while Kafka's group coordinator does not know the topic, which its broker lists already."""
            (row,) = admin.alter_share_group_offsets(f"g-{kind}", {topic: "earliest"}).values()
            return row.error is None

        eventually(altered, True)
    with Producer(conf) as producer:
        producer.produce(topic, bytes(300_000))
        assert producer.flush(PATIENCE_S) == 0
    with ShareConsumer({**conf, "group.id": f"g-{kind}"}) as consumer:
        consumer.subscribe([topic])
        while not (found := consumer.poll(PATIENCE_S)):
            pass
        assert [message.value() for message in found] == [bytes(300_000)]
    with observe(kafka.bootstrap_servers, f"g-{kind}", [topic], config=conf) as observer:
        assert observer.refresh(PATIENCE_S), observer.trouble


@pytest.mark.parametrize("library", [shareq, confluent_kafka], ids=["shareq", "confluent"])
def test_the_tap_shows_a_native_group_of_a_secured_kafka(vault: JavaVault, kafka: LocalKafka, library: Any) -> None:
    """TLS, a certificate and a login to the brokers; the client logs in through the tap as itself."""
    kind, topic, group = "SCRAM-SHA-512", f"tapped-{library.__name__}", f"g-{library.__name__}"
    with tap(kafka.bootstrap_servers, config=conf_of(vault, kafka, kind), interval_ms=100) as opened:
        login = {"sasl.mechanism": kind, "sasl.username": "alice", "sasl.password": PASSWORD}
        conf = {"bootstrap.servers": opened.bootstrap_servers, "security.protocol": "sasl_plaintext", **login}
        with Admin(conf) as admin:
            admin.create_topics([topic]).check()
            admin.alter_share_group_offsets(group, {topic: "earliest"}).check()
        with Producer(conf) as producer:
            producer.produce(topic, "a")
        consumer = library.ShareConsumer({**conf, "group.id": group})
        try:
            consumer.subscribe([topic])
            assert [message.value() for message in take(consumer, 1)] == [b"a"]
            eventually(lambda: [entry.event[:2] for entry in opened.journal.select(RecordsHeld)], [(group, topic)])
            consumer.commit_sync()
        finally:
            consumer.close()
        eventually(lambda: opened.refresh(PATIENCE_S) and opened.view(group, topic).state().spso, 1)
        assert not opened.failures, opened.trouble


@pytest.mark.parametrize(
    ("kind", "change", "expected"),
    [
        ("PLAIN", {"sasl.password": "wrong"}, (Errors.SASL_AUTHENTICATION_FAILED, "Invalid username or password")),
        ("SCRAM-SHA-512", {"sasl.password": "wrong"}, (Errors.SASL_AUTHENTICATION_FAILED, "invalid credentials")),
        ("SCRAM-SHA-512", {"sasl.username": "x"}, (Errors.SASL_AUTHENTICATION_FAILED, "invalid credentials")),
        ("OAUTHBEARER", {"token": -120}, (Errors.SASL_AUTHENTICATION_FAILED, "invalid_token")),
        ("PLAIN", {"ssl.ca.location": "stranger"}, (KafkaError._SSL, "not trusted")),
        ("PLAIN", {"security.protocol": "plaintext"}, (KafkaError._SSL, "speaks TLS")),
        ("PLAIN", {"ssl.certificate.location": "", "ssl.key.location": ""}, (KafkaError._SSL, "certificate")),
        (
            "PLAIN",
            {"security.protocol": "ssl"},
            (KafkaError._AUTHENTICATION, "or a login"),
        ),
    ],
)
def test_apache_kafka_refuses_as_shareq_does(
    vault: JavaVault, kafka: LocalKafka, kind: str, change: dict[str, Any], expected: tuple[int, str]
) -> None:
    conf = {**conf_of(vault, kafka, kind), **change}
    if conf.pop("token", None):
        conf["sasl.oauthbearer.token.endpoint.url"] = vault.token_file(vault.issuer.token(lifetime_s=change["token"]))
    if conf["ssl.ca.location"] == "stranger":
        conf["ssl.ca.location"] = vault.stranger.file
    with Admin(conf) as admin, pytest.raises(KafkaException) as refused:
        admin.list_topics()
    assert refused.value.error.code() == expected[0]
    assert expected[1] in refused.value.error.str()


REFUSED: dict[str, Callable[[JavaVault], Conf]] = {
    "wrong password": lambda _: {"sasl.password": "wrong"},
    "expired token": lambda vault: {
        **vault.client_config("OAUTHBEARER"),
        "sasl.oauthbearer.token.endpoint.url": vault.expired_token,
    },
    "untrusted certificate": lambda vault: {"ssl.ca.location": vault.stranger.file},
    "wrong host name": lambda _: {},
    "plaintext to TLS": lambda _: {"security.protocol": "plaintext"},
}
"""Why a client does not get in, and the change of its configuration that makes it so."""


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", REFUSED)
def test_our_clients_name_soon_why_apache_kafka_refuses_them(
    vault: JavaVault, kafka: LocalKafka, fault: str, client: Says, tmp_path: Path
) -> None:
    conf = {**conf_of(vault, kafka, "SCRAM-SHA-512"), **REFUSED[fault](vault)}
    address = conf.pop("bootstrap.servers")
    if fault == "wrong host name":
        address = address.replace("127.0.0.1", "localhost")
    assert_said_soon(client, fault, address, conf, tmp_path)


def secrets(vault: JavaVault) -> Secrets:
    made = Secrets()
    made.add("a password", PASSWORD, KEY_PASSWORD)
    made.add_key(Path(vault.server.key).read_text())
    return made


def test_a_secured_local_kafka_shows_no_secret(vault: JavaVault, kafka: LocalKafka) -> None:
    """Its logs are Kafka's, and have none either."""
    logs = [file.read_text() for file in kafka.logs.iterdir()]
    assert any("sasl.enabled.mechanisms" in log for log in logs)
    assert secrets(vault).shown_in([*texts_of(kafka), *logs]) == []


@pytest.mark.kafka
@pytest.mark.parametrize("unusable", ["ssl.keystore.key", "plain.sasl.jaas.config"])
def test_a_secured_local_kafka_that_cannot_start_shows_no_secret(vault: JavaVault, unusable: str) -> None:
    of = "listener.name.plaintext"
    config = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": Path(vault.server.cert).read_text().replace("\n", " "),
        "ssl.keystore.key": Path(key_store(vault.server))
        .read_text()
        .partition("-----BEGIN CERT")[0]
        .replace("\n", " "),
        "ssl.key.password": KEY_PASSWORD,
        f"{of}.plain.sasl.jaas.config": f'{PLAIN_MODULE} required username="admin" password="{PASSWORD}";',
    }
    cut = config[unusable if unusable in config else f"{of}.{unusable}"]
    config[unusable if unusable in config else f"{of}.{unusable}"] = cut[: len(cut) * 2 // 3]
    with pytest.raises(LocalKafkaError) as refused:
        kafka_or_skip(1, config)
    assert secrets(vault).shown_in(texts_of_error(refused.value)) == []


# ---- a secured Apache Kafka as the backend ---------------------------------------------------------------------------

PEERS, OPEN = "SASL_SSL://127.0.0.1:0", "PLAINTEXT://localhost:0"


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of `shareq serve` with these arguments, a process of its own."""
    command = [sys.executable, "-m", "shareq.cli", "serve", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith("shareq serves 1 broker of "), first
            yield first.split()[-1]
        finally:
            process.kill()


def test_secured_processes_share_a_secured_backend(vault: JavaVault, kafka: LocalKafka, tmp_path: Path) -> None:
    """Two processes with TLS and a login on every connection: to the backend, to each other, and of clients, which are
    those of confluent-kafka and of shareq."""
    inside = {**QUICK, "group.share.initialize.retry.interval.ms": 1000}
    backend, peers = conf_of(vault, kafka, "SCRAM-SHA-512"), vault.client_config("PLAIN")
    servers = backend.pop("bootstrap.servers")
    files = (
        *("--backend", servers, "--command-config", write(tmp_path / "backend.properties", backend)),
        *("--listener", PEERS, "--listener", OPEN, "--peer-config", write(tmp_path / "peers.properties", peers)),
        *("--sasl-users", write(tmp_path / "users.properties", {"alice": PASSWORD})),
        *("--tls-cert", vault.server.cert, "--tls-key", vault.server.key),
        *(f"--config={key}={value}" for key, value in inside.items()),
    )
    security = ListenerSecurity(tls_cert=vault.server.cert, tls_key=vault.server.key, users={"alice": PASSWORD})
    with (
        serving(*files) as address,
        Cluster(backend=servers, backend_config=backend, peer_config=peers, config=inside) as cluster,
        Server(cluster, listeners=[PEERS, OPEN], security=security) as server,
    ):
        assert PASSWORD not in repr(cluster)
        one, other = (
            {**vault.client_config("PLAIN"), "bootstrap.servers": at} for at in (address, server.bootstrap_servers)
        )
        with Admin(one) as admin:
            admin.create_topics([NewTopic("shared", 4, 1)]).check()
            admin.alter_group_configs("readers", {"share.auto.offset.reset": "earliest"})

            def leaders() -> set[int]:
                return {partition.leader for partition in admin.describe_topics(["shared"])["shared"].partitions}

            eventually(lambda: len(leaders()), 2)
        with Admin({"bootstrap.servers": server.listeners["PLAINTEXT"]}) as plain:
            assert [node.host for node in plain.describe_cluster().nodes] == ["localhost"] * 2
        producer = confluent_kafka.Producer(other)
        for number in range(40):
            producer.produce("shared", str(number).encode(), partition=number % 4)
        assert producer.flush(PATIENCE_S) == 0
        found: set[bytes | None] = set()
        with ShareConsumer({**other, "group.id": "readers"}) as consumer:
            consumer.subscribe(["shared"])
            while len(found) < 40:
                found |= {message.value() for message in consumer.poll(PATIENCE_S)}
        assert found == {str(number).encode() for number in range(40)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sasl.password": "wrong"}, Errors.SASL_AUTHENTICATION_FAILED),
        ({"ssl.ca.location": "stranger"}, KafkaError._SSL),
        ({"security.protocol": "plaintext"}, KafkaError._SSL),
    ],
)
def test_a_backend_that_refuses_the_process_is_an_error_at_once(
    vault: JavaVault, kafka: LocalKafka, change: dict[str, Any], expected: int
) -> None:
    conf = {**conf_of(vault, kafka, "PLAIN"), **change}
    if conf["ssl.ca.location"] == "stranger":
        conf["ssl.ca.location"] = vault.stranger.file
    with pytest.raises(KafkaException) as refused:
        Cluster(backend=kafka.bootstrap_servers, backend_config=conf)
    assert refused.value.error.code() == expected
    assert PASSWORD not in str(refused.value)
