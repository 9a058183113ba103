"""One broker of a local Kafka: its properties, its process, its log.

The process is broker and KRaft controller in one, and a child of a supervisor; see `supervisor.py`.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shareq.jvm import ClassArchive, Java
from shareq.kafka import supervisor
from shareq.kafka.jars import KafkaJars

HOST = "127.0.0.1"
_READY = "Kafka Server started"
_LOG4J2 = Path(__file__).parent / "log4j2"
_HEAP = "-Xmx1g"
_BROKER_OPTIONS = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")  # as Kafka's
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")  # halves the start-up time of a tool


@dataclass(frozen=True, slots=True)
class KafkaCommand:
    """A Java and Kafka's jars, which make command lines of Kafka's classes."""

    java: Java
    jars: KafkaJars

    @property
    def archive(self) -> ClassArchive:
        return ClassArchive(self.java, f"kafka-{self.jars.version}", self.jars.classpath)

    def broker(self, properties: Path, temporary: Path, draft: Path) -> list[str]:
        """`draft`: where the broker writes the archive of its classes if there is none, see `ClassArchive`."""
        heap = os.environ.get("KAFKA_HEAP_OPTS", _HEAP).split()
        options = (*heap, *_BROKER_OPTIONS, f"-Djava.io.tmpdir={temporary}", *self.archive.use_or_write(draft))
        return self._command("broker", options, "kafka.Kafka", (str(properties),))

    def tool(self, main_class: str, args: Sequence[str], *options: str) -> list[str]:
        """`options`: more options of Java."""
        return self._command("tools", (*_SHORT_LIVED, *options), main_class, args)

    def _command(self, log4j2: str, options: Sequence[str], main_class: str, args: Sequence[str]) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={_LOG4J2 / log4j2}.properties"
        return [str(self.java.executable), "-cp", self.jars.classpath, logging, *options, main_class, *args]


@dataclass(slots=True)
class BrokerProcess:
    """The process of broker `broker_id`. Its data, properties and log are in the folder `root`."""

    program: KafkaCommand
    root: Path
    broker_id: int
    port: int
    controller_port: int
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _log_begin: int = 0

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def voter(self) -> str:
        return f"{self.broker_id}@{HOST}:{self.controller_port}"

    @property
    def log(self) -> Path:
        return self.root / "logs" / f"broker-{self.broker_id}.log"

    @property
    def data(self) -> Path:
        return self.root / f"broker-{self.broker_id}"

    @property
    def draft(self) -> Path:
        """The archive of its classes, which it writes at an orderly end if the cache has none."""
        return self.root / f"broker-{self.broker_id}.jsa"

    @property
    def properties(self) -> Path:
        return self.root / f"broker-{self.broker_id}.properties"

    # ---- preparation -------------------------------------------------------------------------------------------------

    def configure(self, voters: Sequence[str], config: Mapping[str, object]) -> None:
        """Write the properties file."""
        own = {
            "process.roles": "broker,controller",
            "node.id": self.broker_id,
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self.data,
        }
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.properties.write_text("".join(f"{key}={_text(value)}\n" for key, value in {**config, **own}.items()))

    def format(self, cluster_id: str) -> subprocess.CompletedProcess[str]:
        """Format the data folder with Kafka's storage tool, with share groups enabled where Kafka has them."""
        level = self.program.jars.share_version
        features = ("--feature", f"share.version={level}") if level else ()
        args = ("format", "-t", cluster_id, "-c", str(self.properties), *features)
        command = self.program.tool("kafka.tools.StorageTool", args, *self.program.archive.use())
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def format_like(self, first: BrokerProcess, cluster_id: str) -> None:
        """Format the data folder like that of `first`: further runs of the tool would take seconds."""
        shutil.copytree(first.data, self.data, ignore=shutil.ignore_patterns("meta.properties"))
        lines = ("version=1", f"cluster.id={cluster_id}", f"node.id={self.broker_id}", f"directory.id={new_id()}")
        (self.data / "meta.properties").write_text("\n".join(lines) + "\n")

    # ---- running -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.wait(0)  # one that has ended by itself: its pipe is closed
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", supervisor.__file__, str(self.root)),
                    *self.program.broker(self.properties, self.root, self.draft),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # ctrl-C in the terminal reaches only this process, which stops the broker
            )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def ready(self) -> bool:
        """True if the broker has registered with the controller and serves clients."""
        return _READY in self.output()

    def output(self) -> str:
        """The log since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    def terminate(self) -> None:
        """Stop it in an orderly way."""
        self._order(b"t")

    def kill(self) -> None:
        """Kill it, as a power failure would."""
        self._order(b"k")

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the end of the process. True if it has ended."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        assert self._process.stdin is not None
        self._process.stdin.close()
        return True

    def _order(self, letter: bytes) -> None:
        if self._process is not None and self.alive:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):  # it has ended since the check
                os.write(self._process.stdin.fileno(), letter)


def new_id() -> str:
    """A random id in Kafka's format; the first byte prevents a leading dash, which would look like an option."""
    return base64.urlsafe_b64encode(b"\x4b" + os.urandom(15)).decode().rstrip("=")


def _text(value: object) -> str:
    """A value in the format of a properties file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return str(value).replace("\\", "\\\\").replace("\n", "\\n")
