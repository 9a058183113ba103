"""`shareq observe`: the health of share groups in a terminal, as JSON, and for Prometheus."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import click

from shareq.client.properties import client_properties
from shareq.extras import install_command
from shareq.model.errors import ConfigException, Errors, KafkaException, in_words
from shareq.model.printable import printable
from shareq.observer.core import REQUEST_TIMEOUT_MS
from shareq.observer.health.limits import Limits
from shareq.observer.health.lines import Lines
from shareq.observer.health.monitor import MIN_INTERVAL_MS, Monitor, monitor
from shareq.observer.health.report import Kind, Report
from shareq.observer.prometheus import ALERTS, DASHBOARD, example
from shareq.signals.end_signals import end_signals

Show = Callable[[Report], None]

FINE, EXCEEDED, REFUSED = 0, 1, 2
"""Exit codes: no limit is exceeded; a limit is; bad usage, or a cluster or group that cannot be observed."""

START_S = 30
"""The time in which the first poll must have ended."""

SILENCE_S = 2 * REQUEST_TIMEOUT_MS / 1000
"""When the first poll of a cluster that answers nothing ends: after two requests."""

SETTLING_POLLS, SETTLING_S = 3, 1
"""The number of polls that a group gets at the start until it can be read, and the pause before each of them."""

CHECK_S = 0.5
"""The interval at which a signal is noticed while no poll ends."""


class Refusal(click.ClickException):
    exit_code = REFUSED


def _print_example(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        del param
        if value and not ctx.resilient_parsing:
            click.echo(example(name), nl=False)
            ctx.exit()

    return callback


@click.command()
@click.argument("bootstrap_servers", metavar="BOOTSTRAP")
@click.argument("groups", nargs=-1, metavar="GROUP...")
@click.option("--command-config", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="A properties file with the client's configurations, such as security.protocol.")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Observe all share groups of the cluster.")
@click.option(
    "--interval", default=2.0, show_default=True, type=click.FloatRange(MIN_INTERVAL_MS / 1000), metavar="SECONDS",
    help="The time between two polls.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Report once; with --stuck-for, as soon as that is decided.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each poll.")
@click.option("--max-lag", type=click.IntRange(0), metavar="RECORDS", help="Exit with 1 if a group has a larger lag.")
@click.option(
    "--stuck-for", type=click.FloatRange(0), metavar="SECONDS",
    help="Exit with 1 if records of a share-partition wait for so long and its start offset does not move.",
)  # fmt: skip
@click.option(
    "--prometheus", type=click.IntRange(0, 65535), metavar="PORT", help="Serve metrics on this port; 0: a free one."
)
@click.option("--prometheus-host", default="127.0.0.1", show_default=True, help="The address to serve metrics on.")
@click.option("--alerts", is_flag=True, is_eager=True, expose_value=False, callback=_print_example(ALERTS),
              help="Print example rules for Prometheus, and exit.")  # fmt: skip
@click.option("--dashboard", is_flag=True, is_eager=True, expose_value=False, callback=_print_example(DASHBOARD),
              help="Print an example dashboard for Grafana, and exit.")  # fmt: skip
def observe(
    *,
    bootstrap_servers: str,
    groups: tuple[str, ...],
    command_config: Path | None,
    every: bool,
    interval: float,
    once: bool,
    as_json: bool,
    max_lag: int | None,
    stuck_for: float | None,
    prometheus: int | None,
    prometheus_host: str,
) -> None:
    """Observe share groups of the Kafka at BOOTSTRAP, by reading only, until Ctrl-C.

    Exit codes: 0 if no limit is exceeded, 1 if one is (at once), 2 for bad usage and for a cluster or group that cannot
    be observed.
    """
    if every == bool(groups):
        raise click.UsageError("name one or more groups, or give --all")
    limits = Limits(max_lag, None if stuck_for is None else round(stuck_for * 1000))
    with _exit_codes():
        config = client_properties(command_config) if command_config else None
        with (
            end_signals() as ended,
            monitor(
                bootstrap_servers, None if every else groups, interval_ms=round(interval * 1000), config=config
            ) as opened,
        ):
            _await_first_poll(opened, ended)
            with _metrics(opened, prometheus, prometheus_host), _output(as_json, once) as show:
                code, exceeded = _watch(opened, ended, show, limits, once=once)
        for sentence in exceeded:
            click.echo(printable(sentence), err=True)
        raise SystemExit(code)


@contextmanager
def _exit_codes() -> Iterator[None]:
    """End the command with the exit code of an exception; that of Python, 1, means an exceeded limit."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has ended, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FINE) from None
    except ModuleNotFoundError as missing:
        raise Refusal(f"the package {missing.name} is missing: {install_command('kafka')}") from missing
    except (ConfigException, OSError) as problem:
        raise Refusal(in_words(problem)) from problem
    except KafkaException as problem:
        raise Refusal(problem.error.str()) from problem
    except click.ClickException:
        raise
    except Exception:
        traceback.print_exc()
        raise SystemExit(REFUSED) from None


def _await_first_poll(opened: Monitor, ended: threading.Event) -> None:
    """Refusal if the cluster or a named group cannot be observed at the start.

    A coordinator that is about to load, or whose topic the first request has created, gets a few polls.
    """
    opened.await_sign(lambda: bool(opened.polls) or ended.is_set(), opened.bootstrap_servers, SILENCE_S)
    opened.wait(lambda: bool(opened.polls) or ended.is_set(), START_S)
    for _ in range(SETTLING_POLLS):
        if ended.is_set() or opened.report.unreachable_since_ms is not None or not _unreadable(opened.report):
            break
        opened.wait(ended.is_set, SETTLING_S)
        opened.refresh()
    report, failure = opened.report, opened.failure
    where = opened.bootstrap_servers
    if failure is not None and failure.error.code() == Errors.UNSUPPORTED_VERSION:
        why = f"{where} has no share groups: {failure.error.str()}"
        raise Refusal(f"{why}; Kafka 4.2 or later is needed, with share.version=1")
    if ended.is_set():
        return
    if not opened.polls or report.unreachable_since_ms is not None:
        raise Refusal(f"{where} is unreachable: {report.trouble or f'no answer within {START_S} s'}")
    missing = [d.group for group in report.groups for d in group.diagnoses if d.kind is Kind.GROUP_UNKNOWN]
    if missing:
        raise Refusal(f"no such share group at {where}: {printable(', '.join(missing))}")


def _watch(opened: Monitor, ended: threading.Event, show: Show, limits: Limits, *, once: bool) -> tuple[int, list[str]]:
    """Show each report until the end; the exit code, and the limits that are exceeded."""
    for report in _reports(opened, ended):
        undecided = once and not limits.decided(report)
        exceeded = limits.exceeded(report) if report.unreachable_since_ms is None else []
        if exceeded or not undecided:
            show(report)
        if exceeded:
            return EXCEEDED, exceeded
        if once and not undecided:
            return (REFUSED if _unreadable(report) else FINE), []
    return FINE, []


def _reports(opened: Monitor, ended: threading.Event) -> Iterator[Report]:
    """The report of each poll, beginning with the last one."""
    seen = 0
    while not ended.is_set():
        if opened.polls > seen:
            seen = opened.polls
            yield opened.report
        else:
            opened.wait(partial(_ended_after, opened, seen, ended), CHECK_S)


def _ended_after(opened: Monitor, seen: int, ended: threading.Event) -> bool:
    return opened.polls > seen or ended.is_set()


def _unreadable(report: Report) -> bool:
    unread = any(d.kind is Kind.NOT_READABLE for group in report.groups for d in group.diagnoses)
    return unread or report.unreachable_since_ms is not None


# ---- output ----------------------------------------------------------------------------------------------------------


@contextmanager
def _output(as_json: bool, once: bool) -> Iterator[Show]:
    """A table that is drawn anew in a terminal, lines elsewhere, JSON by choice."""
    if as_json:
        yield lambda report: click.echo(json.dumps(report.to_dict(), separators=(",", ":")))
    elif not sys.stdout.isatty():
        yield Lines().show
    else:
        yield from _table(once)


def _table(once: bool) -> Iterator[Show]:
    from rich.console import Console
    from rich.live import Live

    from shareq.observer.health.terminal import MAX_LINES, screen

    console = Console()
    if once:
        yield lambda report: console.print(screen(report, MAX_LINES))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda report: live.update(screen(report, console.height), refresh=True)


def _metrics(opened: Monitor, port: int | None, host: str) -> AbstractContextManager[None]:
    return nullcontext() if port is None else _served_metrics(opened, port, host)


@contextmanager
def _served_metrics(opened: Monitor, port: int, host: str) -> Iterator[None]:
    """Serve the metrics of the monitor over HTTP."""
    from prometheus_client import CollectorRegistry, start_http_server

    from shareq.observer.prometheus.collector import HealthCollector

    registry = CollectorRegistry()
    registry.register(HealthCollector(opened))
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as problem:
        raise Refusal(f"--prometheus {port}: cannot serve metrics at {host}:{port}: {problem.strerror}") from problem
    click.echo(f"metrics at http://{host}:{server.server_port}/metrics", err=True)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
