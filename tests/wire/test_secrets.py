"""No password, token, key or credential is shown: not by servers and clients, with logins that succeed and fail, not in
their logs, journals, texts, errors and tracebacks."""

from __future__ import annotations

import json
import logging
import pickle
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization

from shareq import Admin, Cluster, Journal, KafkaException, Producer, ShareConsumer, monitor, observe, tap
from shareq.admin import UserScramCredentialUpsertion
from shareq.kafka import LocalKafka
from shareq.model.errors import ConfigException
from shareq.model.events import AuthenticationFailed, RequestSent
from shareq.model.messages.security import AlterUserScramCredentialsRequest, SaslAuthenticateRequest
from shareq.model.scram import ScramCredentialInfo, ScramMechanism
from shareq.spark.batch import BatchReader
from shareq.spark.options import parse
from shareq.spark.stream import StreamReader
from shareq.trace.journal.event_text import event_text
from shareq.wire.client.client_security import ClientSecurity
from shareq.wire.request_log import ServedRequest
from shareq.wire.security.listener_security import ListenerSecurity
from tests.polling import PATIENCE_S, QUICK, eventually
from tests.wire.certificates import PASSWORD
from tests.wire.secrets import Secrets, content_of, texts_of, texts_of_error
from tests.wire.secured import KINDS, Secured, Vault, secured
from tests.wire.test_cli import ports, running

WRONG, OF_BOB, KEY_PASSWORD, SALT = "not-the-password", "secret-of-bob", "password-of-the-key", b"salt-of-bob-is-this"
SHA_256 = ScramMechanism.SCRAM_SHA_256

Conf = dict[str, Any]


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return Vault(tmp_path_factory.mktemp("vault"))


@pytest.fixture
def secrets(vault: Vault) -> Secrets:
    made = Secrets()
    for name, text in (("a password", PASSWORD), ("a wrong one", WRONG), ("bob's", OF_BOB), ("a key's", KEY_PASSWORD)):
        made.add(name, text)
    salted = SHA_256.salted_password(OF_BOB, SALT, 4096)
    made.add("a salt", SALT)
    made.add("a salted password", salted, SHA_256.client_key(salted), SHA_256.server_key(salted))
    for key in (vault.server.key, vault.client.key):
        made.add_key(Path(key).read_text())
    made.add_key(vault.issuer.private_pem)
    return made


def users_credentials(secrets: Secrets, cluster: Cluster) -> None:
    """Add what the cluster has of its users."""
    for credentials in cluster.image.users.values():
        for credential in credentials.values():
            secrets.add("a credential", credential.salt, credential.stored_key, credential.server_key)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


class Case(NamedTuple):
    vault: Vault
    secrets: Secrets
    kind: str


@pytest.fixture
def case(vault: Vault, secrets: Secrets, kind: str) -> Case:
    return Case(vault, secrets, kind)


def encrypted(vault: Vault) -> str:
    """The client's key, PEM with a password."""
    key = serialization.load_pem_private_key(Path(vault.client.key).read_bytes(), None)
    how = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how).decode()


def good(vault: Vault, secrets: Secrets, kind: str) -> Conf:
    """The configuration of a client that gets in, with all its secrets as texts where that is possible."""
    conf = vault.client_config(kind)
    if kind == "mutual TLS":
        pem = encrypted(vault)
        secrets.add_key(pem)
        conf = {
            key: value for key, value in conf.items() if key not in ("ssl.certificate.location", "ssl.key.location")
        }
        conf |= {"ssl.certificate.pem": Path(vault.client.cert).read_text(), "ssl.key.pem": pem}
        conf |= {"ssl.key.password": KEY_PASSWORD}
    elif kind == "OAUTHBEARER":
        conf |= token_callback(secrets, vault.issuer.token())
    return conf


def token_callback(secrets: Secrets, token: str) -> Conf:
    secrets.add_token(token)
    return {"oauth_cb": lambda _: (token, 4e9)}


def refused(vault: Vault, secrets: Secrets, kind: str) -> list[Conf]:
    """Changes with which a client does not get in."""
    if kind == "OAUTHBEARER":
        token = vault.issuer.token()
        secrets.add_token(token)

        def fails(config: str) -> tuple[str, float]:
            raise ValueError(f"{token} {config}")

        return [
            token_callback(secrets, vault.issuer.token(lifetime_s=-600)),
            token_callback(secrets, vault.issuer.token(aud="another")),
            token_callback(secrets, vault.issuer.token()[:-8] + "AAAAAAAA"),
            token_callback(secrets, "not.a-token-at-all.but-a-secret"),
            {"oauth_cb": fails, "sasl.oauthbearer.config": WRONG},
        ]
    if "TLS" in kind:
        return [{"ssl.ca.location": vault.stranger.file}]
    return [{"sasl.password": WRONG}, {"sasl.username": "nobody"}, {"sasl.password": f"{WRONG}\udcff"}]


def with_admin(conf: Conf) -> Iterator[str]:
    with Admin(conf) as admin:
        yield from texts_of(admin)
        info = ScramCredentialInfo(SHA_256, 4096)
        change = UserScramCredentialUpsertion("bob", info, OF_BOB, salt=SALT)
        yield from texts_of(change, admin.alter_user_scram_credentials([change], timeout=PATIENCE_S))
        yield from texts_of(admin.describe_user_scram_credentials(timeout=PATIENCE_S))


def with_producer(conf: Conf) -> Iterator[str]:
    errors: list[Any] = []
    with Producer(conf) as producer:
        yield from texts_of(producer)
        producer.produce("orders", b"x", on_delivery=lambda error, message: errors.extend((error, message)))
        producer.flush(PATIENCE_S)
    yield from texts_of(*errors)
    if errors[0] is not None:
        raise KafkaException(errors[0])


def with_consumer(conf: Conf) -> Iterator[str]:
    with ShareConsumer({**conf, "group.id": "g"}) as consumer:
        yield from texts_of(consumer)
        consumer.subscribe(["orders"])
        while not (found := consumer.poll(PATIENCE_S)):
            pass
        yield from texts_of(found)


def with_observer(conf: Conf) -> Iterator[str]:
    with observe(conf.pop("bootstrap.servers"), "g", ["orders"], config=conf) as observer:
        well = observer.refresh(PATIENCE_S)
        yield from texts_of(observer, observer.trouble, observer.journal, *observer.journal)
    if not well:
        raise LookupError(observer.trouble)


def with_monitor(conf: Conf) -> Iterator[str]:
    with monitor(conf.pop("bootstrap.servers"), config=conf) as opened:
        yield from texts_of(opened, opened.refresh(PATIENCE_S), opened)


def requests_in(journal: Journal) -> set[str]:
    return {entry.event.api for entry in journal.select(RequestSent) if isinstance(entry.event, RequestSent)}


def with_tap(conf: Conf) -> Iterator[str]:
    login = {key: value for key, value in conf.items() if key.startswith(("sasl", "oauth"))}
    with tap(conf.pop("bootstrap.servers"), config=conf, trace_messages=True) as opened:
        through = {"bootstrap.servers": opened.bootstrap_servers, **login}
        yield from with_admin({**through, "security.protocol": "sasl_plaintext"} if login else through)
        eventually(lambda: "AlterUserScramCredentialsRequest" in requests_in(opened.journal), True)
        yield from texts_of(opened, opened.journal, *opened.journal)


CLIENTS = pytest.mark.parametrize(
    "used", [with_admin, with_producer, with_consumer, with_observer, with_monitor, with_tap]
)

Used = Callable[[Conf], Iterator[str]]


def texts_of_server(broker: Secured, lines: list[ServedRequest], file: Path) -> Iterator[str]:
    """What a server shows, with the bytes of its journal's file."""
    cluster = broker.cluster
    cluster.journal.to_jsonl(file)
    yield content_of(file)
    yield from texts_of(broker.server, cluster, cluster.image, cluster.journal, *lines)
    yield from (repr(entry) + event_text(0, entry.event) for entry in cluster.journal)
    yield from (text for failure in broker.server.failures for text in texts_of_error(failure))


@CLIENTS
def test_a_client_that_gets_in_and_its_server_show_no_secret(
    case: Case, used: Used, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vault, secrets, kind = case
    caplog.set_level(logging.DEBUG)
    lines: list[ServedRequest] = []
    conf = good(vault, secrets, kind)
    with secured(vault, kind, QUICK, observer=lines.append, trace_messages=True) as broker:
        if used is with_consumer:
            with Producer({"bootstrap.servers": broker.cluster.bootstrap_servers}) as producer:
                producer.produce("orders", b"x")
        shown = [*texts_of(ClientSecurity.of(conf))]
        shown += used({**conf, "bootstrap.servers": broker.bootstrap_servers})
        users_credentials(secrets, broker.cluster)
        shown += texts_of_server(broker, lines, tmp_path / "journal.jsonl")
        assert list(broker.server.failures) == []
    assert any(line.api == "ApiVersions" for line in lines)
    assert secrets.shown_in([*shown, caplog.text]) == []


@CLIENTS
def test_a_client_that_does_not_get_in_and_its_server_show_no_secret(
    case: Case, used: Used, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vault, secrets, kind = case
    caplog.set_level(logging.DEBUG)
    lines: list[ServedRequest] = []
    conf = good(vault, secrets, kind)
    shown: list[str] = []
    quick = {"connection.failed.authentication.delay.ms": 0}
    with secured(vault, kind, quick, observer=lines.append, trace_messages=True) as broker:
        for change in refused(vault, secrets, kind):
            given = {**conf, **change, "bootstrap.servers": broker.bootstrap_servers}
            if used is with_monitor:  # its report has the reason
                shown += used(given)
                continue
            with pytest.raises((KafkaException, LookupError)) as error:
                shown += used(given)
            shown += texts_of_error(error.value)
        eventually(lambda: bool(broker.cluster.journal.select(AuthenticationFailed)), True)
        users_credentials(secrets, broker.cluster)
        shown += texts_of_server(broker, lines, tmp_path / "journal.jsonl")
        assert list(broker.server.failures) == []
    assert secrets.shown_in([*shown, caplog.text]) == []


# ---- the server's own secrets ----------------------------------------------------------------------------------------


def test_a_server_process_shows_no_secret(vault: Vault, secrets: Secrets, tmp_path: Path) -> None:
    """With `-v` and a journal, users from a file, a JWKS file that has the private key, too, and all mechanisms."""
    users, journal, keys = (tmp_path / name for name in ("users.properties", "journal.jsonl", "keys.json"))
    users.write_text(f"alice = {PASSWORD}\n")
    keys.write_text(private_jwks(vault, secrets))
    config = {"jwks.endpoint.url": keys.as_uri(), "expected.audience": "kafka", "expected.issuer": "issuer"}
    files = ("--tls-cert", vault.server.cert, "--tls-key", vault.server.key, "--sasl-users", str(users))
    options = [f"--config=sasl.oauthbearer.{key}={value}" for key, value in config.items()]
    with running(*files, *options, "--topic", "orders", "--journal", str(journal), "-v") as process:
        (port,) = ports(process)
        for mechanism in KINDS[2:]:
            conf = {**good(vault, secrets, mechanism), "bootstrap.servers": f"127.0.0.1:{port}"}
            assert list(with_admin(conf))
            for change in refused(vault, secrets, mechanism):
                with pytest.raises(KafkaException):
                    list(with_admin({**conf, **change}))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert "SaslAuthenticate" in out
    assert "was refused" in err
    assert "Traceback" not in err
    assert "AuthenticationFailed" in content_of(journal)
    assert secrets.shown_in([out, err, content_of(journal)]) == []


def private_jwks(vault: Vault, secrets: Secrets) -> str:
    """The issuer's key as it is before its private parts are taken away."""
    made = vault.issuer.private_jwk
    secrets.add("a part of a JWK", *(made[name] for name in ("d", "p", "q", "dp", "dq", "qi")))
    return json.dumps({"keys": [made]})


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(lambda text: text[:-40], id="cut off"),
        pytest.param(lambda text: text.replace('"n"', '"m"'), id="without its modulus"),
        pytest.param(lambda text: text.replace('"RSA"', '["RSA"]'), id="a strange type"),
        pytest.param(lambda text: text.replace('"keys"', '"key"'), id="no keys"),
        pytest.param(lambda text: text.replace('"first"', '["first"]'), id="a strange id"),
    ],
)
def test_a_file_of_keys_that_cannot_be_used_is_not_shown(
    vault: Vault, secrets: Secrets, cut: Callable[[str], str], tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(cut(private_jwks(vault, secrets)))
    with (
        pytest.raises(ConfigException, match=r"jwks\.endpoint\.url") as refusal,
        secured(vault, "OAUTHBEARER", {"sasl.oauthbearer.jwks.endpoint.url": file.as_uri()}),
    ):
        pass
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


@pytest.mark.parametrize("password", [None, "not-this-one-either", KEY_PASSWORD + "\udcff"])
def test_a_key_that_cannot_be_read_is_not_shown(
    vault: Vault, secrets: Secrets, password: str | None, tmp_path: Path
) -> None:
    """By a server, and by a client."""
    key = tmp_path / "key.pem"
    key.write_text(pem := encrypted(vault))
    secrets.add_key(pem)
    secrets.add("another password of the key", "not-this-one-either")
    security = ListenerSecurity(
        tls_cert=vault.client.cert, tls_key=key, tls_key_password=password, users={"alice": PASSWORD}
    )
    shown = [*texts_of(security)]
    with Cluster(brokers=1) as cluster, pytest.raises(ConfigException, match="tls_key") as of_server:
        security.server_context(cluster.image.broker_config)
    shown += texts_of_error(of_server.value)
    for files in (
        {"ssl.certificate.location": vault.client.cert, "ssl.key.location": str(key)},
        {"ssl.certificate.pem": Path(vault.client.cert).read_text(), "ssl.key.pem": pem},
    ):
        with pytest.raises(KafkaException) as of_client:
            Admin(
                {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "ssl", "ssl.key.password": password, **files}
            )
        shown += texts_of_error(of_client.value)
    assert secrets.shown_in(shown) == []


# ---- configurations that are refused ---------------------------------------------------------------------------------

MISSPELT = ["sasl.pasword", "sasl_passwrd", "pasword", "passwd", "passphrase", "pwd", "ssl.keystore.password",
            "sasl.jaas.config", "private.key", "basic.auth.user.info", "bearer.token", "client.secret"]  # fmt: skip

AT = {"bootstrap.servers": "127.0.0.1:1"}


def spark_options(conf: Conf) -> Any:
    return parse(
        {"subscribe": "orders", "group.id": "g", **{f"kafka.{key}": value for key, value in {**AT, **conf}.items()}}
    )


@pytest.mark.parametrize("key", MISSPELT)
@pytest.mark.parametrize(
    "configured",
    [
        pytest.param(lambda conf: Admin({**AT, **conf}), id="Admin"),
        pytest.param(lambda conf: Producer({**AT, **conf}), id="Producer"),
        pytest.param(lambda conf: ShareConsumer({**AT, "group.id": "g", **conf}), id="ShareConsumer"),
        pytest.param(lambda conf: observe("127.0.0.1:1", "g", config=conf), id="observe"),
        pytest.param(lambda conf: monitor("127.0.0.1:1", config=conf), id="monitor"),
        pytest.param(lambda conf: tap("127.0.0.1:1", config=conf), id="tap"),
        pytest.param(lambda conf: Cluster(config=conf), id="Cluster"),
        pytest.param(lambda conf: Cluster(backend="127.0.0.1:1", backend_config=conf), id="backend"),
        pytest.param(lambda conf: Cluster(backend="127.0.0.1:1", peer_config=conf), id="peers"),
        pytest.param(spark_options, id="Spark"),
    ],
)
def test_the_value_of_a_misspelt_secret_is_not_shown(
    secrets: Secrets, configured: Callable[[Conf], Any], key: str
) -> None:
    with pytest.raises((KafkaException, ConfigException, ValueError), match="configuration") as refusal:
        configured({key: PASSWORD})
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


@pytest.mark.parametrize("name", ["ssl.key.location", "ssl.certificate.location", "ssl.ca.location"])
def test_a_key_in_the_place_of_its_file_is_not_shown(vault: Vault, secrets: Secrets, name: str) -> None:
    conf = {**AT, "security.protocol": "ssl", name: Path(vault.client.key).read_text()}
    with pytest.raises(KafkaException, match="must be the name of a file") as refusal:
        Admin(conf)
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


@pytest.mark.parametrize("name", ["tls_cert", "tls_key", "tls_client_ca"])
def test_a_key_of_the_server_in_the_place_of_its_file_is_not_shown(vault: Vault, secrets: Secrets, name: str) -> None:
    files: Any = {name: Path(vault.server.key).read_text()}
    with pytest.raises(ConfigException, match=f"{name}: must be the name of a file") as refusal:
        ListenerSecurity(**files)
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


def test_a_password_in_a_url_is_not_shown(secrets: Secrets) -> None:
    login = {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}
    url = {"sasl.oauthbearer.token.endpoint.url": f"https://alice:{PASSWORD}@127.0.0.1/token"}
    with pytest.raises(KafkaException, match="must be the URL of a file") as refusal:
        Admin({**AT, **login, **url})
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


@pytest.mark.parametrize("made", [LocalKafka, lambda config: Cluster(config=config)], ids=["LocalKafka", "Cluster"])
@pytest.mark.parametrize("config", [[("ssl.key.password", PASSWORD)], f"ssl.key.password={PASSWORD}"])
def test_configurations_of_another_type_are_not_shown(secrets: Secrets, made: Callable[..., Any], config: Any) -> None:
    with pytest.raises(ConfigException, match="must be a dict") as refusal:
        made(config=config)
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


@pytest.mark.parametrize(
    "alteration",
    [
        ("alice", PASSWORD),
        {"user": "alice", "password": PASSWORD},
        UserScramCredentialUpsertion("alice", PASSWORD, ScramCredentialInfo(SHA_256, 4096)),  # type: ignore[arg-type]
        UserScramCredentialUpsertion("alice", ScramCredentialInfo(SHA_256, 4096), f"{PASSWORD}\udcff"),
        UserScramCredentialUpsertion("alice", ScramCredentialInfo(SHA_256, 4096), PASSWORD.encode() + b"\xff"),
    ],
    ids=["a tuple", "a dict", "the wrong order", "no UTF-8", "bytes that are no UTF-8"],
)
def test_an_alteration_of_a_user_that_is_refused_is_not_shown(secrets: Secrets, alteration: Any) -> None:
    with (
        Cluster(brokers=1) as cluster,
        Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin,
        pytest.raises((TypeError, ValueError)) as refusal,
    ):
        admin.alter_user_scram_credentials([alteration])
    assert secrets.shown_in(texts_of_error(refusal.value)) == []


# ---- objects that hold a configuration -------------------------------------------------------------------------------


def test_spark_objects_hold_secrets_and_do_not_show_them(vault: Vault, secrets: Secrets, kind: str) -> None:
    """They are pickled for Spark's workers, which need them: a copy does not show them either."""
    conf = {key: value for key, value in good(vault, secrets, kind).items() if key != "oauth_cb"}
    options = spark_options({key: str(value) for key, value in conf.items()})
    assert conf.items() <= options.conf.items()
    readers = [BatchReader(options), StreamReader(options, "")]
    copies = [pickle.loads(pickle.dumps(one)) for one in (options, *readers)]
    assert secrets.shown_in(texts_of(options, *readers, *copies)) == []


def test_a_local_kafka_shows_no_configuration(secrets: Secrets) -> None:
    login = f'required username="admin" password="{PASSWORD}" user_admin="{PASSWORD}";'
    kafka = LocalKafka(config={"sasl.jaas.config": login, "ssl.key.password": KEY_PASSWORD})
    assert secrets.shown_in(texts_of(kafka)) == []


def test_a_message_shows_the_size_of_a_secret() -> None:
    assert repr(SaslAuthenticateRequest(auth_bytes=b"secret")) == "SaslAuthenticateRequest(auth_bytes=<6 B>)"
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"secret"
    )
    assert "salted_password=<6 B>" in repr(AlterUserScramCredentialsRequest(upsertions=(upsertion,)))
