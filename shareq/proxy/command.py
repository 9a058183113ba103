"""`shareq tap`: a transparent proxy in front of a Kafka, with the journal of its share groups."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from shareq.client.properties import client_properties
from shareq.extras import require
from shareq.model.errors import ConfigException, KafkaException, in_words
from shareq.proxy.tap import tap as open_tap
from shareq.signals.end_signals import end_signals, repeat
from shareq.trace.journal.growing_file import growing
from shareq.wire.client.tls import client_context

FLUSH_S = 0.2
"""The interval at which events are written to the file of `--journal`."""

KEPT_EVENTS = 200_000
"""The number of events that the journal keeps in memory: ample for FLUSH_S, bounded in a tap that runs for days."""

GOODBYE_S = 10.0
"""How long the page of `--show` may take to end its kernels."""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("bootstrap_servers", metavar="BOOTSTRAP")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The host name or address that clients connect to."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9192,
    show_default=True,
    help="The first broker's port, others follow; 0: free ports.",
)
@click.option(
    "--journal", type=click.Path(dir_okay=False, path_type=Path), help="Write all events to this file (JSON Lines)."
)
@click.option("--show", is_flag=True, help="Open the control room in the browser, as shareq show does.")
@click.option("--no-browser", is_flag=True, help="With --show: print the address, and open no browser.")
@click.option("--trace-messages", is_flag=True, help="Also journal the messages that pass, of all clients.")
@click.option(
    "--command-config",
    type=_FILE,
    metavar="FILE",
    help="A properties file with the tap's configurations as a client, such as security.protocol.",
)
@click.option("--tls", is_flag=True, help="Connect to the brokers with TLS. Clients connect to the tap without it.")
@click.option("--ca", type=_FILE, help="The certificates to trust, PEM.  [default: those of this machine]")
@click.option("--cert", type=_FILE, help="The tap's own certificate, PEM, for brokers that ask for one.")
@click.option("--key", type=_FILE, help="The key of --cert, PEM, if it is in a file of its own.")
def tap(
    bootstrap_servers: str,
    *,
    host: str,
    port: int,
    journal: Path | None,
    show: bool,
    no_browser: bool,
    trace_messages: bool,
    command_config: Path | None,
    tls: bool,
    ca: Path | None,
    cert: Path | None,
    key: Path | None,
) -> None:
    """Pass clients through to the Kafka at BOOTSTRAP until Ctrl-C, and journal its share groups.

    Clients connect to the printed address in place of BOOTSTRAP. Of what passes, only the addresses of brokers and the
    versions that they offer change.
    """
    if (ca or cert or key) and not tls:
        raise click.UsageError("--ca, --cert and --key need --tls")
    try:
        config = client_properties(command_config) if command_config else None
        if show:
            _require_page(config)
        context = client_context(ca, cert, key) if tls else None
        with (
            end_signals() as ended,
            open_tap(
                bootstrap_servers,
                host=host,
                port=port or None,
                capacity=KEPT_EVENTS,
                ssl=context,
                config=config,
                trace_messages=trace_messages,
            ) as opened,
            growing(opened.journal, journal) if journal else nullcontext(lambda: None) as flush,
        ):
            click.echo(f"shareq taps {bootstrap_servers} at {opened.bootstrap_servers}\n\nCtrl-C stops it.")
            with _page(opened.bootstrap_servers, no_browser=no_browser) if show else nullcontext():
                repeat(flush, FLUSH_S, ended)
    except (ConfigException, OSError) as problem:
        raise click.ClickException(in_words(problem)) from problem
    except KafkaException as problem:
        raise click.ClickException(problem.error.str()) from problem
    click.echo("shareq has stopped.")


def _require_page(config: Mapping[str, object] | None) -> None:
    """UsageError or ClickException if the page of `--show` cannot be shown."""
    if str((config or {}).get("security.protocol", "")).lower().startswith("sasl"):
        raise click.UsageError("--show has no login, which the brokers require of clients of this tap")
    try:
        require("lab", "voila")
    except ModuleNotFoundError as problem:
        raise click.ClickException(str(problem)) from problem


@contextmanager
def _page(address: str, *, no_browser: bool) -> Iterator[None]:
    """`shareq show` of the tap, in a process of its own: a page takes no time from the clients.

    It is in a session of its own, too: Ctrl-C in a terminal reaches the tap alone, which ends the page.
    """
    command = [sys.executable, "-m", "shareq.cli", "show", address, "--wait", "--of-tap"]
    command += ["--no-browser"] * no_browser
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(GOODBYE_S)
            except subprocess.TimeoutExpired:
                process.kill()
