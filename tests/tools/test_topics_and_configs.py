"""`shareq topics` and `shareq configs` beside Kafka's tools on the same cluster: the same options print the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shareq import Admin, NewTopic, cli
from shareq.admin.results import PartitionDescription, Reassignment, Results, TopicDescription
from shareq.client.topic_partition import TopicPartition
from shareq.kafka import LocalKafka
from shareq.tools.topic_actions import _Topic
from shareq.wire.server import Server
from tests.kafka.fixtures import Reachable
from tests.polling import configure
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import ON_BOTH, Beside

Fresh = Callable[[str], str]


@pytest.fixture
def topics(server: Reachable, java_tools: JavaTools) -> Beside:
    return Beside(server.bootstrap_servers, java_tools, "topics", "kafka-topics")


@pytest.fixture
def configs(server: Reachable, java_tools: JavaTools) -> Beside:
    return Beside(server.bootstrap_servers, java_tools, "configs", "kafka-configs")


@pytest.fixture
def admin(server: Reachable) -> Any:
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as made:
        yield made


# ---- topics beside Kafka's tool --------------------------------------------------------------------------------------


@ON_BOTH
def test_topics_are_described_and_listed_as_by_kafka(topics: Beside, fresh: Fresh) -> None:
    topic = fresh("orders")
    assert topics.invoke("--create", "--topic", topic, "--partitions", "2").stdout == f"Created topic {topic}.\n"
    other = ("--create", "--topic", f"{topic}-b", "--replica-assignment", "0", "--config", "min.insync.replicas=2")
    assert topics.invoke(*other).returncode == 0
    rows = topics.same("--describe", "--topic", f"{topic}.*")
    assert len(rows) == 5
    assert [row[-2:] for row in rows if "Partition:" in row] == [["Elr:", "LastKnownElr:"]] * 3
    assert topics.same("--list", "--topic", f"{topic},{topic}-b") == [[topic], [f"{topic}-b"]]
    (below,) = topics.same("--describe", "--under-min-isr-partitions", about=topic)
    assert below[1] == f"{topic}-b"


def test_topics_are_altered_and_deleted(topics: Beside, admin: Admin, fresh: Fresh) -> None:
    topic = fresh("orders")
    topics.invoke("--create", "--topic", topic)
    assert topics.invoke("--create", "--topic", topic, "--if-not-exists").stdout == ""
    alter = ("--alter", "--topic", topic, "--partitions", "3", "--replica-assignment", "0,0,0")
    assert topics.invoke(*alter).stdout == topics.java("--alter", "--topic", topic, "--partitions", "4").stdout == ""
    (found,) = topics.objects("--describe", "--topic", topic)
    assert (found["topic"], found["partition_count"], len(found["partitions"])) == (topic, 4, 4)
    assert topics.objects("--describe", "--topic-id", found["topic_id"]) == [found]
    assert topics.objects("--delete", "--topic", topic) == [{"topic": topic}]
    assert topics.objects("--list", "--topic", topic) == []
    assert topics.invoke("--delete", "--topic", topic, "--if-exists").returncode == 0
    assert topic not in admin.list_topics()


@ON_BOTH
def test_many_partitions_are_described_in_pages(topics: Beside, admin: Admin, fresh: Fresh) -> None:
    names = [fresh("orders"), fresh("bills")]
    admin.create_topics([NewTopic(name, 5, 1) for name in names]).check()
    whole = admin.describe_partitions(names)
    assert [len(topic.partitions) for topic in whole.values()] == [5, 5]
    assert admin.describe_partitions(names, page_size=3) == whole
    paged = topics.objects("--describe", "--topic", ",".join(names), "--partition-size-limit-per-response", "3")
    assert [len(topic["partitions"]) for topic in paged] == [5, 5]


def test_apache_kafka_describes_replicas_and_their_moves(kafka: LocalKafka, fresh: Fresh) -> None:
    """The APIs that no other test calls there."""
    topic = fresh("orders")
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)]).check()
        partitions = admin.describe_partitions([topic], page_size=1).check()[topic].partitions
        assert [(p.elr, p.last_known_elr) for p in partitions] == [((), ()), ((), ())]
        assert admin.list_partition_reassignments([(topic, 0)]) == {}
        (synonym,) = admin.describe_configs("topic", topic, ["cleanup.policy"])["cleanup.policy"].synonyms
        assert (synonym.name, synonym.source) == ("log.cleanup.policy", "default")


def described(
    partition: PartitionDescription, reassignment: Reassignment | None, *reports: str, overrides: bool = False
) -> dict[str, Any]:
    """A topic with one partition, brokers 1 and 2 alive, and min.insync.replicas 2."""
    entries: Any = {"min.insync.replicas": type("Entry", (), {"value": "2", "source": "default"})}
    options: Any = type("Given", (), {"reports": reports, "overrides_only": overrides})
    topic = TopicDescription(name="t", topic_id="id", internal=False, partitions=(partition,))
    moving = {} if reassignment is None else {TopicPartition("t", 0): reassignment}
    return _Topic(topic, Results(entries), moving, {1, 2}, options).as_object()


def place(leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionDescription:
    return PartitionDescription(partition=0, leader=leader, leader_epoch=0, replicas=replicas, isr=isr)


@pytest.mark.parametrize(
    ("partition", "reports"),
    [
        (place(1, (1, 2), (1, 2)), {"at_min_isr_partitions"}),
        (place(1, (1, 2), (1,)), {"under_replicated_partitions", "under_min_isr_partitions"}),
        (
            place(-1, (1, 2), (2,)),
            {"under_replicated_partitions", "under_min_isr_partitions", "unavailable_partitions"},
        ),
        (place(3, (1, 2, 3), (1, 2, 3)), {"unavailable_partitions"}),
        (place(1, (1, 2, 3), (1, 2)), {"under_replicated_partitions", "at_min_isr_partitions"}),
    ],
)
def test_reports_choose_partitions(partition: PartitionDescription, reports: set[str]) -> None:
    names = (
        "under_replicated_partitions",
        "unavailable_partitions",
        "under_min_isr_partitions",
        "at_min_isr_partitions",
    )
    assert {name for name in names if described(partition, None, name)["partitions"]} == reports
    assert described(partition, None, *names)["partitions"]


def test_replicas_that_a_reassignment_adds_are_not_missing() -> None:
    moving = Reassignment(topic="t", partition=0, replicas=(1, 2), adding_replicas=(2,), removing_replicas=())
    partition = place(1, (1, 2), (1,))
    assert described(partition, moving, "under_replicated_partitions")["partitions"] == []
    found = described(partition, moving)
    assert (found["replication_factor"], found["partitions"][0]["adding_replicas"]) == (1, (2,))


# ---- configs beside Kafka's tool -------------------------------------------------------------------------------------


@ON_BOTH
def test_configurations_are_described_as_by_kafka(configs: Beside, admin: Admin, fresh: Fresh) -> None:
    topic, group = fresh("orders"), fresh("payments")
    admin.create_topics([NewTopic(topic, 1, 1, {"retention.ms": "5000", "cleanup.policy": "compact,delete"})]).check()
    configure(admin, group, {"share.auto.offset.reset": "earliest"})
    assert [row[0] for row in configs.same("--describe", "--topic", topic)][1:] == [
        "cleanup.policy=compact,delete", "retention.ms=5000"
    ]  # fmt: skip
    assert len(configs.same("--describe", "--all", "--entity-type", "brokers", "--entity-name", "0")) > 50
    assert len(configs.same("--describe", "--group", group)) == 2
    assert configs.same("--describe", "--entity-type", "brokers")[0][:2] == ["Default", "configs"]
    assert configs.same("--describe", "--topic", f"{topic}-gone")[0][-3:] == ["have", "dynamic", "config."]


def test_configurations_are_altered(configs: Beside, admin: Admin, fresh: Fresh, tmp_path: Path) -> None:
    topic = fresh("orders")
    admin.create_topics([NewTopic(topic, 1, 1, {"retention.ms": "5000"})]).check()
    alter = ("--alter", "--topic", topic)
    done = f"Completed updating config for topic {topic}.\n"
    both = ("--add-config", "cleanup.policy=[compact,delete],segment.ms=7000", "--delete-config", "retention.ms")
    assert configs.invoke(*alter, *both).stdout == done
    rows = configs.objects("--describe", "--entity-type", "topics", "--entity-name", topic)
    assert {row["name"]: row["value"] for row in rows} == {"cleanup.policy": "compact,delete", "segment.ms": "7000"}
    assert rows[0]["synonyms"][1] == {"name": "log.cleanup.policy", "value": "delete", "source": "DEFAULT_CONFIG"}
    (file := tmp_path / "topic.properties").write_text("segment.ms=8000\nretention.ms = -1\n")
    assert configs.invoke(*alter, "--add-config-file", str(file)).stdout == done
    values = {name: entry.value for name, entry in admin.describe_configs("topic", topic).items()}
    assert (values["segment.ms"], values["retention.ms"]) == ("8000", "-1")


def test_defaults_of_brokers_are_altered(configs: Beside) -> None:
    alter = ("--alter", "--entity-type", "brokers", "--entity-default")
    done = "Completed updating default config for brokers in the cluster.\n"
    assert configs.invoke(*alter, "--add-config", "log.retention.ms=7000").stdout == done
    rows = {row["name"]: row["source"] for row in configs.objects("--describe", "--broker-defaults")}
    assert rows["log.retention.ms"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert configs.invoke(*alter, "--delete-config", "log.retention.ms").stdout == done
    assert "log.retention.ms" not in configs.invoke("--describe", "--broker-defaults").stdout


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        (["topics", "--delete"], ["--topic", "gone"], "Topic 'gone' does not exist as expected"),
        (["topics", "--describe"], ["--topic", "gone"], "Topic 'gone' does not exist as expected"),
        (["topics", "--describe"], ["--topic-id", "gone"], "TopicId 'gone' does not exist as expected"),
        (["topics", "--create"], ["--topic", "x/y"], "INVALID_TOPIC_EXCEPTION"),
        (["topics", "--create"], ["--topic", "x", "--partitions", "0"], "The partitions must be greater than 0"),
        (["topics", "--create"], ["--topic", "x", "--replication-factor", "0"], "must be between 1 and 32767"),
        (["topics", "--create"], ["--topic", "x", "--replication-factor", "3"], "INVALID_REPLICATION_FACTOR"),
        (["configs", "--alter"], ["--topic", "gone", "--add-config", "retention.ms=1"], "UNKNOWN_TOPIC_OR_PARTITION"),
        (["configs", "--alter"], ["--group", "g", "--add-config", "colour=blue"], "INVALID_CONFIG"),
    ],
)
def test_what_cannot_be_done_is_an_error(served: Server, command: list[str], args: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.main, [*command, "--bootstrap-server", served.bootstrap_servers, *args])
    assert done.exit_code == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["topics"], "one action is needed: --list, --describe, --create, --alter, --delete"),
        (["topics", "--create"], "--create needs --topic"),
        (["topics", "--alter", "--topic", "t"], "--alter needs --partitions"),
        (["topics", "--describe", "--if-exists"], "--describe --if-exists needs --topic or --topic-id"),
        (["topics", "--list", "--partitions", "1"], "--partitions is possible only with --create and --alter"),
        (["topics", "--list", "--config", "a=b"], "--config is possible only with --create"),
        (["topics", "--list", "--under-min-isr-partitions"], "is possible only with --describe"),
        (["topics", "--delete", "--topic", "t", "--exclude-internal"], "only with --list and --describe"),
        (["topics", "--create", "--topic", "t", "--config", "a"], 'must be in the format "key=val"'),
        (["topics", "--create", "--topic", "t", "--replica-assignment", "0:0"], "partition 0 has a broker twice"),
        (["topics", "--create", "--topic", "t", "--replica-assignment", "0,1:2"], "a different replication factor"),
        (["topics", "--create", "--topic", "t", "--replica-assignment", "a"], "must be ids of brokers"),
        (["topics", "--create", "--topic", "t", "--replica-assignment", "0", "--partitions", "1"], "excludes"),
        (["topics", "--describe", "--topics-with-overrides", "--at-min-isr-partitions"], "shows no partitions"),
        (["topics", "--alter", "--topic", "t", "--delete-config", "a"], "--delete-config has no effect in Kafka 4"),
        (["configs"], "one action is needed: --alter, --describe"),
        (["configs", "--describe"], "--entity-type must be one of topics, groups, brokers"),
        (["configs", "--describe", "--topic", "t", "--group", "g"], "only one entity is possible"),
        (["configs", "--describe", "--topic", "t", "--entity-name", "g"], "exclude the options of one entity"),
        (["configs", "--describe", "--broker", "one"], "must be the id of a broker, and is 'one'"),
        (["configs", "--describe", "--entity-type", "broker-loggers"], "--describe of broker-loggers needs a name"),
        (["configs", "--describe", "--entity-type", "topics", "--entity-default"], "only with brokers, users, clients"),
        (["configs", "--describe", "--topic", "t", "--add-config", "a=b"], "--describe changes nothing"),
        (["configs", "--alter", "--entity-type", "topics", "--add-config", "a=b"], "--alter of topics needs a name"),
        (["configs", "--alter", "--topic", "t"], "--alter needs --add-config, --add-config-file or --delete-config"),
        (["configs", "--alter", "--topic", "t", "--add-config", "a"], 'must be in the format "key=val"'),
        (
            ["configs", "--alter", "--topic", "t", "--add-config", "a=b", "--add-config-file", "f"],
            "only one is possible",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.main, [*args, "--bootstrap-server", "127.0.0.1:1"])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
