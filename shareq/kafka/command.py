"""`shareq kafka ...`: a local Apache Kafka and Kafka's tools, without an installation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import click

from shareq.jvm import JavaNotFound
from shareq.kafka import LocalKafka, tools
from shareq.kafka.jars import KafkaNotFound
from shareq.kafka.local import LocalKafkaError
from shareq.model.errors import ConfigException
from shareq.signals.end_signals import end_signals, repeat
from shareq.wire.client_examples import client_examples_text

_CHECK_S = 0.5
PORT = 9092
"""The first broker's port by default: that of the examples, and of `shareq serve`."""


@click.group()
def kafka() -> None:
    """Run Apache Kafka on this machine: no installation, no remaining data."""


@kafka.command()
@click.option("--brokers", type=click.Choice(["1", "3"]), default="1", show_default=True, help="The number of brokers.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="The first broker's port, others follow; 0: free ports.",
)
@click.option(
    "--version", metavar="X.Y.Z", help="The version of Apache Kafka.  [default: KAFKA_HOME's, else the newest]"
)
@click.option("--allow-unpinned", is_flag=True, help="Fetch a version although shareq has no hashes of its jars.")
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A broker configuration; repeatable.")
def start(brokers: str, port: int, version: str | None, allow_unpinned: bool, configs: tuple[str, ...]) -> None:
    """Start Apache Kafka with share groups, until Ctrl-C; its data is removed then."""
    with _plain_errors():
        local = LocalKafka(
            int(brokers),
            version=version,
            allow_unpinned=allow_unpinned,
            port=port or None,
            config=dict(map(_pair, configs)),
        )
        click.echo("Starting Apache Kafka ...", err=True)
        with local, end_signals() as ended:
            click.echo(f"Apache Kafka {local.version} serves at {local.bootstrap_servers}; logs in {local.logs}")
            click.echo(f"\n{client_examples_text(local.bootstrap_servers)}\n")
            click.echo("Ctrl-C stops it.")
            repeat(partial(_check, local), _CHECK_S, ended)
    click.echo("Apache Kafka has stopped; its data is removed.")


def _check(local: LocalKafka) -> None:
    """LocalKafkaError with the end of its log if a broker has ended."""
    if not local.brokers_alive:
        raise LocalKafkaError(f"Kafka has ended unexpectedly:\n{local.tail()}")


@kafka.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("tool")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(tool: str, args: tuple[str, ...]) -> None:
    """Run one of Kafka's tools, such as kafka-topics, with its own options."""
    with _plain_errors():
        command = tools.command(tool, *args)
    os.execv(command[0], command)


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ConfigException(f"--config {text}: must be KEY=VALUE")
    return key, value


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Show errors of the arguments and of the system as a message, without a traceback."""
    try:
        yield
    except (ConfigException, JavaNotFound, KafkaNotFound, LocalKafkaError) as error:
        raise click.ClickException(str(error)) from None
