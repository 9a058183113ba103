"""`shareq acls` beside Kafka's kafka-acls on the same cluster: the same options print the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from shareq import AclBindingFilter, Admin, Cluster, cli
from shareq.kafka import LocalKafka
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER
from tests.kafka.fixtures import Reachable, kafka_or_skip
from tests.polling import eventually
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import ON_BOTH, Beside, printed

SECURED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}

TOPIC = ("--topic", "orders")
ALICE = ("--allow-principal", "User:alice")


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """Apache Kafka with its authorizer."""
    with kafka_or_skip(1, SECURED) as running:
        yield running


@pytest.fixture(scope="module")
def served() -> Iterator[Reachable]:
    with Cluster(brokers=1, clock="wall", config=SECURED) as cluster, cluster.serve() as server:
        yield server


@pytest.fixture
def acls(server: Reachable, java_tools: JavaTools) -> Iterator[Beside]:
    """A cluster without access control lists, in which the tools may do everything."""
    yield Beside(server.bootstrap_servers, java_tools, "acls", "kafka-acls")
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        admin.delete_acls([AclBindingFilter()]).check()
        eventually(lambda: admin.describe_acls(AclBindingFilter()), [])


RULES = (
    *("--add", *TOPIC, "--group", "payments", *ALICE, "--deny-principal", "User:bob", "--deny-host", "10.0.0.1"),
    *("--operation", "Read", "--operation", "describe"),
)


def until_listed(acls: Beside, count: int) -> None:
    """A broker of Apache Kafka gets from its controller what it lists."""
    eventually(lambda: len(acls.objects("--list")), count)


def test_lists_are_added_as_by_kafka(acls: Beside) -> None:
    ours = acls.invoke(*RULES)
    assert acls.invoke("--remove", "--force", *TOPIC, "--group", "payments").stdout == ""
    theirs = acls.java(*RULES)
    assert len(printed(ours).out) == 2 + 8
    assert printed(ours) == printed(theirs)


@ON_BOTH
def test_lists_are_listed_and_removed_as_by_kafka(acls: Beside) -> None:
    assert acls.invoke(*RULES).returncode == 0
    assert (
        acls.invoke("--add", "--resource-pattern-type", "prefixed", "--topic", "ord", *ALICE, "--producer").returncode
        == 0
    )
    until_listed(acls, 8 + 3)
    assert len(acls.same(*RULES)) == 8, "all of them exist already"
    assert len(acls.same("--list", "--resource-pattern-type", "match", *TOPIC)) == 2 + 4 + 3
    assert len(acls.same("--list", "--principal", "User:bob")) == 1 + 2 + 4
    removed = acls.objects("--remove", *RULES[1:], "--force")
    assert len(removed) == 8
    until_listed(acls, 3)
    assert {each["pattern_type"] for each in acls.objects("--list")} == {"PREFIXED"}


@ON_BOTH
def test_roles_are_those_of_kafka(acls: Beside) -> None:
    roles = (
        *("--add", *TOPIC, "--group", "payments", "--transactional-id", "tx", *ALICE),
        *("--producer", "--idempotent", "--consumer"),
    )
    added = acls.objects(*roles)
    assert {each["added"] for each in added} == {True}
    until_listed(acls, len(added))
    assert len(acls.same(*roles)) == 4 + 1 + 2 + 1


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("Y\n", 0), ("yes\n", 1), ("\n", 1), ("", 1)])
def test_a_removal_asks(acls: Beside, answer: str, left: int) -> None:
    acls.invoke("--add", "--cluster", *ALICE)
    asked = acls.invoke("--remove", "--cluster", stdin=answer)
    pattern = "ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)"
    assert asked.stdout == f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)\n", (
        asked.stderr
    )
    assert len(acls.objects("--list")) == left


def test_a_removal_names_the_entries_that_it_asks_about(acls: Beside) -> None:
    asked = acls.invoke("--remove", *TOPIC, *ALICE, "--json", stdin="y\n")
    assert asked.stdout == "[]\n"
    entry = "(principal=User:alice, host=*, operation=ALL, permissionType=ALLOW)"
    assert asked.stderr.startswith(f"Are you sure you want to remove ACLs: \n \t{entry}\n from resource filter `")


def test_a_cluster_without_an_authorizer_is_an_error() -> None:
    with Cluster(brokers=1, clock="wall") as cluster, cluster.serve() as server:
        done = CliRunner().invoke(cli.main, ["acls", "--list", "--bootstrap-server", server.bootstrap_servers])
    assert (done.exit_code, done.stderr) == (1, "Error: SECURITY_DISABLED: No Authorizer is configured.\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([*TOPIC], "one action is needed: --add, --remove, --list"),
        (["--add", "--list"], "only one is possible of --add, --remove, --list"),
        (["--add", *ALICE], "--add needs a resource"),
        (["--remove", "--force"], "--remove needs a resource"),
        (["--remove", "--cluster", "--resource-pattern-type", "prefixed"], "--remove needs a resource"),
        (["--add", *TOPIC], "--add needs --allow-principal or --deny-principal"),
        (["--add", *TOPIC, *ALICE, "--resource-pattern-type", "match"], "needs the --resource-pattern-type literal or"),
        (["--add", *TOPIC, "--allow-principal", "alice"], "'alice' is not a principal"),
        (["--add", *TOPIC, *ALICE, "--operation", "read it"], "--operation read it: is not an operation"),
        (["--add", *TOPIC, *ALICE, "--operation", "any"], "--operation any: is not an operation"),
        (["--add", *TOPIC, *ALICE, "--operation", "ClusterAction"], "CLUSTER_ACTION is not an operation on a TOPIC"),
        (["--add", "--transactional-id", "t", *ALICE, "--operation", "Read"], "which has DESCRIBE, WRITE, TWO_PHASE"),
        (["--add", *TOPIC, *ALICE, "--deny-host", "h"], "--deny-host is possible only with --deny-principal"),
        (["--list", "--operation", "Read"], "--operation is possible only with --add and --remove"),
        (["--remove", *TOPIC, "--operation", "Read"], "only with --allow-principal and --deny-principal"),
        (["--remove", *TOPIC, "--producer"], "--producer is possible only with --allow-principal"),
        (["--add", *TOPIC, *ALICE, "--principal", "User:a"], "--principal is possible only with --list"),
        (["--add", *TOPIC, *ALICE, "--idempotent"], "--idempotent is possible only with --producer"),
        (["--add", *TOPIC, *ALICE, "--producer", "--operation", "Read"], "--producer excludes --operation"),
        (["--add", "--group", "g", *ALICE, "--producer"], "--producer needs --topic"),
        (["--add", *TOPIC, *ALICE, "--consumer"], "--consumer needs --topic and --group"),
        (["--add", *TOPIC, "--group", "g", *ALICE, "--consumer", "--cluster"], "--consumer excludes --cluster"),
    ],
)
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.main, ["acls", *args, "--bootstrap-server", "127.0.0.1:1"])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
