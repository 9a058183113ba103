"""`shareq serve`: a cluster for Kafka clients. `shareq kafka`: Apache Kafka. `shareq tap`: a proxy in front of a Kafka.
`shareq observe`: the health of share groups. `shareq show`: the control room.

These run until Ctrl-C. `shareq pipeline`: tables and a report of a trace. `shareq what-if`: the cost of settings.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from shareq import __version__
from shareq.broker import Cluster
from shareq.extras import install_command
from shareq.model.errors import ConfigException, KafkaException
from shareq.trace.journal.jsonl import growing

try:
    import click
except ModuleNotFoundError:
    raise SystemExit(f"The command shareq needs the package click: {install_command('kafka')}") from None

FLUSH_S = 0.2
"""The interval at which events are written to the file of `--journal`."""

KEPT_EVENTS = 200_000
"""The number of events that the journal keeps in memory: ample for FLUSH_S, bounded in a server that runs for days."""


LATE = {
    "kafka": "shareq.kafka.command",
    "observe": "shareq.observer.health.command",
    "pipeline": "shareq.spark.pipeline.command",
    "show": "shareq_widgets.show.command",
    "tap": "shareq.proxy.command",
    "what-if": "shareq.spark.what_if",
}
"""Commands that are imported when they are used, because of their dependencies."""

EXTRAS = {"shareq.spark": "spark", "shareq_widgets": "lab"}
"""The extra of these packages; that of the others is kafka."""


class _Shareq(click.Group):
    """The group of all commands, including those of LATE."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*LATE, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATE:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(_needed(LATE[cmd_name]), cmd_name.replace("-", "_"))
        return command


@click.group(cls=_Shareq)
@click.version_option(__version__)
def main() -> None:
    """See, run, break and measure Kafka share groups (KIP-932)."""


def _clock(ctx: click.Context, param: click.Parameter, value: str) -> str | float:
    del ctx, param
    try:
        return "wall" if value == "wall" else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r}: must be wall, or a factor such as 10") from None


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    del ctx, param
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r}: must be key=value")
    return dict(value.split("=", 1) for value in values)


def _racks(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str | None] | None:
    del ctx, param
    return None if value is None else [rack.strip() or None for rack in value.split(",")]


def _topics(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    del ctx, param
    topics = {}
    for value in values:
        name, colon, count = value.partition(":")
        if not name or (colon and not count.isdecimal()):
            raise click.BadParameter(f"{value!r}: must be name or name:partitions")
        topics[name] = int(count or 1)
    return topics


@main.command()
@click.option("--brokers", type=int, help="The number of brokers, each on its own port.  [default: 1]")
@click.option(
    "--backend",
    metavar="HOST:PORT,...",
    help="An Apache Kafka that keeps topics, share groups and states; its brokers are the cluster's.",
)
@click.option(
    "--racks", callback=_racks, metavar="NAME,...", help="The rack of each broker, such as a,b,; empty: no rack."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The host name or address of all brokers.")
@click.option("--port", default=9092, show_default=True, help="The first broker's port, others follow; 0: free ports.")
@click.option(
    "--clock",
    callback=_clock,
    default="wall",
    show_default=True,
    metavar="wall|FACTOR",
    help="10: time runs ten times as fast.",
)
@click.option("--seed", type=int, help="The seed of random choices.  [default: 0; random with --backend]")
@click.option(
    "--topic",
    "topics",
    callback=_topics,
    multiple=True,
    metavar="NAME[:PARTITIONS]",
    help="A topic to create at the start; repeatable.",
)
@click.option(
    "--config",
    "configs",
    callback=_pairs,
    multiple=True,
    metavar="KEY=VALUE",
    help="A configuration of the brokers; repeatable.",
)
@click.option(
    "--journal", type=click.Path(dir_okay=False, path_type=Path), help="Write all events to this file (JSON Lines)."
)
@click.option("-v", "--verbose", is_flag=True, help="Print one line for each request.")
def serve(
    *,
    brokers: int | None,
    backend: str | None,
    racks: list[str | None] | None,
    host: str,
    port: int,
    clock: str | float,
    seed: int | None,
    topics: dict[str, int],
    configs: dict[str, str],
    journal: Path | None,
    verbose: bool,
) -> None:
    """Serve a cluster to Kafka clients until Ctrl-C. All data is in memory and is lost at the end; with --backend it
    is in topics of that Kafka, and the next run continues."""
    wire, client_examples = _needed("shareq.wire.server"), _needed("shareq.wire.client_examples")
    with _plain_errors(), _end_signals() as ended:
        kept = KEPT_EVENTS if journal else False
        named: dict[str, Any] = {"backend": backend} if backend else {"brokers": 1}
        given = {"brokers": brokers, "racks": racks, "seed": seed}
        named.update((key, value) for key, value in given.items() if value is not None)
        with Cluster(clock=clock, config=configs, journal=kept, **named) as cluster:
            for name, partitions in topics.items():
                if name not in cluster.image.topics:
                    cluster.create_topic(name, partitions)
            observer = (lambda exchanged: click.echo(str(exchanged))) if verbose else None
            file = growing(cluster.journal, journal) if journal else nullcontext(lambda: None)
            with file as flush, wire.Server(cluster, host, port or None, observer=observer) as server:
                gc.freeze()  # modules stay loaded: the collector need not scan them while clients wait
                count = len(cluster.brokers_alive)
                where = f" of {backend}" if backend else ""
                click.echo(f"shareq serves {count} broker{'s' * (count > 1)}{where} at {server.bootstrap_servers}")
                click.echo(f"\n{client_examples.client_examples_text(server.bootstrap_servers)}\n\nCtrl-C stops it.")
                while not ended.wait(FLUSH_S):
                    flush()
    click.echo("shareq has stopped.")


@contextmanager
def _end_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; the handlers are in place before the address is printed."""
    ended = threading.Event()
    former = [(one, signal.signal(one, lambda *_: ended.set())) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield ended
    finally:
        for one, handler in former:
            signal.signal(one, handler)


def _needed(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        extra = next((name for room, name in EXTRAS.items() if module.startswith(room)), "kafka")
        raise click.ClickException(f"the package {missing.name} is missing: {install_command(extra)}") from missing


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Show errors of the arguments and of the system as one line, without a traceback."""
    try:
        yield
    except (ConfigException, OSError) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaException as problem:
        raise click.ClickException(problem.error.str()) from problem


if __name__ == "__main__":
    main()
