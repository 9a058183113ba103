"""Clients other than shareq's and Java's: how each is installed, and the command that runs its program.

A program produces, consumes in a group, commits and lists groups; `clients/` has one for each library. README.md has a
table of them, with these names and versions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.polling import PATIENCE_S
from tests.rings.processes import PART

CLIENTS = Path(__file__).with_name("clients")


@dataclass(frozen=True)
class Command:
    """A program that is ready to run, and what follows the address and the topic."""

    words: tuple[str, ...]
    more: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def output(self, address: str, topic: str) -> str:
        done = subprocess.run(
            (*self.words, address, topic, *self.more),
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
            env=os.environ | self.environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass(frozen=True)
class Client:
    """A release of a library; `prepare(release, folder)` installs or builds its program in an empty folder.

    `more`: further results of its program.
    """

    name: str
    version: str
    prepare: Callable[[str, Path], Command]
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"


def _installed(*command: str) -> None:
    """Run an installer. If it fails, as without a network, the test is skipped; in a ring it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        assert PART not in os.environ, done.stderr
        pytest.skip(f"{command[0]} failed: {done.stderr[-200:]}")


def _needed(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def _python(name: str) -> Callable[[str, Path], Command]:
    """The program of a library that is in the environment."""
    return lambda release, folder: Command((sys.executable, str(CLIENTS / f"with_{name}.py")))


def _earlier_confluent(release: str, folder: Path) -> Command:
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--target", str(folder))
    _installed(*pip, f"confluent-kafka=={release}")
    return Command((sys.executable, str(CLIENTS / "with_confluent.py")), environment={"PYTHONPATH": str(folder)})


def _kafkajs(release: str, folder: Path) -> Command:
    _needed("npm")
    _installed("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"kafkajs@{release}")
    return Command(("node", str(CLIENTS / "with_kafkajs.js"), str(folder)))


def _go(name: str, *more: str) -> Callable[[str, Path], Command]:
    """The program in a folder of `clients`, built for this run; the last arguments of its command are `more`."""

    def build(release: str, folder: Path) -> Command:
        _needed("go")
        program = str(folder / name)
        _installed("go", "build", "-C", str(CLIENTS / name), "-o", program, ".")
        return Command((program,), more)

    return build


ASSUMED = "4.3.1"
"""The newest version of Kafka that this Sarama knows."""

OTHER_CLIENTS = (
    Client("confluent-kafka", version("confluent-kafka"), _python("confluent")),
    Client("confluent-kafka", "2.6.1", _earlier_confluent),
    Client("confluent-kafka", "2.3.0", _earlier_confluent),
    Client("aiokafka", version("aiokafka"), _python("aiokafka")),
    Client("kafka-python", version("kafka-python"), _python("kafka_python")),
    Client("kafkajs", "2.2.4", _kafkajs, {"end": "4"}),
    Client("kafka-go", "0.4.51", _go("kafka_go")),
    Client("Sarama", "1.61.1", _go("sarama", "")),
    Client("Sarama", f"1.61.1 as Kafka {ASSUMED}", _go("sarama", ASSUMED)),
)
