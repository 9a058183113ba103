"""`shareq verify` beside Kafka's kafka-verifiable-share-consumer, and its verdict."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from shareq import Admin, NewTopic, Producer, cli
from shareq.model.states import AcknowledgeType
from shareq.tools.verify import _Checked
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import ON_BOTH, Beside

Fresh = Callable[[str], str]


@pytest.fixture
def topic(server: Reachable, fresh: Fresh) -> str:
    name = fresh("orders")
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(name, 1, 1)]).check()
    return name


def write(server: Reachable, topic: str, *values: str) -> None:
    with Producer({"bootstrap.servers": server.bootstrap_servers}) as producer:
        for value in values:
            producer.produce(topic, value, "k", 0)
        assert producer.flush(PATIENCE_S) == 0


def events(text: str) -> list[dict[str, Any]]:
    """The lines, without times; offsets in order."""
    found = [json.loads(line) for line in text.splitlines()]
    for event in found:
        assert event.pop("timestamp") > 0
        for part in event.get("partitions", ()):
            part["offsets"].sort()
    return found


def verify(server: Reachable, topic: str, *args: str, code: int = 0) -> list[dict[str, Any]]:
    options = ["verify", "--bootstrap-server", server.bootstrap_servers, "--topic", topic, "--group-id", topic, *args]
    done = CliRunner().invoke(cli.main, options)
    assert done.exit_code == code, done.output
    return events(done.stdout)


@ON_BOTH
def test_events_are_those_of_kafka(server: Reachable, topic: str, java_tools: JavaTools) -> None:
    write(server, topic, "a", "b", "c")
    args = ("--max-messages", "3", "--offset-reset-strategy", "earliest", "--verbose", "--acknowledgement-mode", "sync")
    java = Beside(server.bootstrap_servers, java_tools, "", "kafka-verifiable-share-consumer")
    theirs = java.java("--topic", topic, "--group-id", f"{topic}-b", *args)
    assert verify(server, topic, *args) == events(theirs.stdout)


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
@ON_BOTH
def test_produced_records_are_checked(server: Reachable, topic: str, mode: str) -> None:
    found = verify(server, topic, "--produce", "10", "--acknowledgement-mode", mode)
    assert [event["name"] for event in found[:3]] == [
        "startup_complete",
        "offset_reset_strategy_set",
        "records_produced",
    ]
    assert found[-1] == {
        "name": "verdict", "ok": True, "produced": 10, "delivered": 10, "finished": 10, "deliveredAgain": 0,
        "ackTypeCounts": {"accept": 10},
    }  # fmt: skip


@ON_BOTH
def test_acknowledgements_follow_a_pattern(server: Reachable, topic: str) -> None:
    pattern = ("--ack-pattern", "accept,release,reject,renew", "--acknowledgement-mode", "sync")
    own = ("--command-property", "max.poll.records=4")  # only the consumer takes it
    verdict = verify(server, topic, "--produce", "8", *pattern, *own)[-1]
    assert verdict["ok"] is True
    assert verdict["ackTypeCounts"] == {"accept": 6, "reject": 2, "release": 2, "renew": 2}


def test_records_that_are_not_finished_in_time_fail_the_check(server: Reachable, topic: str) -> None:
    """One poll is not enough for a new group."""
    verdict = verify(server, topic, "--produce", "2", "--timeout-ms", "1", code=1)[-1]
    assert (verdict["ok"], verdict["produced"], verdict["finished"]) == (False, 2, 0)


def test_a_signal_ends_the_command(server: Reachable, topic: str) -> None:
    program = [sys.executable, "-m", "shareq.cli", "verify", "--bootstrap-server", server.bootstrap_servers]
    program += ["--topic", topic, "--group-id", topic, "--offset-reset-strategy", "earliest"]
    write(server, topic, "a")
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while "records_consumed" not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        rest, _ = running.communicate(timeout=PATIENCE_S)
    names = [event["name"] for event in events(rest)]
    assert names[-1] == "shutdown_complete"
    assert "shutdown_requested" in names
    assert running.returncode == 0


def test_a_record_that_comes_after_its_end_fails_the_check() -> None:
    checked = _Checked()
    checked.produced = {(0, 0), (0, 1)}
    assert not checked.delivered((0, 0), 1)
    checked.settled((0, 0), AcknowledgeType.RELEASE)
    assert checked.delivered((0, 0), 2)
    checked.settled((0, 0), AcknowledgeType.ACCEPT)
    assert not checked.complete
    checked.delivered((0, 1), 1)
    checked.settled((0, 1), AcknowledgeType.REJECT)
    assert checked.ok
    checked.delivered((0, 0), 3)
    assert not checked.ok
    assert checked.verdict()["deliveredAgain"] == 1


def test_a_delivery_count_that_falls_fails_the_check() -> None:
    checked = _Checked()
    checked.delivered((0, 0), 2)
    checked.delivered((0, 0), 1)
    assert not checked.ok


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--ack-pattern", "accept"], "--ack-pattern needs --acknowledgement-mode sync or async"),
        (["--ack-pattern", "keep"], "'keep': must be one of accept, release, reject, renew"),
        (["--produce", "1", "--offset-reset-strategy", "latest"], "--produce needs the records from their start"),
        (["--acknowledgement-mode", "never"], "'never' is not one of 'auto', 'sync', 'async'"),
    ],
)
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    needed = ["verify", "--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--group-id", "g"]
    done = CliRunner().invoke(cli.main, [*needed, *args])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
