"""`shareq groups` beside Kafka's kafka-share-groups on the same cluster: the same options print the same."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import cast

import pytest
from click.testing import CliRunner

from shareq import Admin, NewTopic, Producer, ShareConsumer, cli
from shareq.admin.results import Lag, ShareGroupOffset
from shareq.client.topic_partition import TopicPartition
from shareq.tools import reset_plan
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, configure
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import ON_BOTH, Beside, printed

Fresh = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class GroupStage(Beside):
    """A topic of two partitions with records 0 to 4 in each, and a group."""

    group: str
    topic: str

    def same(self, *args: str, about: str = "") -> list[list[str]]:
        """The words of the lines that both print about the group; both have the same heads, too."""
        ours, theirs = self.invoke(*args), self.java(*args)
        assert ours.returncode == 0, ours.stderr
        assert printed(ours, about or self.group) == printed(theirs, about or self.group)
        assert _heads(ours.stdout) == _heads(theirs.stdout)
        return printed(ours, about or self.group).rows

    @property
    def offsets(self) -> dict[int, int | None]:
        """The start offset of each partition of the topic."""
        with Admin({"bootstrap.servers": self.address}) as admin:
            found = admin.list_share_group_offsets(self.group)
            return {place.partition: row.start_offset for place, row in found.items() if place.topic == self.topic}


def _heads(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith(("GROUP", "TOPIC"))]


@pytest.fixture
def stage(server: Reachable, fresh: Fresh, java_tools: JavaTools) -> GroupStage:
    tool = ("groups", "kafka-share-groups")
    made = GroupStage(server.bootstrap_servers, java_tools, *tool, fresh("payments"), fresh("orders"))
    with Admin({"bootstrap.servers": made.address}) as admin:
        admin.create_topics([NewTopic(made.topic, 2, 1)]).check()
        configure(admin, made.group, {"share.auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": made.address, "linger.ms": 0})
    for number in range(10):
        producer.produce(made.topic, f"{number}", partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return made


@pytest.fixture
def member(stage: GroupStage) -> Iterator[ShareConsumer]:
    """A member that has accepted all records."""
    with ShareConsumer({"bootstrap.servers": stage.address, "group.id": stage.group, "client.id": "reader"}) as made:
        made.subscribe([stage.topic])
        left = 10
        while left:
            left -= len(made.poll(1.0))
            made.commit_sync(PATIENCE_S)
        yield made


@pytest.fixture
def left(member: ShareConsumer, stage: GroupStage) -> GroupStage:
    """The stage after its member has left."""
    member.close()
    return stage


# ---- beside Kafka's tool ---------------------------------------------------------------------------------------------


@ON_BOTH
@pytest.mark.usefixtures("member")
def test_a_group_with_a_member_is_listed_and_described_as_by_kafka(stage: GroupStage) -> None:
    group, topic = stage.group, stage.topic
    assert stage.same("--list") == [[group]]
    assert stage.same("--list", "--state") == [[group, "Stable"]]
    assert stage.same("--list", "--state", "Empty,Dead") == []
    describe = ("--describe", "--group", group)
    assert [row[:3] for row in stage.same(*describe)] == [[group, topic, "0"], [group, topic, "1"]]
    assert len(stage.same(*describe, "--offsets", "--verbose")[0]) == 6
    assert stage.same(*describe, "--members")[0][-1] == f"{topic}:0,1"
    assert len(stage.same(*describe, "--members", "--verbose")[0]) == 7
    assert stage.same(*describe, "--state")[0][3:] == ["Stable", "1"]
    assert len(stage.same(*describe, "--state", "--verbose")[0]) == 7


@ON_BOTH
def test_a_group_without_members_is_described_as_by_kafka(left: GroupStage) -> None:
    assert len(left.same("--describe", "--all-groups")) == 2
    left.same("--describe", "--group", left.group, "--members")
    left.same("--describe", "--group", left.group, "--state")


@ON_BOTH
def test_resets_are_planned_as_by_kafka(left: GroupStage) -> None:
    plan = ("--reset-offsets", "--group", left.group, "--dry-run")
    before = left.offsets
    rows = [[left.group, left.topic, "0", "0"], [left.group, left.topic, "1", "0"]]
    assert left.same(*plan, "--topic", left.topic, "--to-earliest") == rows
    assert left.same(*plan, "--all-topics", "--to-latest") == [[*row[:3], "5"] for row in rows]
    assert left.same(*plan, "--topic", f"{left.topic}:1", "--to-datetime", "2001-01-01T00:00:00.000") == rows[1:]
    assert left.offsets == before


@ON_BOTH
def test_offsets_and_groups_are_deleted_as_by_kafka(left: GroupStage) -> None:
    delete = ("--delete-offsets", "--group", left.group, "--topic", left.topic)
    ours = printed(left.invoke(*delete))
    reset(left, "--topic", left.topic, "--to-latest", "--execute")
    assert printed(left.java(*delete)) == ours
    assert left.same("--describe", "--group", left.group) == [
        ["Share", "group", f"'{left.group}'", "has", "no", "offset", "information."]
    ]
    done = left.invoke("--delete", "--group", left.group)
    assert done.stdout == f"Deletion of requested share groups ('{left.group}') was successful.\n"
    assert left.same("--list") == []


# ---- resets ----------------------------------------------------------------------------------------------------------


def reset(stage: GroupStage, *args: str) -> CompletedProcess[str]:
    done = stage.invoke("--reset-offsets", "--group", stage.group, *args)
    assert done.returncode == 0, done.stderr
    return done


@ON_BOTH
@pytest.mark.parametrize(
    ("target", "offset"),
    [
        pytest.param(["--to-earliest"], 0, id="to earliest"),
        pytest.param(["--to-latest"], 5, id="to latest"),
        pytest.param(["--to-offset", "3"], 3, id="to an offset"),
        pytest.param(["--to-offset", "77"], 5, id="to an offset above the end"),
        pytest.param(["--to-offset", "-5"], 0, id="to an offset below the start"),
        pytest.param(["--to-datetime", "2001-01-01T00:00:00+01:00"], 0, id="to a time before the first record"),
        pytest.param(["--to-datetime", "2999-12-31"], 5, id="to a time after the last record"),
    ],
)
def test_offsets_are_reset(stage: GroupStage, target: list[str], offset: int) -> None:
    """A group that does not exist yet is created."""
    reset(stage, "--topic", stage.topic, *target, "--execute")
    assert stage.offsets == {0: offset, 1: offset}


@ON_BOTH
def test_an_exported_plan_can_be_read_again(stage: GroupStage, tmp_path: Path) -> None:
    lines = reset(stage, "--topic", stage.topic, "--to-offset", "3", "--dry-run", "--export").stdout
    assert lines == f"{stage.topic},0,3\n{stage.topic},1,3\n"
    (file := tmp_path / "plan.csv").write_text(lines)
    reset(stage, "--from-file", str(file), "--execute")
    assert stage.offsets == {0: 3, 1: 3}


def test_a_file_for_several_groups_is_read_for_one(stage: GroupStage, tmp_path: Path) -> None:
    (file := tmp_path / "plan.csv").write_text(f"{stage.group},{stage.topic},1,2\nothers,{stage.topic},0,4\n")
    reset(stage, "--from-file", str(file), "--execute")
    assert stage.offsets == {1: 2}


@ON_BOTH
def test_the_present_offsets_are_kept(stage: GroupStage) -> None:
    """A partition that the group does not have gets the end of its log."""
    reset(stage, "--topic", f"{stage.topic}:0", "--to-offset", "2", "--execute")
    reset(stage, "--topic", stage.topic, "--to-current", "--execute")
    assert stage.offsets == {0: 2, 1: 5}


class Stored:
    """An admin client of a group whose partition 1 has no start offset yet."""

    def list_share_group_offsets(self, group: str, *, timeout: float) -> Lag:
        del group, timeout
        rows = [
            ShareGroupOffset(topic="orders", partition=index, start_offset=offset, leader_epoch=0, lag=None)
            for index, offset in ((0, 7), (1, None))
        ]
        return Lag({TopicPartition(row.topic, row.partition): row for row in rows})


def test_a_partition_without_a_start_offset_is_left_as_it_is() -> None:
    zero, one = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert reset_plan.current(cast("Admin", Stored()), "payments", [zero, one], 1.0) == ({zero: 7}, [one])


def test_partitions_without_a_record_after_a_time_are_named(stage: GroupStage) -> None:
    done = reset(stage, "--topic", f"{stage.topic}:1", "--to-datetime", "2999-12-31", "--dry-run")
    assert done.stderr == (
        f"Warn: Partition 1 from topic {stage.topic} has no record at or after this time. "
        "Falling back to the end of the log.\n"
    )


# ---- JSON ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("member")
def test_views_are_printed_as_json(stage: GroupStage) -> None:
    group, topic = stage.group, stage.topic
    assert {"group": group, "state": "Stable"} in stage.objects("--list")
    describe = ("--describe", "--group", group)
    first, second = stage.objects(*describe)
    assert {**first, "leader_epoch": 0, "start_offset": 0, "lag": 0} == {
        "group": group, "topic": topic, "partition": 0, "leader_epoch": 0, "start_offset": 0, "lag": 0
    }  # fmt: skip
    assert second["partition"] == 1
    (reader,) = stage.objects(*describe, "--members")
    assert (reader["client_id"], reader["partitions"], reader["assignment"]) == ("reader", 2, f"{topic}:0,1")
    (state,) = stage.objects(*describe, "--state")
    assert (state["state"], state["members"]) == ("Stable", 1)


def test_results_are_printed_as_json(left: GroupStage) -> None:
    group, topic = left.group, left.topic
    row = {"group": group, "topic": topic, "partition": 1, "new_offset": 5}
    plan = ("--reset-offsets", "--group", group, "--topic", f"{topic}:1", "--to-latest", "--dry-run")
    assert left.objects(*plan) == left.objects(*plan, "--export") == [row]
    assert left.objects("--delete-offsets", "--group", group, "--topic", topic) == [
        {"topic": topic, "status": "Successful"}
    ]
    assert left.objects("--delete", "--group", group) == [{"group": group, "error": None}]


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("member")
def test_a_group_with_members_is_not_changed(stage: GroupStage) -> None:
    refused = f"* Group '{stage.group}' could not be deleted due to: Share group '{stage.group}' is not EMPTY."
    assert refused in stage.failure("--delete", "--group", stage.group)
    options = ("--reset-offsets", "--group", stage.group, "--topic", stage.topic, "--to-latest", "--execute")
    assert f"Share group '{stage.group}' is not empty." in stage.failure(*options)
    assert "NON_EMPTY_GROUP" in stage.failure("--delete-offsets", "--group", stage.group, "--topic", stage.topic)


def test_deletion_goes_on_after_a_failure(left: GroupStage) -> None:
    done = left.invoke("--delete", "--group", "missing", "--group", left.group)
    assert done.returncode == 1
    assert done.stdout == f"These share groups were deleted successfully: '{left.group}'\n"
    assert "* Group 'missing' could not be deleted due to: Group 'missing' is not a share group." in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(["--describe"], "GROUP_ID_NOT_FOUND: Group {group} not found.", id="describe"),
        pytest.param(
            ["--reset-offsets", "--topic", "{topic}-gone", "--to-latest", "--execute"],
            "UNKNOWN_TOPIC_OR_PARTITION",
            id="an unknown topic",
        ),
        pytest.param(
            ["--reset-offsets", "--topic", "{topic}:7", "--to-latest", "--execute"],
            "UNKNOWN_TOPIC_OR_PARTITION",
            id="an unknown partition",
        ),
        pytest.param(
            ["--reset-offsets", "--topic", "{topic}:x", "--to-latest", "--execute"],
            "--topic {topic}:x: must be a topic, or a topic and partitions such as orders:0,1",
            id="no partition",
        ),
        pytest.param(
            ["--reset-offsets", "--topic", "{topic}", "--to-datetime", "soon", "--execute"],
            "--to-datetime soon: must be a time such as 2026-01-31T12:00:00.000",
            id="no time",
        ),
    ],
)
def test_what_does_not_exist_is_refused(stage: GroupStage, args: list[str], message: str) -> None:
    named = {"group": stage.group, "topic": stage.topic}
    failure = stage.failure("--group", stage.group, *(arg.format(**named) for arg in args))
    assert message.format(**named) in failure


@pytest.mark.parametrize("line", ["orders,0", "orders,one,5", "orders,0,five", ",0,5", "a,b,c,d,e"])
def test_a_malformed_file_is_refused(stage: GroupStage, tmp_path: Path, line: str) -> None:
    (file := tmp_path / "plan.csv").write_text(f"{stage.topic},0,1\n{line}\n")
    failure = stage.failure("--reset-offsets", "--group", stage.group, "--from-file", str(file), "--execute")
    assert f"{file}, line 2: {line!r} must be topic,partition,offset" in failure
    assert stage.offsets == {}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "one action is needed: --list, --describe, --delete, --reset-offsets, --delete-offsets"),
        (["--list", "--delete"], "only one is possible of --list, --describe, --delete"),
        (["--describe"], "--describe needs --group or --all-groups"),
        (["--describe", "--group", "g", "--all-groups"], "--describe needs --group or --all-groups"),
        (["--describe", "--group", "g", "--members", "--state"], "only one is possible of --offsets, --members"),
        (["--describe", "--group", "g", "--state", "Empty"], "--describe --state takes no value"),
        (["--list", "--state", "Empty,Busy"], "'busy' must be one of Empty, Stable, Dead"),
        (["--delete"], "--delete needs --group or --all-groups"),
        (["--delete-offsets", "--group", "g"], "--delete-offsets needs --topic"),
        (["--delete-offsets", "--topic", "t"], "--delete-offsets needs one --group"),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest"], "needs --dry-run or --execute"),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--execute"], "--reset-offsets needs a target: --to-e"),
        (["--reset-offsets", "--group", "g", "--execute", "--to-latest"], "needs --topic or --all-topics"),
        (
            ["--reset-offsets", "--group", "g", "--execute", "--from-file", "f", "--all-topics"],
            "--from-file names the partitions",
        ),
        (["--list", "--timeout", "0"], "0 is not in the range x>=1"),
    ],
)
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.main, ["groups", "--bootstrap-server", "127.0.0.1:1", *args])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_closed_port_is_an_error_within_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    done = CliRunner().invoke(cli.main, ["groups", "--bootstrap-server", address, "--list", "--timeout", "500"])
    assert done.exit_code == 1
    assert address in done.stderr


# ---- the configuration of the client ---------------------------------------------------------------------------------


def test_the_client_has_the_properties_of_a_file(stage: GroupStage, tmp_path: Path) -> None:
    (file := tmp_path / "client.properties").write_text("# mine\nclient.id = tool\nrequest.timeout.ms: 0\n")
    failure = stage.failure("--list", "--command-config", str(file))
    assert "request.timeout.ms='0': must be >= 1" in failure


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), ("no property", "not of the form key=value: line 1"), ("colour=blue", '"colour"')],
)
def test_a_bad_configuration_is_refused(stage: GroupStage, tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_text(content)
    failure = stage.failure("--list", "--command-config", str(file))
    assert message in failure
    assert "Traceback" not in failure


SERVER = {"broker", "leader", "coordinator", "persister", "trace", "spark"}


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("groups", SERVER | {"admin", "consumer", "producer"}),
        ("topics", SERVER | {"consumer", "producer"}),
        ("configs", SERVER | {"consumer", "producer"}),
        ("acls", SERVER | {"consumer", "producer"}),
        ("dead_letters", SERVER | {"consumer", "producer"}),
        ("consume", SERVER | {"producer"}),
        ("produce", SERVER | {"consumer"}),
        ("perf.produce", SERVER | {"consumer"}),
        ("perf.consume", SERVER | {"producer"}),
        ("verify", SERVER | {"producer"}),
    ],
)
def test_a_tool_starts_without_brokers_and_actors(module: str, absent: set[str]) -> None:
    """What a start imports is most of its time."""
    program = f"import sys, shareq.tools.{module}; print(*(m for m in sys.modules if m.startswith('shareq.')))"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded}
    assert rooms.isdisjoint(absent)


def test_describe_cluster_names_the_brokers(stage: GroupStage) -> None:
    with Admin({"bootstrap.servers": stage.address}) as admin:
        found = admin.describe_cluster()
    assert [f"{node.host}:{node.port}" for node in found.nodes] == stage.address.split(",")
    assert found.controller in {node.id for node in found.nodes}
