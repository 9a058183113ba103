"""Clients that speak older versions than librdkafka 2.16: kafkajs and earlier releases of confluent-kafka, each
installed into a folder of its own. In the run of each commit: tests/wire/test_python_clients.py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S
from tests.rings.processes import PART

pytestmark = pytest.mark.long

CLIENTS = Path(__file__).with_name("clients")


def installed(*command: str) -> None:
    """Run an installer. If it fails, as without a network, the test is skipped; in a ring it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        assert PART not in os.environ, done.stderr
        pytest.skip(f"{command[0]} failed: {done.stderr[-200:]}")


def output(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kafkajs(broker: Reachable, fresh: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = str(tmp_path_factory.mktemp("kafkajs"))
    installed("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "kafkajs@2.2.4")
    found = output("node", str(CLIENTS / "with_kafkajs.js"), folder, broker.bootstrap_servers, fresh("js"))
    assert json.loads(found) == {"seen": ["one", "two"], "listed": True, "end": "4"}


@pytest.mark.parametrize("version", ["2.3.0", "2.6.1"])
def test_earlier_confluent_kafka(
    broker: Reachable, fresh: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory, version: str
) -> None:
    folder = str(tmp_path_factory.mktemp("confluent"))
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--target", folder)
    installed(*pip, f"confluent-kafka=={version}")
    program = str(CLIENTS / "with_confluent.py")
    found = output(sys.executable, program, broker.bootstrap_servers, fresh("old"), PYTHONPATH=folder)
    assert found.split() == [version, "one", "two", "2"]
