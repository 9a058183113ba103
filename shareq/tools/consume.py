"""`shareq consume`: Kafka's kafka-console-share-consumer. It prints the records of a topic, as a member of a group.

Source: the options and output of Kafka 4.4's tool. The end of --timeout-ms is no error; records that were received and
not printed are released.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import click

from shareq.client.message import Message
from shareq.client.properties import client_properties, properties_of
from shareq.consumer import ShareConsumer
from shareq.model.states import AcknowledgeType
from shareq.signals.end_signals import interrupted_by_signals
from shareq.signals.uninterrupted import uninterrupted
from shareq.tools.connection import Connection, client_options, pairs_of
from shareq.tools.formatters import Formatter, formatter_of

DEFAULT_GROUP = "share"
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@client_options
@click.option("--topic", required=True, help="The topic.")
@click.option("--group", metavar="ID", help=f"The share group.  [default: {DEFAULT_GROUP}]")
@click.option("--max-messages", type=int, default=-1, metavar="N", help="End after N messages.")
@click.option("--timeout-ms", type=int, default=-1, metavar="MS", help="End when no message came for this time.")
@click.option("--reject", is_flag=True, help="Reject each message instead of accepting it.")
@click.option("--release", is_flag=True, help="Release each message instead of accepting it.")
@click.option("--reject-message-on-error", is_flag=True, help="Reject a message that cannot be printed, and go on.")
@click.option("--formatter", default="DefaultMessageFormatter", metavar="CLASS", help="Or NoOpMessageFormatter.")
@click.option("--formatter-config", type=_FILE, metavar="FILE", help="A file with properties of the formatter.")
@click.option(
    "--formatter-property",
    multiple=True,
    metavar="KEY=VALUE",
    help="print.timestamp, .key, .offset, .delivery, .epoch, .partition, .headers, .value; key.separator, "
    "line.separator, headers.separator; null.literal; key.deserializer, value.deserializer, headers.deserializer.",
)
@click.option("--property", "properties_", multiple=True, hidden=True, help="The former --formatter-property.")
@click.option("--key-deserializer", metavar="CLASS", help="The deserializer of keys, such as LongDeserializer.")
@click.option("--value-deserializer", metavar="CLASS", help="The deserializer of values.")
@click.option("--consumer-config", type=_FILE, hidden=True, help="The former --command-config.")
@click.option("--consumer-property", multiple=True, hidden=True, help="The former --command-property.")
@click.option("--enable-systest-events", is_flag=True, help="Print shutdown_complete at the end.")
@click.option("--json", "as_json", is_flag=True, help="Print an object for each message.")
def consume(connection: Connection, **given: Any) -> None:
    """Print the messages of a topic, as kafka-console-share-consumer does."""
    if given["reject"] and given["release"]:
        raise click.UsageError("only one is possible of --reject, --release")
    kind = AcknowledgeType.REJECT if given["reject"] else AcknowledgeType.ACCEPT
    if given["release"]:
        kind = AcknowledgeType.RELEASE
    formatter = formatter_of(given["formatter"], _properties(given), as_json=given["as_json"])
    config = _config(connection, given)
    with interrupted_by_signals(), ShareConsumer(config) as consumer:
        consumer.subscribe([given["topic"]])
        run = _Run(consumer, formatter, kind, reject_on_error=given["reject_message_on_error"])
        try:
            with suppress(KeyboardInterrupt):
                run.consume(given["max_messages"], given["timeout_ms"])
        finally:
            results = consumer.commit_sync()
            click.echo(f"Processed a total of {run.count} messages", err=True)
        for failure in results.values():
            if failure is not None:
                raise failure
    if given["enable_systest_events"]:
        click.echo("shutdown_complete")


def _properties(given: dict[str, Any]) -> dict[str, str]:
    """The properties of the formatter; single options have precedence over the file."""
    found = properties_of(given["formatter_config"]) if given["formatter_config"] else {}
    for part in ("key", "value"):
        if given[f"{part}_deserializer"]:
            found[f"{part}.deserializer"] = given[f"{part}_deserializer"]
    found |= pairs_of("--property", given["properties_"])
    return found | pairs_of("--formatter-property", given["formatter_property"])


def _config(connection: Connection, given: dict[str, Any]) -> dict[str, str]:
    """The configuration of the consumer. UsageError: several group ids."""
    if given["group"] == "":
        raise click.UsageError("--group '': must be the name of a share group")
    config = client_properties(given["consumer_config"]) if given["consumer_config"] else {}
    config |= pairs_of("--consumer-property", given["consumer_property"])
    config |= connection.config()
    groups = {config.get("group.id", given["group"]), given["group"] or config.get("group.id")}
    if len(groups) > 1:
        raise click.UsageError(f"--group and group.id do not match: {', '.join(sorted(map(str, groups)))}")
    config["group.id"] = groups.pop() or DEFAULT_GROUP
    return {"client.id": "console-share-consumer", **config, "share.acknowledgement.mode": "explicit"}


class _Run:
    """Receives, prints and acknowledges. `count`: the messages that were received for printing."""

    def __init__(
        self,
        consumer: ShareConsumer,
        formatter: Formatter,
        kind: AcknowledgeType,
        *,
        reject_on_error: bool,
    ) -> None:
        self._consumer = consumer
        self._formatter = formatter
        self._kind = kind
        self._reject_on_error = reject_on_error
        self.count = 0

    def _shown(self, message: Message, out: BinaryIO) -> AcknowledgeType:
        """Print a message, and return how it is acknowledged."""
        try:
            out.write(self._text(message))
        except ValueError as problem:
            if not self._reject_on_error:
                raise
            click.echo(f"Error processing message, rejecting this message: {problem}", err=True)
            return AcknowledgeType.REJECT
        return self._kind

    def _text(self, message: Message) -> bytes:
        error = message.error()
        if error is not None:
            place = f"{message.topic()} [{message.partition()}] at offset {message.offset()}"
            raise ValueError(f"{place} cannot be read: {error.str()}")
        return self._formatter.write(message)

    def consume(self, max_messages: int, timeout_ms: int) -> None:
        out = sys.stdout.buffer
        while self.count != max_messages:
            messages = self._consumer.poll(timeout_ms / 1000 if timeout_ms >= 0 else -1)
            if not messages:
                return
            for message in messages:
                if self.count == max_messages:
                    break
                self.count += 1
                with uninterrupted:  # what was printed is acknowledged, whenever a signal comes
                    self._consumer.acknowledge(message, self._shown(message, out))
            out.flush()
