"""`shareq consume` and `shareq produce` beside Kafka's console tools on the same cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from shareq import Admin, NewTopic, Producer, cli
from shareq.client.message import Message
from shareq.model.errors import ConfigException
from shareq.tools.formatters import DESERIALIZERS, formatter_of
from shareq.tools.line_reader import LineReader, LineRecord
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, configure, eventually
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import ON_BOTH, Beside

Fresh = Callable[[str], str]

EVERY_PART = [
    argument
    for part in ("timestamp", "partition", "offset", "delivery", "headers", "key")
    for argument in ("--formatter-property", f"print.{part}=true")
]


class Console:
    """A topic with one partition, and the two commands."""

    def __init__(self, address: str, tools: JavaTools, topic: str) -> None:
        self.topic = topic
        self.address = address
        self.consume = Beside(address, tools, "consume", "kafka-console-share-consumer")
        self.produce = Beside(address, tools, "produce", "kafka-console-producer")

    def group(self, name: str) -> tuple[str, ...]:
        """The options of a new group that starts at the first record."""
        with Admin({"bootstrap.servers": self.address}) as admin:
            configure(admin, f"{self.topic}-{name}", {"share.auto.offset.reset": "earliest"})
        return "--topic", self.topic, "--group", f"{self.topic}-{name}", "--timeout-ms", "60000"

    def values(self, name: str, count: int, *args: str) -> list[str]:
        """The first values that a group reads."""
        done = self.consume.invoke(*self.group(name), "--max-messages", str(count), *args)
        assert done.returncode == 0, done.stderr
        assert done.stderr == f"Processed a total of {count} messages\n"
        return done.stdout.splitlines()


@pytest.fixture
def console(server: Reachable, fresh: Fresh, java_tools: JavaTools) -> Console:
    made = Console(server.bootstrap_servers, java_tools, fresh("orders"))
    with Admin({"bootstrap.servers": made.address}) as admin:
        admin.create_topics([NewTopic(made.topic, 1, 1)]).check()
    return made


def write(console: Console, *records: tuple[str | bytes | None, str | bytes | None]) -> None:
    with Producer({"bootstrap.servers": console.address}) as producer:
        for key, value in records:
            headers = {"of": key} if key is not None else None
            producer.produce(console.topic, value, key, 0, timestamp=1_700_000_000_000, headers=headers)


# ---- beside Kafka's tools --------------------------------------------------------------------------------------------


@ON_BOTH
def test_messages_are_printed_as_by_kafka(console: Console) -> None:
    write(console, ("k", "v"), (None, None), ("k2", "ü"))
    args = ("--max-messages", "3", *EVERY_PART, "--formatter-property", "null.literal=NOTHING")
    ours = console.consume.invoke(*console.group("a"), *args)
    theirs = console.consume.java(*console.group("b"), *args)
    assert ours.stdout == theirs.stdout
    assert ours.stderr == theirs.stderr == "Processed a total of 3 messages\n"
    assert ours.stdout.splitlines()[0] == "CreateTime:1700000000000\tPartition:0\tOffset:0\tDelivery:1\tof:k\tk\tv"


@ON_BOTH
def test_lines_are_written_as_by_kafka(console: Console) -> None:
    """With headers, keys and nulls."""
    properties = ("parse.key=true", "parse.headers=true", "key.separator=;", "null.marker=NULL")
    args = [argument for text in properties for argument in ("--reader-property", text)]
    lines = "a:1,b:2\tk;v\na:NULL\tNULL;v;w\nNULL\tk;NULL\n"
    ours = console.produce.invoke("--topic", console.topic, "--sync", *args, stdin=lines)
    theirs = console.produce.java("--topic", console.topic, "--sync", *args, stdin=lines)
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, theirs.stdout, theirs.stderr) == (0, "", "")
    shown = console.values(
        "a", 6, "--formatter-property", "print.headers=true", "--formatter-property", "print.key=true"
    )
    assert shown[:3] == shown[3:] == ["a:1,b:2\tk\tv", "a:null\tnull\tv;w", "NO_HEADERS\tk\tnull"]


# ---- consume ---------------------------------------------------------------------------------------------------------


@ON_BOTH
def test_messages_are_released_and_rejected(console: Console) -> None:
    write(console, (None, "a"), (None, "b"))
    deliveries = ("--formatter-property", "print.delivery=true")
    assert console.values("g", 2, "--release", *deliveries) == ["Delivery:1\ta", "Delivery:1\tb"]
    assert console.values("g", 1, "--reject", *deliveries) == ["Delivery:2\ta"]
    assert console.values("g", 1, *deliveries)[0][-1] == "b"
    done = console.consume.invoke(*console.group("g")[:-1], "300")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Processed a total of 0 messages\n")


@ON_BOTH
def test_a_message_that_cannot_be_printed_ends_the_command_or_is_rejected(console: Console) -> None:
    write(console, (None, b"\0\0\0\1"), (None, "five!"), (None, b"\xff\xff\xff\xff"))
    integers = ("--value-deserializer", "org.apache.kafka.common.serialization.IntegerDeserializer")
    done = console.consume.invoke(*console.group("a"), "--max-messages", "3", *integers)
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert "Size of data received by IntegerDeserializer is not 4" in done.stderr
    done = console.consume.invoke(*console.group("b"), "--max-messages", "3", *integers, "--reject-message-on-error")
    assert (done.returncode, done.stdout) == (0, "1\n-1\n")


@ON_BOTH
def test_messages_are_printed_as_json(console: Console) -> None:
    write(console, ("k", "v"))
    (line,) = console.values("g", 1, "--json")
    assert json.loads(line) == {
        "topic": console.topic, "partition": 0, "offset": 0, "timestamp_type": "CreateTime",
        "timestamp": 1_700_000_000_000, "delivery_count": 1, "leader_epoch": 0, "headers": [["of", "k"]], "key": "k",
        "value": "v",
    }  # fmt: skip


def test_a_signal_ends_the_command(console: Console) -> None:
    """What was printed is accepted."""
    write(console, (None, "a"))
    args = [*console.group("g"), "--bootstrap-server", console.address, "--enable-systest-events"]
    program = [sys.executable, "-m", "shareq.cli", "consume", *args]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "a\n"
        running.send_signal(signal.SIGTERM)
        out, errors = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, out, errors) == (0, "shutdown_complete\n", "Processed a total of 1 messages\n")
    with Admin({"bootstrap.servers": console.address}) as admin:
        eventually(lambda: admin.lag(f"{console.topic}-g").total, 0)


def test_properties_come_from_files_and_options(console: Console, tmp_path: Path) -> None:
    write(console, ("k", "v"))
    (formatter := tmp_path / "formatter.properties").write_text("print.key=true\nkey.separator=/\n")
    (client := tmp_path / "client.properties").write_text(f"group.id={console.topic}-f\n")
    topic, _, *timeout = console.group("f")[0:2] + console.group("f")[4:]
    args = ["--topic", console.topic, *timeout, "--max-messages", "1", "--command-config", str(client)]
    config = ["--formatter-config", str(formatter), "--formatter-property", "key.separator=+"]
    assert console.consume.invoke(*args, *config).stdout == "k+v\n"
    assert topic == "--topic"
    failure = console.consume.failure(*args, "--group", "another", code=2)
    assert f"--group and group.id do not match: another, {console.topic}-f" in failure


# ---- produce ---------------------------------------------------------------------------------------------------------


@ON_BOTH
def test_places_of_written_records_are_printed_as_json(console: Console) -> None:
    done = console.produce.invoke("--topic", console.topic, "--json", "--compression-codec", stdin="a\r\nb")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        (console.topic, 0, 0),
        (console.topic, 0, 1),
    ]
    assert console.values("g", 2) == ["a", "b"]


def test_records_that_are_not_written_are_an_error(console: Console) -> None:
    options = ("--topic", f"{console.topic}-gone", "--max-block-ms", "1", "--timeout", "0")
    done = console.produce.invoke(*options, stdin="a\nb\n")
    assert done.returncode == 1
    assert f"Error when sending message to topic {console.topic}-gone" in done.stderr
    assert "records that were not written: 2" in done.stderr


# ---- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        ({}, "a\tb", LineRecord(None, b"a\tb", [])),
        ({"parse.key": "true"}, "a\tb\tc", LineRecord(b"a", b"b\tc", [])),
        ({"parse.key": "TRUE", "key.separator": "::"}, "a::b", LineRecord(b"a", b"b", [])),
        ({"parse.key": "true", "ignore.error": "true"}, "a", LineRecord(None, b"a", [])),
        ({"parse.headers": "true"}, "h:1,i:\tv", LineRecord(None, b"v", [("h", b"1"), ("i", b"")])),
        ({"parse.headers": "true", "ignore.error": "true"}, "h\tv", LineRecord(None, b"v", [("h", None)])),
        ({"parse.headers": "true", "null.marker": "-"}, "-\t-", LineRecord(None, None, [])),
    ],
)
def test_lines(properties: dict[str, str], line: str, record: LineRecord) -> None:
    assert list(LineReader.of(properties).records([line])) == [record]


@pytest.mark.parametrize(
    ("properties", "lines", "message"),
    [
        ({"parse.key": "true"}, ["a\tb", "c"], "No key separator found on line number 2: 'c'"),
        ({"parse.headers": "true"}, ["c"], "No headers delimiter found on line number 1"),
        ({"parse.headers": "true"}, ["h\tv"], "No header key separator found in pair 'h'"),
        (
            {"parse.headers": "true", "null.marker": "h"},
            ["h:1\tv"],
            "Header keys should not be equal to the null marker",
        ),
        ({"headers.separator": ":"}, [], "headers.separator and headers.key.separator may not be equal"),
        ({"null.marker": "\t"}, [], "headers.delimiter and null.marker may not be equal"),
        ({"colour": "blue"}, [], "--reader-property colour: is not a property of lines"),
    ],
)
def test_lines_that_cannot_be_read(properties: dict[str, str], lines: Iterable[str], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        list(LineReader.of(properties).records(lines))


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("String", b"a\xff", "a\ufffd".encode()),
        ("Short", b"\xff\xfe", b"-2"),
        ("Long", b"\0\0\0\0\0\0\1\0", b"256"),
        ("Boolean", b"\1", b"true"),
        ("UUID", b"00000000-0000-0000-0000-00000000000A", b"00000000-0000-0000-0000-00000000000a"),
        ("Short", b"1", None),
        ("Boolean", b"\2", None),
        ("UUID", b"1", None),
    ],
)
def test_deserializers(name: str, data: bytes, text: bytes | None) -> None:
    formatter = formatter_of("DefaultMessageFormatter", {"value.deserializer": f"{name}Deserializer"}, as_json=False)
    if text is None:
        with pytest.raises(ValueError, match=r".+"):
            formatter.write(Message(value=data))
    else:
        assert formatter.write(Message(value=data)) == text + b"\n"
    assert name in DESERIALIZERS


def test_the_formatter_without_output() -> None:
    assert (
        formatter_of("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {}, as_json=False).write(Message()) == b""
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["consume"], "Missing option '--topic'"),
        (["consume", "--topic", "t", "--reject", "--release"], "only one is possible of --reject, --release"),
        (["consume", "--topic", "t", "--formatter", "a.B"], "must be DefaultMessageFormatter or NoOpMessageFormatter"),
        (["consume", "--topic", "t", "--key-deserializer", "Mine"], "deserializer Mine: must be one of StringDes"),
        (["consume", "--topic", "t", "--formatter-property", "print.colour=true"], "is not a property of Default"),
        (["consume", "--topic", "t", "--formatter-property", "a"], "--formatter-property a: must be key=value"),
        (["produce", "--topic", "t", "--line-reader", "a.B"], "must be LineMessageReader; others need Java"),
        (["produce", "--topic", "t", "--reader-property", "a"], "--reader-property a: must be key=value"),
    ],
)
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.main, [*args, "--bootstrap-server", "127.0.0.1:1"])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
