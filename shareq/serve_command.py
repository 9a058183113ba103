"""`shareq serve`: a cluster for Kafka clients, until Ctrl-C."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shareq.client.properties import client_properties, properties_of
from shareq.commands import needed
from shareq.model.errors import ConfigException, KafkaException, in_words
from shareq.signals.end_signals import end_signals, repeat

if TYPE_CHECKING:
    from shareq.wire.server import Server

LOOPBACK, PORT = "127.0.0.1", 9092
"""Where `shareq serve` is by default."""

FLUSH_S = 0.2
"""The interval at which events are written to the file of `--journal`."""

KEPT_EVENTS = 200_000
"""The number of events that the journal keeps in memory: ample for FLUSH_S, bounded in a server that runs for days."""

_FILE = click.Path(dir_okay=False, path_type=Path)


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


@click.command()
@click.option("--brokers", type=int, help="The number of brokers, each on its own port.  [default: 1]")
@click.option(
    "--backend",
    metavar="HOST:PORT,...",
    help="An Apache Kafka that keeps topics, share groups and states; its brokers are the cluster's.",
)
@click.option(
    "--command-config",
    type=_FILE,
    metavar="FILE",
    help="With --backend: a properties file of clients for a secured one.",
)
@click.option(
    "--peer-config",
    type=_FILE,
    metavar="FILE",
    help="With --backend: a properties file of clients for other processes there, if the first listener is secured.",
)
@click.option(
    "--racks", callback=_racks, metavar="NAME,...", help="The rack of each broker, such as a,b,; empty: no rack."
)
@click.option("--host", help="The host name or address of all brokers.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The first broker's port, others follow; 0: free ports.  [default: 9092]",
)
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    metavar="NAME://HOST:PORT",
    help="In place of --host and --port: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, or a name that the configuration "
    "listener.security.protocol.map has; repeatable. Clients get the addresses of the listener by which they come.",
)
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
    "--persister",
    metavar="NAME",
    help="Where states of records are kept: state-topic (default), compacted-topic, control-records or none.",
)
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
@click.option(
    "--tls-cert", type=_FILE, metavar="FILE", help="The server's certificate with its chain, PEM: TLS on all ports."
)
@click.option(
    "--tls-key", type=_FILE, metavar="FILE", help="The key of --tls-cert, PEM, if it is in a file of its own."
)
@click.option("--tls-client-ca", type=_FILE, metavar="FILE", help="The CA of clients' certificates, PEM: mutual TLS.")
@click.option(
    "--sasl-users", type=_FILE, metavar="FILE", help="Users that log in by PLAIN or SCRAM: lines NAME=PASSWORD."
)
@click.option("-v", "--verbose", is_flag=True, help="Print one line for each request.")
def serve(
    *,
    brokers: int | None,
    backend: str | None,
    racks: list[str | None] | None,
    command_config: Path | None,
    peer_config: Path | None,
    host: str | None,
    port: int | None,
    listeners: tuple[str, ...],
    clock: str | float,
    seed: int | None,
    persister: str | None,
    topics: dict[str, int],
    configs: dict[str, str],
    journal: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    sasl_users: Path | None,
    verbose: bool,
) -> None:
    """Serve a cluster to Kafka clients until Ctrl-C. All data is in memory and is lost at the end; with --backend it
    is in topics of that Kafka, and the next run continues."""
    from shareq.broker import Cluster  # not at import: the other commands start without brokers
    from shareq.trace.journal.growing_file import growing

    wire, securities = needed("shareq.wire.server"), needed("shareq.wire.security.listener_security")
    place = _place(host, port, listeners)
    with _plain_errors(), end_signals() as ended:
        users = None if sasl_users is None else properties_of(sasl_users)
        security = securities.ListenerSecurity(
            tls_cert=tls_cert, tls_key=tls_key, tls_client_ca=tls_client_ca, users=users
        )
        kept = KEPT_EVENTS if journal else False
        named: dict[str, Any] = {"backend": backend} if backend else {"brokers": 1}
        named |= _connections(backend, command_config, peer_config)
        given = {"brokers": brokers, "racks": racks, "seed": seed, "persister": persister}
        named.update((key, value) for key, value in given.items() if value is not None)
        with Cluster(clock=clock, config=configs, journal=kept, **named) as cluster:
            for name, partitions in topics.items():
                if name not in cluster.image.topics:
                    cluster.create_topic(name, partitions)
            observer = (lambda exchanged: click.echo(str(exchanged))) if verbose else None
            file = growing(cluster.journal, journal) if journal else nullcontext(lambda: None)
            with file as flush, wire.Server(cluster, **place, observer=observer, security=security) as server:
                gc.freeze()  # modules stay loaded: the collector need not scan them while clients wait
                _announce(server, sum(cluster.front.brokers.values()), backend)
                repeat(flush, FLUSH_S, ended)
    click.echo("shareq has stopped.")


def _place(host: str | None, port: int | None, listeners: tuple[str, ...]) -> dict[str, object]:
    """The arguments of a server that say where it is. UsageError: they are given twice."""
    if not listeners:
        return {"host": host or LOOPBACK, "ports": PORT if port is None else port or None}
    if host is not None or port is not None:
        raise click.UsageError("--listener names host and port: it excludes --host and --port")
    return {"listeners": listeners}


def _connections(backend: str | None, command_config: Path | None, peer_config: Path | None) -> dict[str, object]:
    """The arguments of a cluster about its connections to a backend. UsageError: there is none."""
    given = {"backend_config": command_config, "peer_config": peer_config}
    if backend is None and any(given.values()):
        raise click.UsageError("--command-config and --peer-config are possible only with --backend")
    return {name: client_properties(file) for name, file in given.items() if file is not None}


def _announce(server: Server, brokers: int, backend: str | None) -> None:
    """Print where the server is, and what clients do there."""
    examples = needed("shareq.wire.client_examples").client_examples_text(server.bootstrap_servers)
    where = f" of {backend}" if backend else ""
    click.echo(f"shareq serves {brokers} broker{'s' * (brokers > 1)}{where} at {server.bootstrap_servers}")
    for more in server.more_listeners:
        click.echo(f"and at {more}")
    settings = f"Clients set {server.client_settings}" if server.client_settings else ""
    click.echo(f"\n{settings or examples}\n\nCtrl-C stops it.")


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Show errors of the arguments and of the system as one line, without a traceback."""
    try:
        yield
    except (ConfigException, OSError) as problem:
        raise click.ClickException(in_words(problem)) from problem
    except KafkaException as problem:
        raise click.ClickException(problem.error.str()) from problem
