"""`shareq produce`: Kafka's kafka-console-producer. It writes each line of stdin as a record.

Source: the options of Kafka 4.4's tool. A record that is not written is an error, and the exit code is 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from shareq.client.message import Message
from shareq.client.properties import client_properties, properties_of
from shareq.model.errors import KafkaError
from shareq.producer import Producer
from shareq.tools.connection import Connection, client_options, pairs_of
from shareq.tools.line_reader import LineReader
from shareq.tools.sender import Sender

_FILE = click.Path(dir_okay=False, path_type=Path)
_DEFAULTS = {
    "linger.ms": 1000,
    "acks": "-1",
    "batch.size": 16384,
    "request.timeout.ms": 1500,
    "retry.backoff.ms": 100,
    "queue.buffering.max.kbytes": 32 << 10,
    "topic.metadata.propagation.max.ms": 60_000,
    "topic.metadata.refresh.interval.ms": 300_000,
    "socket.send.buffer.bytes": 100 << 10,
    "client.id": "console-producer",
}
"""The configuration of a producer where neither an option nor a property sets it."""

_LAST_S = 1.0
"""How long an interrupted run waits for the records that it has sent, in seconds."""


@click.command()
@client_options
@click.option("--topic", required=True, help="The topic.")
@click.option("--sync", is_flag=True, help="Send each record by itself, and wait for it.")
@click.option(
    "--compression-codec",
    is_flag=False,
    flag_value="gzip",
    metavar="[CODEC]",
    help="none, gzip (without a value), snappy, lz4 or zstd.",
)
@click.option(
    "--reader-property",
    multiple=True,
    metavar="KEY=VALUE",
    help="parse.key, key.separator; parse.headers, headers.delimiter, headers.separator, headers.key.separator; "
    "ignore.error; null.marker.",
)
@click.option("--reader-config", type=_FILE, metavar="FILE", help="A file with properties of the reader.")
@click.option("--property", "properties_", multiple=True, hidden=True, help="The former --reader-property.")
@click.option("--line-reader", default="LineMessageReader", hidden=True, help="Only LineMessageReader.")
@click.option("--timeout", "linger_ms", type=int, metavar="MS", help="linger.ms.  [default: 1000]")
@click.option("--request-required-acks", "acks", metavar="N", help="acks: 0, 1, -1 or all.  [default: -1]")
@click.option("--batch-size", type=int, metavar="BYTES", help="batch.size.  [default: 16384]")
@click.option("--max-partition-memory-bytes", type=int, hidden=True, help="The former --batch-size.")
@click.option("--max-memory-bytes", type=int, metavar="BYTES", help="The most waiting bytes.  [default: 33554432]")
@click.option("--max-block-ms", type=int, metavar="MS", help="How long a topic may be unknown.  [default: 60000]")
@click.option("--metadata-expiry-ms", type=int, metavar="MS", help="The age of metadata.  [default: 300000]")
@click.option("--message-send-max-retries", type=int, hidden=True, help="No effect: message.timeout.ms bounds retries.")
@click.option("--request-timeout-ms", type=int, metavar="MS", help="request.timeout.ms.  [default: 1500]")
@click.option("--retry-backoff-ms", type=int, metavar="MS", help="retry.backoff.ms.  [default: 100]")
@click.option("--socket-buffer-size", type=int, metavar="BYTES", help="The buffer of the socket.  [default: 102400]")
@click.option("--producer.config", "producer_config", type=_FILE, hidden=True, help="The former --command-config.")
@click.option("--producer-property", multiple=True, hidden=True, help="The former --command-property.")
@click.option("--json", "as_json", is_flag=True, help="Print an object for each written record: its place.")
def produce(connection: Connection, **given: Any) -> None:
    """Write each line of stdin as a record, as kafka-console-producer does."""
    if given["line_reader"].rpartition(".")[2] != "LineMessageReader":
        raise click.UsageError(f"--line-reader {given['line_reader']}: must be LineMessageReader; others need Java")
    properties = properties_of(given["reader_config"]) if given["reader_config"] else {}
    properties |= pairs_of("--property", given["properties_"])
    reader = LineReader.of(properties | pairs_of("--reader-property", given["reader_property"]))
    written = _Written(as_json=given["as_json"])
    with Producer(_config(connection, given)) as producer:
        sender = Sender(producer)
        try:
            for key, value, headers in reader.records(_lines()):
                sender.send(given["topic"], value, key, headers, on_delivery=written)
                if given["sync"]:
                    producer.flush()
            producer.flush()
        except BaseException:  # else Ctrl-C would wait for a broker that never answers
            producer.close(_LAST_S)
            raise
    if written.failures:
        raise click.ClickException(f"records that were not written: {written.failures}")


def _config(connection: Connection, given: dict[str, Any]) -> dict[str, Any]:
    """An option has precedence over a property, and both over the defaults."""
    config = client_properties(given["producer_config"]) if given["producer_config"] else {}
    config |= pairs_of("--producer-property", given["producer_property"])
    memory = given["max_memory_bytes"]
    options = {
        "linger.ms": given["linger_ms"],
        "acks": given["acks"],
        "batch.size": given["max_partition_memory_bytes"] or given["batch_size"],
        "request.timeout.ms": given["request_timeout_ms"],
        "retry.backoff.ms": given["retry_backoff_ms"],
        "compression.type": given["compression_codec"],
        "queue.buffering.max.kbytes": None if memory is None else max(1, memory >> 10),
        "topic.metadata.propagation.max.ms": given["max_block_ms"],
        "topic.metadata.refresh.interval.ms": given["metadata_expiry_ms"],
        "socket.send.buffer.bytes": given["socket_buffer_size"],
    }
    chosen = {key: value for key, value in options.items() if value is not None}
    return {**_DEFAULTS, **config, **connection.config(), **chosen}


def _lines() -> Iterator[str]:
    """The lines of stdin without their ends, each after a prompt if it is typed in."""
    typed = sys.stdin.isatty() and sys.stdout.isatty()
    while True:
        if typed:
            click.echo(">", nl=False)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")


class _Written:
    """Takes the results of records. `failures`: the number of those that were not written."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.failures = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures += 1
            click.echo(f"Error when sending message to topic {message.topic()}: {error.str()}", err=True)
        elif self._as_json:
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            click.echo(json.dumps(place | {"timestamp": message.timestamp()[1]}))
