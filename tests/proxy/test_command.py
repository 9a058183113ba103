"""The command `shareq tap`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from shareq import Cluster, Journal, ShareConsumer
from shareq.cli import main
from shareq.model.events import MemberJoined
from tests.polling import QUICK, eventually


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_tap_journals_until_a_signal(how: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    with Cluster(brokers=2, clock="wall", config=QUICK) as cluster, cluster.serve() as server:
        cluster.create_topic("orders")
        command = [sys.executable, "-m", "shareq.cli", "tap", server.bootstrap_servers, "--port", "0"]
        with subprocess.Popen([*command, "--journal", str(file)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                first = process.stdout.readline().strip()
                before, _, address = first.partition(" at ")
                assert before == f"shareq taps {server.bootstrap_servers}"
                assert len(address.split(",")) == 2
                with ShareConsumer({"bootstrap.servers": address, "group.id": "g", "client.id": "anna"}) as anna:
                    anna.subscribe(["orders"])
                    eventually(lambda: (anna.poll(0.1), '"MemberJoined"' in file.read_text())[1], True)
                process.send_signal(how)
                assert process.stdout.read().endswith("shareq has stopped.\n")
                assert process.wait() == 0
            finally:
                process.kill()
    (joined,) = [entry.event for entry in Journal.from_jsonl(file).select(MemberJoined)]
    assert isinstance(joined, MemberJoined)
    assert (joined.group_id, joined.client_id) == ("g", "anna")


def test_tap_shows_its_journal_until_a_signal(tmp_path: Path) -> None:
    """The page waits for the first group, and ends with the tap."""
    with Cluster(brokers=1, clock="wall", config=QUICK) as cluster, cluster.serve() as server:
        cluster.create_topic("orders")
        command = [sys.executable, "-m", "shareq.cli", "tap", server.bootstrap_servers, "--port", "0"]
        with subprocess.Popen([*command, "--show", "--no-browser"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                address = process.stdout.readline().strip().partition(" at ")[2]
                with ShareConsumer({"bootstrap.servers": address, "group.id": "g", "client.id": "anna"}) as anna:
                    anna.subscribe(["orders"])
                    with ThreadPoolExecutor(1) as pool:
                        shown = pool.submit(_until, process.stdout, "shareq shows")
                        while not shown.done():
                            anna.poll(0.1)
                before, line = shown.result()
                assert before.count("Ctrl-C stops it.\n") == 1
                assert line.startswith(f"shareq shows group g, orders-0 of {address} at http://127.0.0.1:")
                page = line.rpartition(" at ")[2].strip()
                port = int(page.rstrip("/").rpartition(":")[2])
                socket.create_connection(("127.0.0.1", port)).close()
                process.send_signal(signal.SIGINT)
                assert process.stdout.read() == "shareq has stopped.\n"
                assert process.wait() == 0
            finally:
                process.terminate()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def _until(lines: Iterable[str], words: str) -> tuple[str, str]:
    """The next line with these words, after those before it."""
    before = ""
    for line in lines:
        if words in line:
            return before, line
        before += line
    return before, ""


def test_tap_shows_nothing_of_brokers_with_a_login(tmp_path: Path) -> None:
    """The page's clients have no login."""
    (tmp_path / "client.properties").write_text("security.protocol=SASL_PLAINTEXT\n")
    arguments = ["tap", "127.0.0.1:1", "--show", "--command-config", str(tmp_path / "client.properties")]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, "--show has no login" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["nowhere"], "'nowhere' is not host:port", id="no address"),
        pytest.param(["127.0.0.1:{closed}"], "no Kafka at 127.0.0.1:{closed} answers", id="no Kafka"),
        pytest.param(["{open}", "--port", "65535"], "ports=65535: the first of 3 ports must be 1..65533", id="port"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], message: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    with Cluster(clock="wall") as cluster, cluster.serve() as server:
        words = {"closed": closed, "open": server.bootstrap_servers}
        result = CliRunner().invoke(main, ["tap", *(argument.format(**words) for argument in arguments)])
    assert result.exit_code == 1
    assert message.format(**words) in result.output
    assert "Traceback" not in result.output
