"""The command as a process: a terminal, signals, pipes, and metrics over HTTP. Docstrings cite BEHAVIOUR.md."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shareq import Admin, Cluster, Producer
from shareq.wire.server import Server
from tests.observer.health.test_command import run
from tests.polling import QUICK, eventually
from tests.wire.raw import quiet_ports

OBSERVE = [sys.executable, "-m", "shareq.cli", "observe"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, clock="wall", config=QUICK) as made:
        yield made


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Server]:
    """A cluster with the group `crew` at offset 0 of three records, without members."""
    cluster.create_topic("orders")
    with cluster.serve(ports=quiet_ports(1)) as server:
        assert isinstance(server, Server)
        add(server, 3)
        with_offset(server)
        yield server


def add(server: Server, count: int) -> None:
    with Producer({"bootstrap.servers": server.bootstrap_servers}) as producer:
        for number in range(count):
            producer.produce("orders", f"{number}")


def with_offset(server: Server) -> None:
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        admin.alter_share_group_offsets("crew", {("orders", 0): 0}).check()


@contextmanager
def observing(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*OBSERVE, *arguments], text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


class Screen:
    """What the command writes to a terminal; `text` is without colours and movements of the cursor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._raw = b""

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._raw.decode(errors="replace"))

    @property
    def redrawn(self) -> bool:
        return b"\x1b[2K" in self._raw

    def read_until(self, pattern: str) -> None:
        """Read on until something matches, and forget all up to its end: one read may hold several matches."""
        while not (found := re.search(pattern, self.text)):
            assert self._read(), f"the command has ended:\n{self.text}"
        self._raw = self.text[found.end() :].encode()

    def read_to_end(self) -> None:
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            more = os.read(self._descriptor, 65536)
        except OSError:  # the other side of a pseudo-terminal is closed
            return False
        self._raw = (self._raw + more)[-65536:]
        return bool(more)


@contextmanager
def on_a_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Screen]]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"}
    with observing(*arguments, stdout=theirs, stderr=subprocess.PIPE, env=environment) as process:
        os.close(theirs)
        try:
            yield process, Screen(ours)
        finally:
            os.close(ours)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_table_is_drawn_anew_until_a_signal(server: Server, how: signal.Signals) -> None:
    """5.4, 5.5."""
    with on_a_terminal(server.bootstrap_servers, "crew", "--interval", "0.1") as (process, screen):
        screen.read_until(r"orders-0 +0 +3 +3 .* unattended")
        add(server, 4)
        screen.read_until(r"orders-0 +0 +7 +7 .* unattended")
        screen.read_until("! crew has no members: 7 records wait since")
        process.send_signal(how)
        screen.read_to_end()
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_table_is_printed_once(server: Server) -> None:
    """5.3, 5.4: nothing is drawn over."""
    with on_a_terminal(server.bootstrap_servers, "crew", "--once") as (process, screen):
        screen.read_to_end()
        assert process.wait() == 0
    assert screen.text.count("orders-0") == 1
    assert not screen.redrawn


def test_a_broker_that_dies_is_shown_until_it_is_back(cluster: Cluster, server: Server) -> None:
    """1.8, 5.1: the old figures stay."""
    ports = [int(server.bootstrap_servers.rpartition(":")[2])]
    with on_a_terminal(server.bootstrap_servers, "crew", "--interval", "0.1") as (process, screen):
        screen.read_until(r"orders-0 +0 +3 +3 ")
        server.close()
        screen.read_until("unreachable since .*: .*does not answer")
        screen.read_until(r"orders-0 +0 +3 +3 ")
        with cluster.serve(ports=ports):
            screen.read_until(r"shareq observe  \S+  \d\d:\d\d:\d\d *\r?\n")
            process.send_signal(signal.SIGINT)
            screen.read_to_end()
            assert process.wait() == 0


def test_a_signal_ends_the_lines(server: Server) -> None:
    """5.4, 5.5: to a pipe."""
    with observing(server.bootstrap_servers, "crew", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert ": SPSO 0, end 3, lag 3, in flight ≥ 0, members 0" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.stderr.read() == ""


def test_the_end_of_the_reader_is_the_end(server: Server) -> None:
    """5.5: as in `shareq observe ... --json | head -1`."""
    arguments = [server.bootstrap_servers, "crew", "--json", "--interval", "0.1"]
    with observing(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith('{"bootstrap_servers":')
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr.read() == ""


def scraped(address: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Metric -> the values of its labels, in the order of their names -> value."""
    with urlopen(address, timeout=30) as response:
        text = response.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for sample in samples:
        found.setdefault(sample.name, {})[tuple(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


def test_metrics_are_served_while_the_command_runs(server: Server) -> None:
    """7.1, 7.3: a broker that dies leaves the observer's own metrics."""
    arguments = [server.bootstrap_servers, "crew", "--json", "--interval", "0.1", "--prometheus", "0"]
    with observing(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        address = process.stderr.readline().removeprefix("metrics at ").strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", address)
        found = scraped(address)
        assert found["shareq_share_group_lag_records"] == {("crew", "0", "orders"): 3}
        assert found["shareq_observe_up"] == {(): 1}
        server.close()
        eventually(lambda: scraped(address)["shareq_observe_up"][()], 0)
        assert "shareq_share_group_lag_records" not in scraped(address)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_exit_codes_over_tcp(server: Server) -> None:
    """5.1."""
    address = server.bootstrap_servers
    assert run(address, "crew", "--once", "--max-lag", "3").exit_code == 0
    assert run(address, "crew", "--once", "--max-lag", "2").exit_code == 1
    server.close()
    result = run(address, "crew", "--once")
    assert (result.exit_code, result.stdout) == (2, "")
    assert address in result.stderr
