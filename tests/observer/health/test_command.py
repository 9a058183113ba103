"""The command `shareq observe`: exit codes, lines and JSON, mostly on virtual time; ids cite BEHAVIOUR.md."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shareq.cli import main
from shareq.model.errors import Errors
from shareq.model.messages.share_group import ShareGroupDescribeRequest
from shareq.observer.health import report as reports
from shareq.observer.health.command import EXCEEDED, FINE, REFUSED
from shareq.observer.health.lines import Lines
from tests.observer.fake_cluster import FakeCluster
from tests.observer.health.stage import ClusterStage, finish
from tests.observer.health.test_judge import Look, judged


@pytest.fixture
def stage() -> Iterator[ClusterStage]:
    """`crew` has finished 4 of 10 records 10 minutes ago and left; `idle` has finished all, and its member waits."""
    made = ClusterStage()
    made.cluster.create_topic("orders")
    made.produce("orders", 10)
    with made.consumer() as anna:
        finish(anna, anna.poll(60)[:4])
    made.configure("idle")
    ben = made.consumer("ben", "idle")
    finish(ben, ben.poll(60))
    for _ in range(3):
        made.cluster.advance(200_000)
        assert not ben.poll(0)
    yield made
    made.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["observe", *arguments])


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


# ---- exit codes ------------------------------------------------------------------------------------------------------

CODES = [
    pytest.param(["idle"], FINE, "", id="5.1 idle"),
    pytest.param(["crew"], FINE, "", id="5.1 no limit"),
    pytest.param(["idle", "--max-lag", "0", "--stuck-for", "0"], FINE, "", id="5.1 idle, the strictest limits"),
    pytest.param(["crew", "--max-lag", "6"], FINE, "", id="5.2 lag at the limit"),
    pytest.param(["crew", "idle", "--max-lag", "5"], EXCEEDED, "crew: the lag of 6 records is above 5\n", id="5.2 lag"),
    pytest.param(["--all", "--max-lag", "5"], EXCEEDED, "crew: the lag of 6 records is above 5\n", id="5.2 all groups"),
    pytest.param(["crew", "--stuck-for", "600"], EXCEEDED,
                 "crew orders-0: records wait, and nothing has moved for 605 s (limit: 600 s)\n",
                 id="5.2 known at once"),
    pytest.param(["crew", "--stuck-for", "700"], FINE, "", id="5.3 known to be shorter at once"),
    pytest.param(["none"], REFUSED, "Error: no such share group at {address}: none\n", id="5.1 no such group"),
    pytest.param(["idle", "none", "nil"], REFUSED, "Error: no such share group at {address}: nil, none\n",
                 id="5.1 two of three do not exist"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "text"), CODES)
def test_exit_codes_of_one_report(stage: ClusterStage, arguments: list[str], code: int, text: str) -> None:
    before_ms = stage.cluster.now_ms
    result = run(stage.address, "--once", *arguments)
    assert (result.exit_code, result.stderr) == (code, text.format(address=stage.address))
    assert bool(result.stdout) == (code != REFUSED)
    assert stage.cluster.now_ms - before_ms < 1000


def test_once_waits_until_it_is_certain(stage: ClusterStage) -> None:
    """5.3: a record that came before the first poll, at a time that no broker has stored."""
    stage.produce("orders", 1)
    before_ms = stage.cluster.now_ms
    result = run(stage.address, "idle", "--once", "--stuck-for", "60")
    assert result.exit_code == EXCEEDED
    assert "idle orders-0: records wait, and nothing has moved for 60 s" in result.stderr
    assert stage.cluster.now_ms - before_ms >= 60_000


def test_without_once_a_limit_ends_the_command(stage: ClusterStage) -> None:
    """5.1, 5.4: one line for each change until then. The member got the record and did not acknowledge it."""
    stage.produce("orders", 1)
    result = run(stage.address, "idle", "--stuck-for", "90", "--interval", "5")
    assert result.exit_code == EXCEEDED
    found = [without_times(line[9:]) for line in result.stdout.splitlines()]
    assert found == [
        "idle orders-0 waiting: SPSO 10, end 11, lag 1, in flight ≥ 0, members 1",
        "idle orders-0 waiting: SPSO 10, end 11, lag 1, in flight 1, members 1",
        "idle orders-0 stuck: SPSO 10, end 11, lag 1, in flight 1, members 1",
        "! idle orders-0: the window is stuck on offset 10: it was returned after delivery 1",
        "! idle orders-0: the state does not move; offset 10 waits: it was returned after delivery 1",
    ]


WRONG = [
    pytest.param([], "Missing argument 'BOOTSTRAP'", id="5.1 nothing"),
    pytest.param(["{address}"], "name one or more groups, or give --all", id="5.1 no group"),
    pytest.param(["{address}", "crew", "--all"], "name one or more groups, or give --all", id="5.1 both"),
    pytest.param(["nowhere", "crew"], "'nowhere' is not host:port", id="5.1 no address"),
    pytest.param(["inproc://nowhere", "crew"], "no cluster is running at inproc://nowhere", id="5.1 no cluster"),
    pytest.param(["{address}", ""], "groups=('',): must be one or more non-empty names", id="5.1 an empty name"),
    pytest.param(["{address}", "crew", "--interval", "0.05"], "0.05 is not in the range x>=0.1", id="5.1 interval"),
    pytest.param(["{address}", "crew", "--max-lag", "-1"], "-1 is not in the range x>=0", id="5.2 lag"),
    pytest.param(["{address}", "crew", "--stuck-for", "-1"], "-1.0 is not in the range x>=0", id="5.2 time"),
    pytest.param(
        ["{address}", "crew", "--prometheus", "70000"], "70000 is not in the range 0<=x<=65535", id="5.1 port"
    ),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments(stage: ClusterStage, arguments: list[str], message: str) -> None:
    result = run(*(argument.format(address=stage.address) for argument in arguments))
    assert (result.exit_code, result.stdout) == (REFUSED, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_that_is_taken(stage: ClusterStage) -> None:
    from socket import create_server

    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(stage.address, "crew", "--once", "--prometheus", str(port))
    assert result.exit_code == REFUSED
    assert f"--prometheus {port}: cannot serve metrics at 127.0.0.1:{port}: Address already in use" in result.stderr


def test_a_cluster_without_share_groups() -> None:
    """5.1: such as Kafka 3.9."""
    fake = FakeCluster()
    fake.answers[ShareGroupDescribeRequest] = lambda *_: Errors.UNSUPPORTED_VERSION
    result = run(fake.address, "crew")
    assert result.exit_code == REFUSED
    assert f"Error: {fake.address} has no share groups: " in result.stderr
    assert "; Kafka 4.2 or later is needed, with share.version=1" in result.stderr


def test_a_cluster_that_does_not_answer() -> None:
    """5.1."""
    fake = FakeCluster()
    fake.silent = True
    result = run(fake.address, "crew")
    assert result.exit_code == REFUSED
    assert f"Error: {fake.address} is unreachable: the cluster does not answer" in result.stderr


def test_a_group_that_must_not_be_read() -> None:
    """5.3: after a few polls, in case its coordinator is about to load."""
    fake = FakeCluster()
    fake.wrong[ShareGroupDescribeRequest] = Errors.GROUP_AUTHORIZATION_FAILED
    result = run(fake.address, "g", "--once")
    assert result.exit_code == REFUSED
    assert " · g cannot be read since " in result.stdout
    assert len(fake.requests(ShareGroupDescribeRequest)) == 4


def test_a_coordinator_that_loads_at_the_start() -> None:
    """5.1."""
    fake = FakeCluster()
    answers = iter([Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NONE])
    describe = fake.answers[ShareGroupDescribeRequest]

    def loading(cluster: Any, node: int, request: Any) -> Any:
        fake.wrong[ShareGroupDescribeRequest] = next(answers)
        return describe(cluster, node, request)

    fake.answers[ShareGroupDescribeRequest] = loading
    assert run(fake.address, "g", "--once").exit_code == FINE


def test_a_missing_package_is_named(stage: ClusterStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    result = run(stage.address, "crew", "--once", "--prometheus", "0")
    assert result.exit_code == REFUSED
    assert "Error: the package prometheus_client is missing: pip install" in result.stderr


# ---- output ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("charset", ["cp1252", "cp437", "latin-1"])
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "json"])
def test_names_that_the_output_cannot_encode(stage: ClusterStage, charset: str, options: list[str]) -> None:
    """5.1: a code page of Windows is no reason to end, let alone with the code of a limit; later groups are shown."""
    for group in ("日本語", "水"):
        stage.configure(group)
        stage.consumer(group, group).poll(0)
    result = CliRunner(charset=charset).invoke(main, ["observe", stage.address, "--all", "--once", *options])
    assert (result.exit_code, result.exception) == (FINE, None)
    assert r"\u65e5\u672c\u8a9e" in result.stdout
    assert r"\u6c34" in result.stdout
    refused = CliRunner(charset=charset).invoke(main, ["observe", stage.address, "日本", "--once"])
    assert (refused.exit_code, type(refused.exception)) == (REFUSED, SystemExit)


def test_an_unexpected_error_has_not_the_exit_code_of_a_limit(
    stage: ClusterStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lines, "show", lambda *_: 1 // 0)
    result = run(stage.address, "crew", "--once")
    assert (result.exit_code, "ZeroDivisionError" in result.stderr) == (REFUSED, True)


def test_a_group_id_does_not_steer_the_terminal(stage: ClusterStage) -> None:
    """A line feed makes no second line, and an escape sequence is written as text."""
    stage.configure("a\x1b[31m\nb")
    stage.consumer("anna", "a\x1b[31m\nb").poll(0)
    shown = [line for line in run(stage.address, "--all", "--once").stdout.splitlines() if "\\x1b" in line]
    assert any(r" a\x1b[31m\nb orders-0 " in line for line in shown)
    assert all("orders-0" in line for line in shown)


def test_one_json_object_for_each_poll(stage: ClusterStage) -> None:
    """5.4, 6.1: the last one is that at which the limit is exceeded."""
    stage.produce("orders", 1)
    result = run(stage.address, "idle", "--json", "--stuck-for", "20", "--interval", "4")
    found = objects(result)
    assert len(found) == 6
    assert all(one["time_ms"] < other["time_ms"] for one, other in pairwise(found))
    (group,) = found[-1]["groups"]
    (partition,) = group["partitions"]
    assert (group["group"], group["verdict"], group["lag_records"], group["members"]) == ("idle", "waiting", 1, 1)
    assert (partition["start_offset"], partition["end_offset"], partition["since_ms"]) == (10, 11, found[0]["time_ms"])


def test_lines_for_one_report(stage: ClusterStage) -> None:
    """5.4."""
    result = run(stage.address, "--all", "--once")
    crew, sentence, idle = (line[9:] for line in result.stdout.splitlines())
    assert without_times(crew) == "crew orders-0 unattended: SPSO 4, end 10, lag 6, in flight 6, members 0"
    assert sentence.startswith("! crew has no members: 6 records wait since ")
    assert idle == "idle orders-0 idle: SPSO 10, end 10, lag 0, in flight 0, members 1"


def lines(looks: list[Look]) -> list[str]:
    """What is printed for the last reading, without the times."""
    printer = Lines()
    for number in range(1, len(looks) + 1):
        last = list(printer.of(judged(looks[:number])))
    return [line[9:] for line in last]


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([Look(0, 60), Look(5, 60)], [], id="5.4 nothing has changed"),
        pytest.param([Look(0, 10, head=(10, -5)), Look(5, 10, head=(10, -5))], [], id="5.4 only an age has changed"),
        pytest.param(
            [Look(0, 60), Look(5, 60, 61, head=(60, 4))],
            ["crew orders-0 waiting: SPSO 60, end 61, lag 1, in flight ≥ 0, members 1"],
            id="5.4 a new record",
        ),
        pytest.param(
            [Look(0, 60), Look(5, None, None, members=None, trouble="no answer")],
            ["crew orders-0 unknown: SPSO ?, end ?, lag ?, in flight ?, members ?",
             "· crew cannot be read: no answer"],
            id="5.4 unknown figures",
        ),
    ],
)  # fmt: skip
def test_lines_are_printed_where_something_has_changed(looks: list[Look], expected: list[str]) -> None:
    assert [without_times(line) for line in lines(looks)] == expected


def without_times(line: str) -> str:
    """A line without times of day, which depend on the time zone, and without durations."""
    return re.sub(r" since \d\d:\d\d:\d\d( \(.*?\))?|, oldest unfinished .*", "", line)


def test_a_group_without_partitions_has_a_line() -> None:
    """5.4: when it changes."""
    printer = Lines()
    empty = [Look(0, exists=False, members=None), Look(5, exists=False, members=None)]
    first, *_ = list(printer.of(judged(empty[:1])))
    assert first[9:] == "crew unknown: no partitions, members ?"
    assert list(printer.of(judged(empty))) == []


def test_lines_say_that_the_cluster_is_away_and_back() -> None:
    """1.8, 5.4."""
    printer = Lines()
    report = judged([Look(0, 60)])
    list(printer.of(report))
    lost = report._replace(trouble="the cluster does not answer", unreachable_since_ms=report.time_ms)
    assert [line[9:] for line in printer.of(lost)] == ["the cluster does not answer"]
    assert list(printer.of(lost)) == []
    assert [line[9:] for line in printer.of(report)] == ["the cluster answers again"]


@pytest.mark.parametrize(("option", "head"), [("--alerts", "# Example rules for Prometheus"), ("--dashboard", "{\n")])
def test_examples_are_printed_without_a_cluster(option: str, head: str) -> None:
    result = run(option)
    assert result.exit_code == FINE
    assert result.stdout.startswith(head)


def test_help_names_the_exit_codes() -> None:
    text = " ".join(run("--help").stdout.split())
    assert "Exit codes: 0 if no limit is exceeded, 1 if one is (at once), 2 for bad usage and for a cluster" in text


def test_kinds_of_diagnoses_that_alarm_are_kinds() -> None:
    assert set(reports.Kind) >= reports.ALARMS
    assert list(reports.URGENCY) == list(reports.Verdict)
