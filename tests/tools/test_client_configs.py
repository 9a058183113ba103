"""`shareq configs` with quotas and SCRAM credentials, beside Kafka's tool on the same cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from shareq import (
    Admin,
    KafkaException,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    cli,
)
from shareq.kafka import LocalKafka
from shareq.model.client_quotas import ADDRESS_QUOTA_KEYS, QUOTA_KEYS
from shareq.model.scram import ScramCredential
from shareq.tools.rows import java_number
from shareq.wire.server import Server
from tests.polling import eventually
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import Beside

Fresh = Callable[[str], str]


@pytest.fixture
def configs(served: Server, java_tools: JavaTools) -> Beside:
    return Beside(served.bootstrap_servers, java_tools, "configs", "kafka-configs")


@pytest.fixture
def configs_of_kafka(kafka: LocalKafka, java_tools: JavaTools) -> Beside:
    return Beside(kafka.bootstrap_servers, java_tools, "configs", "kafka-configs")


@pytest.fixture
def admin(served: Server) -> Any:
    with Admin({"bootstrap.servers": served.bootstrap_servers}) as made:
        yield made


def test_quotas_are_described_as_by_kafka(configs: Beside, fresh: Fresh) -> None:
    user, app = fresh("alice"), fresh("app")
    for entity, quota in (
        (("--user", user), "producer_byte_rate=1000"),
        (("--entity-type", "clients", "--entity-name", app), "request_percentage=12.5"),
        (("--client", app, "--user", user), "consumer_byte_rate=2000"),
        (("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", app),
         "consumer_byte_rate=3000"),
    ):  # fmt: skip
        assert configs.invoke("--alter", *entity, "--add-config", quota).stdout.startswith("Completed updating ")
    of_pairs = configs.same("--describe", "--entity-type", "users", "--entity-type", "clients", about=app)
    assert len(of_pairs) == 2
    named = configs.same("--describe", "--user", user)
    assert named == [f"Quota configs for user-principal '{user}' are producer_byte_rate=1000.0".split()]
    assert configs.invoke("--describe", "--client", app).stdout == (
        f"Quota configs for client-id '{app}' are request_percentage=12.5\n"
    )
    assert configs.objects("--describe", "--user", user, "--client", app) == [
        {"entity": {"user": user, "client-id": app}, "name": "consumer_byte_rate", "value": 2000.0}
    ]


def test_quotas_are_set_and_removed(configs: Beside, admin: Admin, fresh: Fresh) -> None:
    user = fresh("alice")
    alter = ("--alter", "--user", user)
    done = f"Completed updating config for user {user}.\n"
    assert configs.invoke(*alter, "--add-config", "producer_byte_rate=7,consumer_byte_rate=8").stdout == done
    assert configs.invoke(*alter, "--delete-config", "producer_byte_rate").stdout == done
    (left,) = admin.describe_client_quotas({"user": user})
    assert left.quotas == {"consumer_byte_rate": 8.0}
    assert "not set: producer_byte_rate" in configs.failure(*alter, "--delete-config", "producer_byte_rate", code=2)
    (changed,) = configs.objects(*alter, "--delete-config", "consumer_byte_rate")
    assert changed == {"entity": {"user": user}, "changes": {"consumer_byte_rate": None}}
    assert admin.describe_client_quotas({"user": user}) == []


def test_defaults_of_users_are_altered(configs: Beside) -> None:
    done = "Completed updating default config for users in the cluster.\n"
    assert configs.invoke("--alter", "--user-defaults", "--add-config", "request_percentage=900").stdout == done
    shown = "Quota configs for the default user-principal are request_percentage=900.0\n"
    assert configs.invoke("--describe", "--entity-type", "users", "--entity-default").stdout == shown
    assert configs.invoke("--alter", "--user-defaults", "--delete-config", "request_percentage").stdout == done


def test_credentials_are_set_described_as_by_kafka_and_deleted(configs: Beside, served: Server, fresh: Fresh) -> None:
    user = fresh("alice")
    alter = ("--alter", "--user", user)
    both = "SCRAM-SHA-256=[iterations=8192,password=a,b=c],SCRAM-SHA-512=[password=secret]"
    done = configs.invoke(*alter, "--add-config", both)
    assert done.stdout == f"Completed updating config for user {user}.\n"
    credentials = served.cluster.image.users[user]
    assert credentials[ScramMechanism.SCRAM_SHA_256].fits(ScramMechanism.SCRAM_SHA_256, "a,b=c")
    assert credentials[ScramMechanism.SCRAM_SHA_512].fits(ScramMechanism.SCRAM_SHA_512, "secret")
    (row,) = configs.same("--describe", "--user", user)
    assert row[-2:] == ["SCRAM-SHA-256=iterations=8192,", "SCRAM-SHA-512=iterations=4096"]
    assert configs.objects("--describe", "--entity-type", "users", "--entity-name", user)[0] == {
        "entity": {"user": user}, "name": "SCRAM-SHA-256", "value": {"iterations": 8192}
    }  # fmt: skip
    (changed,) = configs.objects(*alter, "--delete-config", "SCRAM-SHA-256,SCRAM-SHA-512")
    assert changed["changes"] == {"SCRAM-SHA-256": None, "SCRAM-SHA-512": None}
    assert user not in served.cluster.image.users
    assert configs.invoke("--describe", "--user", user).stdout == ""
    assert "RESOURCE_NOT_FOUND" in configs.failure(*alter, "--delete-config", "SCRAM-SHA-256")


def test_quotas_of_addresses_are_set_and_removed(configs: Beside) -> None:
    address, key = ("--ip", "127.0.0.9"), "connection_creation_rate"
    assert configs.invoke("--alter", *address, "--add-config", f"{key}=5").returncode == 0
    (row,) = configs.objects("--describe", *address)
    assert (row["entity"], row["name"], row["value"]) == ({"ip": "127.0.0.9"}, key, 5)
    assert configs.invoke("--alter", *address, "--delete-config", key).returncode == 0
    assert configs.objects("--describe", *address) == []


USER, CLIENT, BOTH = ("--user", "{user}"), ("--client", "{app}"), ("--user", "{user}", "--client", "{app}")
OF_KAFKA = [
    (USER, "controller_mutation_rate=0.5"),
    (("--entity-type", "users", "--entity-name", "{user}"), "SCRAM-SHA-256=[password=pass:word]"),
    (("--user-defaults",), "request_percentage=200"),
    (CLIENT, "producer_byte_rate=10485760"),
    (("--entity-type", "clients", "--entity-default"), "consumer_byte_rate=9999999"),
    (BOTH, "consumer_byte_rate=12345678901"),
    (("--user", "{user}", "--client-defaults"), "request_percentage=0.0005"),
    (("--user-defaults", "--client", "{app}"), "controller_mutation_rate=10"),
    (("--user-defaults", "--client-defaults"), "producer_byte_rate=1000"),
    (("--ip", "127.0.0.9"), "connection_creation_rate=500"),
    (("--entity-type", "ips", "--entity-default"), "connection_creation_rate=900"),
]
"""Entities of each kind, and a configuration of each."""


@pytest.mark.parametrize(("entity", "config"), OF_KAFKA)
def test_configurations_of_apache_kafka(
    configs_of_kafka: Beside, fresh: Fresh, entity: tuple[str, ...], config: str
) -> None:
    """Set, described and removed with the sentences of Kafka's tool, numbers as Java writes them."""
    entity = tuple(word.format(user=fresh("alice"), app=fresh("app")) for word in entity)
    key, _, value = config.partition("=")
    alter = ("--alter", *entity, "--add-config", config)
    has_it = lambda: f"{key}=" in configs_of_kafka.invoke("--describe", *entity).stdout  # noqa: E731
    assert configs_of_kafka.invoke(*alter).stdout == configs_of_kafka.java(*alter).stdout != ""
    eventually(has_it, True)
    described = configs_of_kafka.same("--describe", *entity)
    assert f"{key}=" in described[0][-1]
    assert "pass:word" not in str(described)
    if key in QUOTA_KEYS | ADDRESS_QUOTA_KEYS:
        (row,) = configs_of_kafka.objects("--describe", *entity)
        assert row["value"] == float(value)
    done = configs_of_kafka.invoke("--alter", *entity, "--delete-config", key)
    assert done.returncode == 0, done.stderr
    eventually(has_it, False)
    assert configs_of_kafka.same("--describe", *entity) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (0.001, "0.001"), (0.00099, "9.9E-4"), (0.0001, "1.0E-4"), (12.5, "12.5"), (1000.0, "1000.0"),
        (9999999.0, "9999999.0"), (1e7, "1.0E7"), (10485760.0, "1.048576E7"), (12345678901.0, "1.2345678901E10"),
        (1e22, "1.0E22"), (-2e7, "-2.0E7"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_by_java(value: float, text: str) -> None:
    assert java_number(value) == text


@pytest.mark.parametrize(
    ("entity", "done"),
    [
        (("--user", "u", "--client", "c"), "config for client c"),
        (("--user", "u", "--client-defaults"), "config for user u"),
        (("--user-defaults", "--client", "c"), "config for client c"),
        (("--user-defaults", "--client-defaults"), "default config for clients in the cluster"),
        (("--entity-type", "users", "--entity-name", "u", "--entity-type", "clients", "--entity-default"),
         "config for user u"),
    ],
)  # fmt: skip
def test_an_alteration_of_two_entities_reports_the_one_that_kafka_reports(
    served: Server, entity: tuple[str, ...], done: str
) -> None:
    for change in ("--add-config", "request_percentage=900"), ("--delete-config", "request_percentage"):
        args = ["configs", "--bootstrap-server", served.bootstrap_servers, "--alter", *entity, *change]
        assert CliRunner().invoke(cli.main, args).stdout == f"Completed updating {done}.\n"


# ---- the admin client ------------------------------------------------------------------------------------------------


def test_credentials_are_altered_and_described_by_admin(admin: Admin, served: Server, fresh: Fresh) -> None:
    user, mechanism = fresh("alice"), ScramMechanism.SCRAM_SHA_256
    info = ScramCredentialInfo(mechanism, 5000)
    upsertion = UserScramCredentialUpsertion(user, info, b"secret", salt=b"pepper")
    assert "secret" not in repr(upsertion)
    assert "pepper" not in repr(upsertion)
    assert admin.alter_user_scram_credentials([upsertion]).check()[user].name == user
    stored = served.cluster.image.users[user][mechanism]
    assert stored == ScramCredential.of_password(mechanism, "secret", b"pepper", 5000)
    described = admin.describe_user_scram_credentials([user, "carol"])
    assert described[user].scram_credential_infos == (info,)
    assert f"{user}  SCRAM-SHA-256 (5000 iterations)" in repr(described)
    assert described["carol"].error is not None
    assert described["carol"].error.name() == "RESOURCE_NOT_FOUND"
    assert user in admin.describe_user_scram_credentials()
    assert admin.describe_user_scram_credentials([]) == {}
    admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)]).check()
    with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
        admin.describe_user_scram_credentials([user]).check()


@pytest.mark.parametrize(
    ("alteration", "message"),
    [
        ("alice", "must be a UserScramCredentialUpsertion or a UserScramCredentialDeletion"),
        (UserScramCredentialDeletion("", ScramMechanism.SCRAM_SHA_256), "user must not be empty"),
        (UserScramCredentialDeletion("alice", "SCRAM-SHA-256"), "must be a ScramMechanism"),  # type: ignore[arg-type]
        (UserScramCredentialUpsertion("alice", 4096, "x"), "must be a ScramCredentialInfo"),  # type: ignore[arg-type]
        (UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 0), "x"),
         r"iterations=0: must be 4096\.\.16384"),
        (UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), ""),
         "password of user 'alice': must not be empty"),
        (UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), 7),  # type: ignore[arg-type]
         "password: must be str or bytes, and is of type int"),
    ],
)  # fmt: skip
def test_alterations_that_make_no_sense_are_refused(admin: Admin, alteration: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        admin.alter_user_scram_credentials([alteration])


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--alter", "--user", "alice"], "--alter needs --add-config, --add-config-file or --delete-config"),
        (["--alter", "--entity-type", "users", "--add-config", "a=1"], "for each --entity-type"),
        (["--describe", "--user", "alice", "--user-defaults"], "only one entity is possible, or a user and a client"),
        (["--describe", "--user", "alice", "--topic", "t"], "only one entity is possible, or a user and a client"),
        (["--describe", "--user", "alice", "--ip", "::1"], "only the entity types users and clients"),
        (["--describe", "--ip", "here"], "the name of ips must be an IP address, and is 'here'"),
        (["--describe", "--entity-type", "users", "--entity-type", "users"], "--entity-type must be one of"),
        (["--describe", "--entity-type", "users", "--entity-name", "a", "--entity-default"],
         "only one --entity-name or --entity-default"),
        (["--alter", "--client", "app", "--add-config", "colour=1"],
         "unknown: colour; here possible: consumer_byte_rate, controller_mutation_rate, producer_byte_rate, req"),
        (["--alter", "--user", "alice", "--add-config", "colour=1"], "SCRAM-SHA-256, SCRAM-SHA-512"),
        (["--alter", "--ip", "::1", "--add-config", "colour=1"], "here possible: connection_creation_rate"),
        (["--alter", "--client", "app", "--add-config", "SCRAM-SHA-256=[password=x]"], "those of one user: --user"),
        (["--alter", "--user-defaults", "--add-config", "SCRAM-SHA-256=[password=x]"], "those of one user: --user"),
        (["--alter", "--user", "a", "--add-config", "SCRAM-SHA-256=[password=x],request_percentage=1"],
         "quotas and SCRAM credentials cannot be altered together"),
        (["--alter", "--user", "a", "--add-config", "SCRAM-SHA-256=x"], "SCRAM-SHA-256=[iterations=N,password=...]"),
        (["--alter", "--user", "a", "--add-config", "SCRAM-SHA-256=[iterations=5,password=x]"],
         "SCRAM-SHA-256: iterations=5: must be 4096..16384"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.main, ["configs", *args, "--bootstrap-server", "127.0.0.1:1"])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "=x" not in done.stderr.replace(message, "")  # no password


def test_a_quota_that_is_no_number_is_refused(configs: Beside) -> None:
    refused = configs.failure("--alter", "--user", "alice", "--add-config", "producer_byte_rate=fast", code=2)
    assert "producer_byte_rate=fast: must be a number" in refused
