"""The command `shareq`: output, clients that connect, end by signals, errors."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from shareq import Admin, Cluster, Journal
from shareq.cli import main
from shareq.extras import install_command
from shareq.kafka.tools import TOOLS
from shareq.model.events import MemberJoined, TopicCreated
from shareq.model.messages.cluster import MetadataRequest
from shareq.wire.client_examples import client_examples
from tests.polling import PATIENCE_S, QUICK
from tests.wire.certificates import PASSWORD
from tests.wire.raw import Raw
from tests.wire.secured import Vault

INSTALL = install_command("kafka")
ENDS = "shareq has stopped.\n"


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    where = () if "--listener" in arguments else ("--port", "0")
    command = [sys.executable, "-m", "shareq.cli", "serve", *where, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ports(process: subprocess.Popen[str]) -> list[int]:
    """The ports, after the command has printed all that it prints at the start."""
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("shareq serves ")
    for line in process.stdout:
        if line.startswith("Ctrl-C"):
            break
    return [int(address.rpartition(":")[2]) for address in first.split(" at ")[1].split(",")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_serve_runs_until_a_signal(how: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    arguments = ("--brokers", "2", "--topic", "orders:3", "--topic", "letters", "--config", "num.partitions=2")
    with running(*arguments, "--racks", "east,", "--journal", str(file), "-v") as process:
        with Raw(ports(process)[1], client_id="till") as raw:
            seen = raw.ask(MetadataRequest(topics=None))
            assert {topic.name: len(topic.partitions) for topic in seen.topics} == {"orders": 3, "letters": 1}
            assert [broker.rack for broker in seen.brokers] == ["east", None]
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    event, end = out.splitlines(keepends=True)
    assert " -> 1 till Metadata v13 " in event
    assert end == ENDS
    created = [entry.event for entry in Journal.from_jsonl(file).select(TopicCreated)]
    assert [event.topic for event in created if isinstance(event, TopicCreated)] == ["orders", "letters"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--brokers", "0"], r"brokers=0: must be 1..100", id="no brokers"),
        pytest.param(["--racks", "a,b"], r"racks=['a', 'b']: must be 1, one for each broker", id="too many racks"),
        pytest.param(["--port", "70000"], "'--port': 70000 is not in the range 0<=x<=65535", id="port out of range"),
        pytest.param(["--clock", "sundial"], r"'sundial': must be wall, or a factor such as 10", id="unknown clock"),
        pytest.param(["--clock", "0"], r"clock=0.0: must be", id="clock factor 0"),
        pytest.param(
            ["--topic", "orders:many"],
            r"'orders:many': must be name or name:partitions",
            id="partitions that are no number",
        ),
        pytest.param(["--topic", "a/b"], r"topic 'a/b': must be 1 to 249 characters", id="illegal topic name"),
        pytest.param(["--persister", "etcd"], r"persister='etcd': must be one of state-topic", id="unknown persister"),
        pytest.param(["--config", "num.partitions"], r"'num.partitions': must be key=value", id="config without value"),
        pytest.param(["--config", "no.such=1"], r"no.such='1': unknown broker configuration", id="unknown config key"),
        pytest.param(
            ["--journal", "no/such/folder/file"], r"No such file or directory", id="journal in a missing folder"
        ),
    ],
)
def test_invalid_options_are_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["serve", "--port", "0", *arguments])
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_serve_with_tls_and_users(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    users = tmp_path / "users.properties"
    users.write_text(f"# the users\nalice = {PASSWORD}\n")
    files = ("--tls-cert", vault.server.cert, "--tls-key", vault.server.key, "--sasl-users", str(users))
    with running(*files, "--topic", "orders") as process:
        (port,) = ports(process)
        conf = {"bootstrap.servers": f"127.0.0.1:{port}", **vault.client_config("SCRAM-SHA-256")}
        with Admin(conf) as admin:
            assert "orders" in admin.list_topics()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (out, err) == (ENDS, "")


def test_serve_with_several_listeners(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    files = ("--tls-cert", vault.server.cert, "--tls-key", vault.server.key, "--topic", "orders")
    with running("--listener", "PLAINTEXT://127.0.0.1:0", "--listener", "SSL://localhost:0", *files) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert lines[0].startswith("shareq serves 1 broker at 127.0.0.1:")
        assert lines[1].startswith("and at localhost:")
        secured, _, settings = lines[1].removeprefix("and at ").partition(": clients set ")
        assert settings == "security.protocol=ssl\n"
        for conf in (
            {"bootstrap.servers": lines[0].split()[-1]},
            {"bootstrap.servers": secured, **vault.client_config("TLS")},
        ):
            with Admin(conf) as admin:
                assert "orders" in admin.list_topics()


def test_configurations_of_connections_need_a_backend(tmp_path: Path) -> None:
    (file := tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    for option in ("--command-config", "--peer-config"):
        result = CliRunner().invoke(main, ["serve", option, str(file)])
        assert result.exit_code == 2
        assert "--command-config and --peer-config are possible only with --backend" in result.output


def test_listeners_exclude_host_and_port() -> None:
    result = CliRunner().invoke(main, ["serve", "--listener", "PLAINTEXT://127.0.0.1:0", "--port", "0"])
    assert result.exit_code == 2
    assert "--listener names host and port: it excludes --host and --port" in result.output


def test_error_names_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "--port", str(port)])
    assert result.exit_code == 1
    assert result.output == (
        f"Error: port {port} on 127.0.0.1 is in use by another program: stop that program, or choose other ports\n"
    )


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        pytest.param("click", "--help", f"needs the package click: {INSTALL}", id="click"),
        pytest.param("kio", "serve --port 0", f"the package kio is missing: {INSTALL}", id="kio"),
    ],
)
def test_error_of_a_missing_package_has_the_install_command(missing: str, arguments: str, message: str) -> None:
    hidden = f"import sys; sys.modules[{missing!r}] = None; sys.argv[1:] = {arguments.split()}"
    code = f"{hidden}; import shareq.cli; shareq.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_lists_the_commands() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert {"serve", "kafka"} <= set(result.output.split())


def test_example_lines_use_existing_tools() -> None:
    examples = client_examples("127.0.0.1:9092,127.0.0.1:9093")
    assert all("127.0.0.1:9092,127.0.0.1:9093" in lines for lines in examples.values())
    first, *others = next(iter(examples.values())).splitlines()
    assert first.endswith("--add-config share.auto.offset.reset=earliest"), "before the first member joins"
    for line in (first, *others):
        start, _, command = line.rpartition("shareq kafka run ")
        assert start in ("", "echo hello | ")
        assert command.split()[0] in TOOLS


@pytest.mark.parametrize("order", ["consumer first", "producer first"])
def test_python_examples_work_in_any_order(order: str) -> None:
    with Cluster(brokers=1, clock="wall", config=QUICK) as cluster, cluster.serve() as server:
        examples = client_examples(server.bootstrap_servers)
        programs = [
            [sys.executable, "-u", "-c", text] for title, text in examples.items() if title.startswith("Python")
        ]
        consume, produce = programs
        if order == "producer first":
            subprocess.run(produce, check=True, timeout=PATIENCE_S)
        with subprocess.Popen(consume, stdout=subprocess.PIPE, text=True) as consumer:
            try:
                assert cluster.wait(lambda: bool(cluster.journal.select(MemberJoined)), PATIENCE_S)
                if order == "consumer first":
                    subprocess.run(produce, check=True, timeout=PATIENCE_S)
                assert consumer.stdout is not None
                assert consumer.stdout.readline() == "0 0 b'hello'\n"
            finally:
                consumer.kill()
