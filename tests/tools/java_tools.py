"""Kafka's tools in one Java process: the start of a Java for each run would take ten times as long as the run."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyspark

from shareq.jvm import find_java
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import tools_jars
from shareq.kafka.tools import TOOLS
from tests.polling import PATIENCE_S

_SIZE = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class JavaTools:
    """The process that runs ToolHost.java, listening at `port`."""

    port: int

    def run(self, tool: str, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a tool. Threads may do so at the same time."""
        words = [TOOLS[tool], *args]
        with socket.create_connection(("127.0.0.1", self.port), 3 * PATIENCE_S) as connection:
            framed = b"".join(_SIZE.pack(len(part)) + part for part in (text.encode() for text in (*words, stdin)))
            connection.sendall(_SIZE.pack(len(words)) + framed)
            with connection.makefile("rb") as answer:
                code, out, err = _number(answer), _text(answer), _text(answer)
        return subprocess.CompletedProcess([tool, *args], code, out, err)

    def configure_logging(self) -> None:
        """Run a tool that logs an error: the first such run in the process configures the logger, and what another
        one logs meanwhile is lost."""
        wrong = ("--create", "--topic", "t", "--config", "retention.ms=long")
        assert "ConfigException" in self.run("kafka-topics", "--bootstrap-server", "127.0.0.1:1", *wrong).stderr


def _number(answer: BinaryIO) -> int:
    (number,) = _SIZE.unpack(answer.read(_SIZE.size))
    assert isinstance(number, int)
    return number


def _text(answer: BinaryIO) -> str:
    return answer.read(_number(answer)).decode()


@contextmanager
def started() -> Iterator[JavaTools]:
    """Run ToolHost.java with Kafka's jars. PySpark's Janino compiles it, so a Java without a compiler is enough."""
    spark_jars = Path(pyspark.__file__).parent / "jars"
    compiler = [str(found) for name in ("janino", "commons-compiler") for found in spark_jars.glob(f"{name}-*.jar")]
    source = Path(__file__).parent / "ToolHost.java"
    program = KafkaCommand(find_java(), tools_jars())
    command = program.tool("org.codehaus.janino.SimpleCompiler", (str(source), "ToolHost"))
    classpath = command.index("-cp") + 1
    command[classpath] = ":".join([command[classpath], *compiler])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            tools = JavaTools(int(process.stdout.readline()))
            tools.configure_logging()
            yield tools
        finally:
            process.kill()
