"""Runs a command on two brokers and compares the output."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer, ShareConsumer

from shareq import Admin, NewTopic, cli
from tests.polling import PATIENCE_S, configure
from tests.tools.java_tools import JavaTools

# Parts of the output that differ between two clusters, or between two runs on one.
_ACCIDENTS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"(?<= )\S{22}(?= /127\.0\.0\.1)"), "UUID"),  # librdkafka's member ids
    (re.compile(r"(?<=TopicId: )\S{22}"), "ID"),
    (re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[,:.]\d{3}\]?"), "TIME"),
    (re.compile(r"(?m)^ *streams\..*\n"), ""),  # configurations of streams groups, which shareq does not offer
    (re.compile(r"(?m)^ *(group\.type|errors\.deadletterqueue\.unavailable)=.*\n"), ""),  # keys that only shareq has
    (re.compile(r"(?m)^\s+at .*\n"), ""),
    # Of two runs in one JVM, the logger of either may not be configured yet.
    (re.compile(r"(?m)^TIME (?:WARN|ERROR) .*\n?(?:^[\w.]+Exception.*\n?)*"), ""),
    (re.compile(r" +"), " "),  # columns are as wide as the longest value
)

ON_BOTH = pytest.mark.parametrize("server", ["served", "kafka"], ids=["shareq", "apache-kafka"], indirect=True)
"""Runs a test on a cluster of shareq, and on Apache Kafka."""

_EXCEPTION = re.compile(r"\b[A-Z]\w+Exception\b")


@dataclass(frozen=True, slots=True)
class Printed:
    """Output of a tool without accidental differences, lines sorted because tools print hash maps in any order."""

    code: int
    out: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def rows(self) -> list[list[str]]:
        """The words of each output line."""
        return [line.split() for line in self.out]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Runs each command on shareq's cluster (`ours`) and on Apache Kafka (`apache`), or one that is its equal."""

    ours: str
    apache: str
    tools: JavaTools

    def run(self, tool: str, *args: str, stdin: str = "", about: str = "") -> Printed:
        """Run a tool on both, assert that the output is equal, and return it; `about` selects lines that contain it."""
        ours, apache = (printed(done, about) for done in self.run_each(tool, *args, stdin=stdin))
        assert ours == apache, f"{tool} {' '.join(args)}\n    ours {ours}\n  apache {apache}"
        return ours

    def run_each(self, tool: str, *args: str, stdin: str = "") -> tuple[subprocess.CompletedProcess[str], ...]:
        """Run a tool on both at the same time."""
        with ThreadPoolExecutor(2) as pool:
            return tuple(pool.map(lambda address: self._run(tool, address, args, stdin), (self.ours, self.apache)))

    def _run(self, tool: str, address: str, args: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
        return self.tools.run(tool, "--bootstrap-server", address, *args, stdin=stdin)

    def refuse(self, tool: str, *args: str, error: str) -> None:
        """Run a tool on both, and assert that both refuse it with `error` and the same exceptions."""
        ours, apache = self.run_each(tool, *args)
        assert ours.returncode == apache.returncode, f"{tool} {' '.join(args)}"
        output, apache_output = ours.stdout + ours.stderr, apache.stdout + apache.stderr
        assert error in apache_output
        assert error in output
        assert set(_EXCEPTION.findall(output)) == set(_EXCEPTION.findall(apache_output))

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic in both clusters with shareq's admin client."""
        for address in (self.ours, self.apache):
            with Admin({"bootstrap.servers": address}) as admin:
                admin.create_topics([NewTopic(topic, partitions, 1)]).check()

    def start_at_earliest(self, group: str) -> None:
        """Configure the group to start at the earliest offset in both clusters."""
        for address in (self.ours, self.apache):
            with Admin({"bootstrap.servers": address}) as admin:
                configure(admin, group, {"share.auto.offset.reset": "earliest"})

    def produce(self, topic: str, *values: str) -> None:
        """Produce records to both clusters with shareq's producer."""
        for address in (self.ours, self.apache):
            producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
            for value in values:
                producer.produce(topic, value, partition=0)
            assert producer.flush(PATIENCE_S) == 0

    @contextmanager
    def members(self, group: str, topic: str) -> Iterator[None]:
        """A member in the group of both clusters that has accepted every record of the topic so far."""
        with ExitStack() as closing:
            for address in (self.ours, self.apache):
                config = {"bootstrap.servers": address, "group.id": group, "client.id": "reader"}
                consumer = ShareConsumer(config)
                closing.callback(consumer.close)
                consumer.subscribe([topic])
                while not consumer.poll(1.0):
                    pass
                consumer.commit_sync(PATIENCE_S)
            yield


@dataclass(frozen=True, slots=True)
class Beside:
    """A command of shareq and the Java tool with the same options, on one cluster."""

    address: str
    tools: JavaTools
    command: str
    tool: str

    def java(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self.tools.run(self.tool, "--bootstrap-server", self.address, *args, stdin=stdin)

    def invoke(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command of shareq."""
        options = [self.command, "--bootstrap-server", self.address, *args]
        done = CliRunner().invoke(cli.main, options, input=stdin)
        return subprocess.CompletedProcess(args, done.exit_code, done.stdout, done.stderr)

    def same(self, *args: str, about: str = "") -> list[list[str]]:
        """The words of the output lines that contain `about`, which must be those of Java's tool."""
        ours = self.invoke(*args)
        assert ours.returncode == 0, ours.stderr
        assert printed(ours, about) == printed(self.java(*args), about)
        return printed(ours, about).rows

    def objects(self, *args: str) -> list[dict[str, Any]]:
        """The output with --json."""
        done = self.invoke(*args, "--json")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def failure(self, *args: str, code: int = 1) -> str:
        done = self.invoke(*args)
        assert done.returncode == code, done.stdout
        assert "Traceback" not in done.stderr
        return done.stderr


def printed(done: subprocess.CompletedProcess[str], about: str = "") -> Printed:
    return Printed(done.returncode, _lines(done.stdout, about), _lines(done.stderr, about))


def _lines(text: str, about: str) -> tuple[str, ...]:
    for accident, stands_for in _ACCIDENTS:
        text = accident.sub(stands_for, text)
    return tuple(sorted(line.strip() for line in text.splitlines() if line.strip() and about in line))
