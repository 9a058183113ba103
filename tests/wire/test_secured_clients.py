"""shareq's clients, and confluent-kafka's, against secured servers: those that get in, and those that do not.

Numbers in ids are sections of shareq/wire/BEHAVIOUR.md.
"""

from __future__ import annotations

import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import psutil
import pytest
from click.testing import CliRunner

from shareq import Admin, Cluster, KafkaException, Producer, ShareConsumer, monitor, observe, tap
from shareq.cli import main
from shareq.model.errors import Errors, KafkaError
from shareq.model.events import AuthenticationFailed
from shareq.spark.options import parse
from shareq.spark.ranges import Range
from shareq.spark.reader import RangeFetcher
from shareq.trace.journal.event_text import event_text
from shareq.wire.sasl_connection import SaslConnection
from shareq.wire.security.channel_security import ChannelSecurity
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.server import Server
from tests.polling import PATIENCE_S, eventually
from tests.wire.certificates import PASSWORD
from tests.wire.refused import SOON_S
from tests.wire.secured import KINDS, Secured, Vault, secured


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return Vault(tmp_path_factory.mktemp("vault"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def broker(vault: Vault, kind: str) -> Iterator[Secured]:
    with secured(vault, kind) as made:
        yield made
        assert list(made.server.failures) == []


def conf_of(vault: Vault, broker: Secured, kind: str) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, **vault.client_config(kind)}


# ---- connections that open -------------------------------------------------------------------------------------------


def test_records_pass_through_our_clients(vault: Vault, broker: Secured, kind: str) -> None:
    conf = conf_of(vault, broker, kind)
    value = bytes(300_000)  # more than a record of TLS, and than what is read at once
    with Producer(conf) as producer:
        for _ in range(3):
            producer.produce("orders", value)
        assert producer.flush(PATIENCE_S) == 0
    with ShareConsumer({**conf, "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        found = 0
        while found < 3:
            found += sum(message.value() == value for message in consumer.poll(PATIENCE_S))
    with Admin(conf) as admin:
        assert "orders" in admin.list_topics()


def test_records_pass_through_confluents_clients(vault: Vault, broker: Secured, kind: str) -> None:
    conf = conf_of(vault, broker, kind)
    if conf.pop("sasl.oauthbearer.token.endpoint.url", None):
        conf["oauth_cb"] = lambda config: (vault.issuer.token(), 4e9)
    producer = confluent_kafka.Producer(conf)
    producer.produce("orders", b"hello")
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.ShareConsumer({**conf, "group.id": "g"})
    try:
        consumer.subscribe(["orders"])
        found: list[Any] = []
        while not found:
            found = [message for message in consumer.poll(1) if not message.error()]
        assert [message.value() for message in found] == [b"hello"]
    finally:
        consumer.close()


def test_a_task_of_sparks_source_gets_in(vault: Vault, broker: Secured, kind: str) -> None:
    """With the options of a read."""
    conf = conf_of(vault, broker, kind)
    with Producer(conf) as producer:
        producer.produce("orders", b"hello")
        producer.flush(PATIENCE_S)
    given = {f"kafka.{key}": str(value) for key, value in conf.items()}
    options = parse({**given, "subscribe": "orders", "group.id": "g"})
    topic_id = broker.cluster.image.topics["orders"].topic_id
    (batches,) = RangeFetcher(options.connection).batches(Range("orders", topic_id, 0, 0, 1, 1))
    assert [batch.record_count for batch in batches] == [1]


def test_confluents_admin_describes_users(vault: Vault) -> None:
    with secured(vault, "PLAIN") as broker:
        admin = confluent_kafka.admin.AdminClient(conf_of(vault, broker, "PLAIN"))
        futures: Any = admin.describe_user_scram_credentials(["alice"])
        found = futures["alice"].result(PATIENCE_S)
        assert [info.iterations for info in found.scram_credential_infos] == [4096, 4096]


def test_observers_and_monitors_get_in(vault: Vault, broker: Secured, kind: str) -> None:
    config = vault.client_config(kind)
    with observe(broker.bootstrap_servers, "g", ["orders"], config=config) as observer:
        assert observer.refresh(PATIENCE_S), observer.trouble
    with monitor(broker.bootstrap_servers, config=config) as opened:
        assert opened.refresh(PATIENCE_S).unreachable_since_ms is None


@pytest.mark.parametrize("kind", ["PLAIN", "SCRAM-SHA-256"])
def test_clients_log_in_through_a_tap_as_themselves(vault: Vault, broker: Secured, kind: str) -> None:
    with tap(broker.bootstrap_servers, config=vault.client_config(kind), trace_messages=True) as opened:
        login = {"sasl.mechanism": kind, "sasl.username": "alice", "sasl.password": PASSWORD}
        conf = {"bootstrap.servers": opened.bootstrap_servers, "security.protocol": "sasl_plaintext", **login}
        with Admin(conf) as admin:
            assert "orders" in admin.list_topics()
        opened.follow("g")
        assert opened.refresh(PATIENCE_S), opened.trouble
        assert not list(opened.failures)
        assert PASSWORD not in "".join(repr(entry) for entry in opened.journal)


@pytest.mark.parametrize("kind", ["SCRAM-SHA-512"])
def test_commands_take_a_file_of_properties(vault: Vault, broker: Secured, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in vault.client_config(kind).items()))
    listed = CliRunner().invoke(
        main, ["groups", "--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file), "--list"]
    )
    assert listed.exit_code == 0, listed.output
    observing = ["observe", broker.bootstrap_servers, "--all", "--once", "--command-config", str(file)]
    observed = CliRunner().invoke(main, observing)
    assert observed.exit_code == 0, observed.output


def test_certificates_and_keys_may_be_texts(vault: Vault) -> None:
    with secured(vault, "mutual TLS") as broker:
        texts = {
            "ssl.ca.pem": Path(vault.authority.file).read_text(),
            "ssl.certificate.pem": Path(vault.client.cert).read_text(),
            "ssl.key.pem": Path(vault.client.key).read_text(),
        }
        conf = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "SSL", **texts}
        with Admin(conf) as admin:
            assert "orders" in admin.list_topics()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_of_tls_are_spoken(vault: Vault, version: str) -> None:
    with secured(vault, "TLS") as broker:
        context = ssl.create_default_context(cafile=vault.authority.file)
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
        with (
            tap(broker.bootstrap_servers, ssl=context) as opened,
            Admin({"bootstrap.servers": opened.bootstrap_servers}) as admin,
        ):
            assert "orders" in admin.list_topics()


def test_a_closed_tap_has_no_connection_to_a_broker_that_does_not_answer(vault: Vault) -> None:
    """The end of TLS waits for the broker's, also after the client of the connection has gone."""
    with secured(vault, "TLS") as broker:
        answers = threading.Event()
        context = ssl.create_default_context(cafile=vault.authority.file)
        with (
            tap(broker.bootstrap_servers, ssl=context) as opened,
            Admin({"bootstrap.servers": opened.bootstrap_servers}) as admin,
        ):
            admin.list_topics()
            broker.server._asyncio.call_soon_threadsafe(answers.wait, PATIENCE_S)
        ports = {one.raddr.port for one in psutil.Process().net_connections("tcp") if one.raddr}
        answers.set()
        assert not ports & set(broker.server.ports)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [("DEFAULT", "User:O=shareq,CN=alice"), ("RULE:.*CN=([a-z]+).*/$1/U", "User:ALICE")],
)
def test_the_principal_is_that_of_the_certificate(
    vault: Vault, rules: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured(vault, "mutual TLS", {"ssl.principal.mapping.rules": rules}) as broker:
        principals = set()
        call = broker.server.network.call

        def spy(caller: Any, sent: Any, client: Any) -> None:
            principals.add(client.principal)
            call(caller, sent, client)

        monkeypatch.setattr(broker.server.network, "call", spy)
        with Admin(conf_of(vault, broker, "mutual TLS")) as admin:
            admin.list_topics()
        (found,) = principals
        assert set(found.removeprefix("User:").split(",")) >= set(expected.removeprefix("User:").split(","))


def test_the_client_logs_in_again_while_it_works(vault: Vault) -> None:
    """A login of a second; the third request needs the third login."""
    with secured(vault, "SCRAM-SHA-256", {"connections.max.reauth.ms": "1300"}) as broker:
        with Admin(conf_of(vault, broker, "SCRAM-SHA-256")) as admin:
            admin.list_topics()
            (connection,) = broker.server.connections
            assert isinstance(connection, SaslConnection)
            session = connection._session
            began: list[int | None] = [None]
            for _ in range(3):
                assert broker.cluster.wait(lambda: session._began_ms not in began, PATIENCE_S)
                began.append(session._began_ms)
                admin.list_topics()
            assert broker.server.connections == {connection}
        assert not broker.cluster.journal.select(AuthenticationFailed)


def test_the_client_that_cannot_log_in_again_closes_its_connection(vault: Vault) -> None:
    tokens = [vault.issuer.token()]

    def oauth_cb(config: str) -> tuple[str, float]:
        return tokens.pop(), 4e9

    with secured(vault, "OAUTHBEARER", {"connections.max.reauth.ms": "1300"}) as broker:
        conf = conf_of(vault, broker, "OAUTHBEARER")
        del conf["sasl.oauthbearer.token.endpoint.url"]
        with Admin({**conf, "oauth_cb": oauth_cb}) as admin:
            admin.list_topics()
            assert len(broker.server.connections) == 1
            assert broker.cluster.wait(lambda: not broker.server.connections, PATIENCE_S)


def test_the_authorizer_gets_the_user_of_the_login(vault: Vault) -> None:
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    for user, seen in (("alice", True), ("somebody", False)):
        with (
            secured(vault, "SCRAM-SHA-256", {**authorizer, "super.users": f"User:{user}"}) as broker,
            Admin(conf_of(vault, broker, "SCRAM-SHA-256")) as admin,
        ):
            assert ("orders" in admin.list_topics()) == seen


# ---- refused connections ---------------------------------------------------------------------------------------------


Ask = Callable[[dict[str, Any]], KafkaError]


def ask_admin(conf: dict[str, Any]) -> KafkaError:
    with Admin(conf) as admin, pytest.raises(KafkaException) as refused:
        admin.list_topics()
    return refused.value.error


def ask_producer(conf: dict[str, Any]) -> KafkaError:
    errors: list[KafkaError | None] = []
    with Producer(conf) as producer:
        producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
        producer.flush(SOON_S)
    (error,) = errors
    assert error is not None
    return error


def ask_consumer(conf: dict[str, Any]) -> KafkaError:
    with ShareConsumer({**conf, "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(KafkaException) as refused:
            consumer.poll(SOON_S)
    return refused.value.error


def soon(ask: Ask) -> Ask:
    """The same within `SOON_S`."""

    @wraps(ask)
    def asked(conf: dict[str, Any]) -> KafkaError:
        began = time.monotonic()
        error = ask(conf)
        assert time.monotonic() - began < SOON_S
        return error

    return asked


CLIENTS = pytest.mark.parametrize("ask", [soon(ask_admin), soon(ask_producer), soon(ask_consumer)])


@CLIENTS
@pytest.mark.parametrize("kind", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_ends_the_call(vault: Vault, broker: Secured, kind: str, ask: Ask) -> None:
    error = ask({**conf_of(vault, broker, kind), "sasl.password": "wrong"})
    assert error.code() == Errors.SASL_AUTHENTICATION_FAILED
    assert "Authentication failed" in error.str()


def first_refusal(cluster: Any) -> str:
    """The first one in the journal, in words. The server records it when its side of the connection has ended, which
    may be after the client's."""
    eventually(lambda: bool(cluster.journal.select(AuthenticationFailed)), True)
    return event_text(0, cluster.journal.select(AuthenticationFailed)[0].event)


@CLIENTS
@pytest.mark.parametrize("kind", ["OAUTHBEARER"])
def test_an_expired_token_ends_the_call(vault: Vault, broker: Secured, kind: str, ask: Ask) -> None:
    expired = vault.token_file(vault.issuer.token(lifetime_s=-120))
    error = ask({**conf_of(vault, broker, kind), "sasl.oauthbearer.token.endpoint.url": expired})
    assert error.code() == Errors.SASL_AUTHENTICATION_FAILED
    assert "invalid_token" in error.str()
    assert "expired" in first_refusal(broker.cluster)


@CLIENTS
@pytest.mark.parametrize("kind", ["TLS"])
def test_an_untrusted_certificate_ends_the_call(vault: Vault, broker: Secured, kind: str, ask: Ask) -> None:
    error = ask({**conf_of(vault, broker, kind), "ssl.ca.location": vault.stranger.file})
    assert error.code() == KafkaError._SSL
    assert "not trusted" in error.str()


@CLIENTS
def test_a_certificate_of_another_host_ends_the_call(vault: Vault, ask: Ask) -> None:
    files = ListenerSecurity(tls_cert=vault.elsewhere.cert, tls_key=vault.elsewhere.key)
    with Cluster(brokers=1, clock="wall") as cluster, Server(cluster, security=files) as server:
        conf = {"bootstrap.servers": server.bootstrap_servers, **vault.client_config("TLS")}
        error = ask(conf)
        assert error.code() == KafkaError._SSL
        assert "another host" in error.str()
        for lax in (
            {"ssl.endpoint.identification.algorithm": "none"},
            {"enable.ssl.certificate.verification": "false"},
        ):
            with Admin({**conf, **lax}) as admin:
                admin.list_topics()


@CLIENTS
@pytest.mark.parametrize("kind", ["TLS"])
def test_plaintext_to_a_port_with_tls_ends_the_call(broker: Secured, kind: str, ask: Ask) -> None:
    error = ask({"bootstrap.servers": broker.bootstrap_servers})
    assert error.code() == KafkaError._SSL
    assert "speaks TLS: set security.protocol" in error.str()
    assert first_refusal(broker.cluster) == "broker 0 refused 127.0.0.1, it does not speak TLS"


@CLIENTS
def test_tls_to_a_plaintext_port_ends_the_call(vault: Vault, ask: Ask) -> None:
    with Cluster(brokers=1, clock="wall") as cluster, Server(cluster) as server:
        error = ask({"bootstrap.servers": server.bootstrap_servers, **vault.client_config("TLS")})
        assert error.code() == KafkaError._AUTHENTICATION
        assert "it may not speak TLS" in error.str()
        assert "it speaks TLS, and this port does not" in first_refusal(cluster)


@pytest.mark.parametrize("kind", ["mutual TLS"])
def test_a_missing_certificate_ends_the_call(vault: Vault, broker: Secured, kind: str) -> None:
    error = ask_admin({"bootstrap.servers": broker.bootstrap_servers, **vault.client_config("TLS")})
    assert error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)


@pytest.mark.parametrize("kind", ["PLAIN"])
def test_an_unknown_mechanism_names_the_known_ones(vault: Vault, kind: str) -> None:
    with secured(vault, kind, {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}) as broker:
        error = ask_admin(conf_of(vault, broker, kind))
    assert error.code() == Errors.UNSUPPORTED_SASL_MECHANISM
    assert "it supports: SCRAM-SHA-256" in error.str()


def test_a_login_where_none_is_due_says_so() -> None:
    with Cluster(brokers=1, clock="wall") as cluster, Server(cluster) as server:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": PASSWORD}
        conf = {"bootstrap.servers": server.bootstrap_servers, "security.protocol": "sasl_plaintext"}
        error = ask_admin({**conf, **login})
    assert error.code() == Errors.ILLEGAL_SASL_STATE


def test_a_callback_without_a_token_ends_the_call(vault: Vault) -> None:
    def oauth_cb(config: str) -> tuple[str, float]:
        raise ValueError(PASSWORD + config)

    with secured(vault, "OAUTHBEARER") as broker:
        conf = conf_of(vault, broker, "OAUTHBEARER")
        del conf["sasl.oauthbearer.token.endpoint.url"]
        error = ask_admin({**conf, "oauth_cb": oauth_cb, "sasl.oauthbearer.config": "scope=x"})
    assert error.code() == KafkaError._AUTHENTICATION
    assert error.str().endswith("there is no token: ValueError")


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"security.protocol": "tls"}, "must be one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/no/such/file"}, "must be a file of certificates in PEM"),
        ({"security.protocol": "ssl", "ssl.key.location": "/no/such/file"}, "needs the certificate of this key"),
        ({"security.protocol": "ssl", "enable.ssl.certificate.verification": "maybe"}, "must be true or false"),
        ({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "x"}, "must be https or none"),
        ({"security.protocol": "ssl", "ssl.cipher.suites": "x"}, "not ciphers of OpenSSL"),
        ({"security.protocol": "sasl_ssl"}, "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}, "needs sasl.username and sasl.password"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}, "needs oauth_cb"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(conf: dict[str, Any], message: str) -> None:
    with pytest.raises(KafkaException, match=re.escape(message)) as refused:
        Admin({"bootstrap.servers": "127.0.0.1:1", **conf})
    assert refused.value.error.code() == KafkaError._INVALID_ARG


# ---- addresses that others reach -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "has", "warned"),
    [
        ("192.0.2.1", "", True),
        ("192.0.2.1", "tls", True),
        ("192.0.2.1", "users", True),
        ("192.0.2.1", "tls users", False),
        ("192.0.2.1", "tls client_ca", False),
        ("2001:db8::1", "", True),
        ("127.0.0.2", "", False),
        ("::1", "", False),
    ],
)
def test_serving_others_without_security_warns(
    vault: Vault, caplog: pytest.LogCaptureFixture, address: str, has: str, warned: bool
) -> None:
    security = ListenerSecurity(
        tls_cert=vault.server.cert if "tls" in has else None,
        tls_key=vault.server.key if "tls" in has else None,
        tls_client_ca=vault.authority.file if "client_ca" in has else None,
        users={"alice": PASSWORD} if "users" in has else None,
    )
    with Cluster(brokers=1) as cluster:
        ChannelSecurity(cluster, security).warn(address)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warned
