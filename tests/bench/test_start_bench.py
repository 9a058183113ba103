"""How long a tool takes from its start to its end, beside Kafka's tool in Java and Python itself.

    make bench ARGS='-k start_bench'

All ask the same `shareq serve` for its groups or topics; the table has the fastest and the median run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shareq.kafka import tools
from tests.bench.wire_brokers import Serving, _as_installed

ROUNDS = 15
PYTHON = "Python itself"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    running = Serving()
    yield running
    running.stop()


@pytest.mark.parametrize("tool", ["groups", "topics", "kafka-share-groups", "kafka-topics", PYTHON])
def test_list(benchmark: Any, server: Serving, tool: str) -> None:
    """Aim: a fifth of a second."""
    benchmark.group = "start: --list"
    asked = ["--bootstrap-server", server.bootstrap_servers, "--list"]
    if tool == PYTHON:
        command = [sys.executable, "-c", ""]
    elif tool in tools.TOOLS:
        command = tools.command(tool, *asked)
    else:
        command = [str(Path(sys.executable).with_name("shareq")), tool, *asked]
    environment = _as_installed()

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, env=environment)

    benchmark.pedantic(run, rounds=ROUNDS, warmup_rounds=1)
