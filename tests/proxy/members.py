"""Share consumers of three kinds of client behind one interface: shareq's, confluent-kafka's and Java's.

`open_member(...)` makes one, which polls and acknowledges explicitly. A member reports the results of its
acknowledgements as the client's own callback receives them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import pyspark

from shareq import AcknowledgeType, ShareConsumer
from shareq.kafka.broker_process import KafkaCommand
from tests.polling import take

ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW
)  # fmt: skip
MAX_POLL_RECORDS = 7


class Got(NamedTuple):
    partition: int
    offset: int
    delivery_count: int


class Result(NamedTuple):
    """The broker's answer to the acknowledgement of a record; `error` is the name of an error code."""

    partition: int
    offset: int
    error: str


class Member(Protocol):
    def poll(self, timeout_s: float) -> list[Got]: ...
    def acknowledge(self, record: Got, kind: AcknowledgeType) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...
    def results(self) -> list[Result]:
        """The results since the last call."""
        ...


class Client(Protocol):
    """One kind of client."""

    @property
    def kinds(self) -> tuple[AcknowledgeType, ...]:
        """The types of acknowledgement that it knows."""
        ...

    @property
    def acknowledges_copies(self) -> bool:
        """True if a poll can return two deliveries of one record and go on when both are acknowledged."""
        ...

    def open(self, name: str, servers: str, group: str, topic: str) -> Member: ...


def accept(member: Member, count: int = 1) -> list[Got]:
    """Accept the next records of the member until there are `count`; returns them."""
    found: list[Got] = []
    while len(found) < count:
        records = take(member, 1)
        for record in records:
            member.acknowledge(record, ACCEPT)
        member.commit()
        found += records
    return found


# ---- clients in this process -----------------------------------------------------------------------------------------


class _PythonMember:
    """A share consumer with confluent-kafka's interface. `types`: its library's acknowledge types."""

    def __init__(self, make: Any, types: Any, conf: dict[str, object], topic: str) -> None:
        self._types = types
        self._messages: dict[tuple[int, int], Any] = {}
        self._results: list[Result] = []
        self._consumer = make({**conf, "max.poll.records": MAX_POLL_RECORDS})
        self._consumer.set_acknowledgement_commit_callback(self._report)
        self._consumer.subscribe([topic])

    def poll(self, timeout_s: float) -> list[Got]:
        messages = [message for message in self._consumer.poll(timeout_s) if not message.error()]
        self._messages = {(message.partition(), message.offset()): message for message in messages}
        return [Got(message.partition(), message.offset(), message.delivery_count()) for message in messages]

    def acknowledge(self, record: Got, kind: AcknowledgeType) -> None:
        self._consumer.acknowledge(self._messages[record[:2]], getattr(self._types, kind.name))

    def commit(self) -> None:
        self._consumer.commit_sync()

    def close(self) -> None:
        self._consumer.close()

    def results(self) -> list[Result]:
        found, self._results = self._results, []
        return found

    def _report(self, offsets: Any, problem: Any) -> None:
        error = "NONE" if problem is None else problem.args[0].name()
        self._results += [Result(at.partition, offset, error) for at, found in offsets.items() for offset in found]


class Shareq:
    kinds = (ACCEPT, RELEASE, REJECT, RENEW)
    acknowledges_copies = True

    def open(self, name: str, servers: str, group: str, topic: str) -> Member:
        return _PythonMember(ShareConsumer, AcknowledgeType, _conf(name, servers, group), topic)


class Confluent:
    kinds = (ACCEPT, RELEASE, REJECT)
    acknowledges_copies = True

    def open(self, name: str, servers: str, group: str, topic: str) -> Member:
        types: Any = confluent_kafka.AcknowledgeType
        return _PythonMember(confluent_kafka.ShareConsumer, types, _conf(name, servers, group), topic)


def _conf(name: str, servers: str, group: str) -> dict[str, object]:
    named = {"bootstrap.servers": servers, "group.id": group, "client.id": name}
    return {**named, "share.acknowledgement.mode": "explicit"}


# ---- Java ------------------------------------------------------------------------------------------------------------


class JavaError(AssertionError):
    """A call has thrown an exception."""


class Java:
    """The consumers of one Java process, which runs ShareMembers.java.

    KafkaShareConsumer returns a renewed record beside a newer delivery of it, if the lock has run out in its buffer. It
    counts acknowledgements by offset, so one of the two stays unacknowledged, and the next poll raises
    IllegalStateException.
    """

    kinds = (ACCEPT, RELEASE, REJECT, RENEW)
    acknowledges_copies = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def open(
        self, name: str, servers: str, group: str, topic: str, max_poll_records: int = MAX_POLL_RECORDS
    ) -> JavaMember:
        self.ask("open", name, servers, group, topic, max_poll_records)
        return JavaMember(self, name)

    def ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("> "):
                if line.startswith("> !"):
                    raise JavaError(f"{words}: {line}")
                return line[2:]
        raise AssertionError(f"Java has ended with {self._process.wait()}")


class JavaMember:
    def __init__(self, java: Java, name: str) -> None:
        self._java, self._name = java, name

    def poll(self, timeout_s: float) -> list[Got]:
        found = self._java.ask("poll", self._name, int(timeout_s * 1000)).split()
        return [Got(*map(int, record.split(":"))) for record in found]

    def acknowledge(self, record: Got, kind: AcknowledgeType) -> None:
        self._java.ask("acknowledge", self._name, f"{record.partition}:{record.offset}", kind.name)

    def commit(self) -> None:
        self.commit_sync()

    def commit_sync(self) -> dict[int, str]:
        """The name of the error code of each partition."""
        found = [result.split(":") for result in self._java.ask("commit", self._name).split()]
        return {int(partition): error for partition, error in found}

    def close(self) -> None:
        self._java.ask("close", self._name)

    def results(self) -> list[Result]:
        found = [result.split(":") for result in self._java.ask("results", self._name).split()]
        return [Result(int(partition), int(offset), error) for partition, offset, error in found]


@contextmanager
def java_client(program: KafkaCommand) -> Iterator[Java]:
    """Run ShareMembers.java."""
    command = java_command(program, Path(__file__).parent / "ShareMembers.java")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Java(process)
        finally:
            process.kill()


def java_command(program: KafkaCommand, source: Path, *arguments: str) -> list[str]:
    """The command for a program with Kafka's jars. PySpark's Janino compiles it, so a Java without a compiler is
    enough."""
    spark_jars = Path(pyspark.__file__).parent / "jars"
    compiler = [str(found) for name in ("janino", "commons-compiler") for found in spark_jars.glob(f"{name}-*.jar")]
    command = program.tool("org.codehaus.janino.SimpleCompiler", (str(source), source.stem, *arguments))
    classpath = command.index("-cp") + 1
    command[classpath] = ":".join([command[classpath], *compiler])
    return command
