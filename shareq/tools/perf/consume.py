"""`shareq perf consume`: Kafka's kafka-share-consumer-perf-test. It reads records as members of a group, and prints
rates.

Source: the options and columns of Kafka 4.4's tool. In contrast to it, too few records end it with 1.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

import click

from shareq.client.properties import client_properties
from shareq.consumer import ShareConsumer
from shareq.tools.connection import Connection, client_options
from shareq.tools.hints import without_hints
from shareq.tools.perf.latencies import MIB
from shareq.tools.rows import print_json

COLUMNS = (
    "start.time",
    "end.time",
    "data.consumed.in.MB",
    "MB.sec",
    "nMsg.sec",
    "data.consumed.in.nMsg",
    "fetch.time.ms",
)
CLIENT_ID = "perf-share-consumer-client"
POLL_S = 0.1
_FILE = click.Path(dir_okay=False, path_type=Path)
_POSITIVE = click.IntRange(min=1)
_DATE_PARTS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _date_format(ctx: click.Context, param: click.Parameter, value: str) -> Callable[[float], str]:
    """The part of Java's SimpleDateFormat that names numbers: yyyy, MM, dd, HH, mm, ss and SSS."""
    del ctx, param
    if re.search(r"[A-Za-z]", re.sub(r"yyyy|MM|dd|HH|mm|ss|SSS", "", value)):
        raise click.BadParameter(f"{value!r}: may have the letters yyyy, MM, dd, HH, mm, ss and SSS")
    parts = re.split(r"(yyyy|MM|dd|HH|mm|ss|SSS)", value)

    def show(at: float) -> str:
        moment = datetime.fromtimestamp(at).astimezone()
        millis = f"{moment.microsecond // 1000:03d}"
        return "".join(moment.strftime(_DATE_PARTS[p]) if p in _DATE_PARTS else p.replace("SSS", millis) for p in parts)

    return show


@click.command()
@client_options
@click.option("--topic", required=True, help="The topic.")
@click.option("--num-records", "--messages", type=_POSITIVE, required=True, metavar="N", help="End after N records.")
@click.option("--group", default="perf-share-consumer", show_default=True, metavar="ID", help="The share group.")
@click.option("--threads", type=_POSITIVE, default=1, show_default=True, metavar="N", help="The number of consumers.")
@click.option("--timeout", type=int, default=10_000, show_default=True, metavar="MS", help="The wait for a record.")
@click.option("--reporting-interval", type=_POSITIVE, default=5000, show_default=True, metavar="MS")
@click.option("--show-detailed-stats", is_flag=True, help="Print a line for each reporting interval.")
@click.option("--show-consumer-stats", is_flag=True, help="Print a line for each consumer.")
@click.option("--hide-header", is_flag=True, help="Print no header.")
@click.option("--date-format", callback=_date_format, default="yyyy-MM-dd HH:mm:ss:SSS", show_default=True)
@click.option("--fetch-size", type=_POSITIVE, default=1 << 20, show_default=True, metavar="BYTES")
@click.option("--socket-buffer-size", type=_POSITIVE, default=2 << 20, show_default=True, metavar="BYTES")
@click.option("--print-metrics", is_flag=True, help="Print the metrics of the consumers.")
@click.option("--consumer.config", "consumer_config", type=_FILE, hidden=True, help="The former --command-config.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def consume(connection: Connection, **given: Any) -> None:
    """Measure the consumers of a share group, as kafka-share-consumer-perf-test does."""
    config = client_properties(given["consumer_config"]) if given["consumer_config"] else {}
    sizes = {"fetch.max.bytes": given["fetch_size"], "socket.receive.buffer.bytes": given["socket_buffer_size"]}
    config = {"client.id": CLIENT_ID, **sizes, **config, **connection.config(), "group.id": given["group"]}
    if not given["hide_header"] and not given["as_json"]:
        click.echo(", ".join(COLUMNS))
    with ExitStack() as closing:
        closing.enter_context(without_hints())
        names = _client_ids(config["client.id"], given["threads"])
        members = [closing.enter_context(ShareConsumer({**config, "client.id": name})) for name in names]
        run = _Run(given)
        run.consume(members)
        metrics = [member.metrics() for member in members] if given["print_metrics"] else []
        for member in members:
            member.commit_sync()
    rows = [run.row(reader.records, reader.size) for reader in run.readers]
    total = run.row(sum(reader.records for reader in run.readers), sum(reader.size for reader in run.readers))
    if given["as_json"]:
        consumers = [{"client_id": name, **row} for name, row in zip(names, rows, strict=True)]
        print_json([*(consumers if given["show_consumer_stats"] else []), total])
    else:
        for number, (name, row) in enumerate(zip(names, rows, strict=True), 1):
            if given["show_consumer_stats"]:
                click.echo(f"Share consumer {number} having client id {name} consumption metrics- {_line(row)}")
        click.echo(_line(total))
    for found in metrics:
        _print_metrics(found, err=given["as_json"])
    if not run.complete:
        raise click.ClickException(
            "Exiting before consuming the expected number of records: timeout "
            f"({given['timeout']} ms) exceeded. You can use the --timeout option to increase the timeout."
        )


def _client_ids(name: str, count: int) -> list[str]:
    """The name of the only consumer; several have numbers."""
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


def _line(row: dict[str, object]) -> str:
    return ", ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values())


def _print_metrics(metrics: dict[str, float], *, err: bool) -> None:
    width = max(map(len, metrics))
    click.echo(f"\n{'Metric Name':<{width}} Value", err=err)
    for name, value in sorted(metrics.items()):
        click.echo(f"{name:<{width}} : {value:.3f}", err=err)


@dataclass(slots=True)
class _Reader:
    """What one consumer has read, now and at its last report."""

    number: int
    records: int = 0
    size: int = 0
    reported: tuple[int, int] = (0, 0)
    reported_at: float = field(default_factory=time.time)


class _Run:
    """All consumers, each in a thread of its own, until they have read enough together or receive nothing."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._wanted: int = given["num_records"]
        self._topic: str = given["topic"]
        self._timeout_s: float = given["timeout"] / 1000
        self._interval_s: float = given["reporting_interval"] / 1000
        self._date: Callable[[float], str] = given["date_format"]
        self._detailed: bool = given["show_detailed_stats"]
        self._err: bool = given["as_json"]
        self._lock = Lock()
        self._read = 0
        self._start = self._end = time.time()
        self.readers: list[_Reader] = []

    @property
    def complete(self) -> bool:
        return self._read >= self._wanted

    def consume(self, members: list[ShareConsumer]) -> None:
        for member in members:
            member.subscribe([self._topic])
        self._start = time.time()
        self.readers = [_Reader(number) for number in range(1, len(members) + 1)]
        with ThreadPoolExecutor(len(members)) as pool:
            for done in [pool.submit(self._one, *pair) for pair in zip(members, self.readers, strict=True)]:
                done.result()
        self._end = time.time()

    def _one(self, member: ShareConsumer, reader: _Reader) -> None:
        last = time.monotonic()
        while not self.complete and time.monotonic() - last <= self._timeout_s:
            messages = member.poll(POLL_S)
            if not messages:
                continue
            last = time.monotonic()
            reader.records += len(messages)
            reader.size += sum(len(message.key() or b"") + len(message) for message in messages)
            with self._lock:
                self._read += len(messages)
            now = time.time()
            if now - reader.reported_at >= self._interval_s:
                if self._detailed:
                    click.echo(self._progress(reader, now), err=self._err)
                reader.reported, reader.reported_at = (reader.records, reader.size), now

    def _progress(self, reader: _Reader, now: float) -> str:
        elapsed_s = now - reader.reported_at
        records, size = reader.reported
        rates = f"{(reader.size - size) / MIB / elapsed_s:.4f}, {(reader.records - records) / elapsed_s:.4f}"
        return (
            f"{self._date(reader.reported_at)}, {self._date(now)}, {reader.size / MIB:.4f}, {rates}, {reader.records}, "
            f"{round(elapsed_s * 1000)} for share consumer {reader.number}"
        )

    def row(self, records: int, size: int) -> dict[str, object]:
        """The columns of some of the records."""
        elapsed_s = max(self._end - self._start, 0.001)
        values = (
            self._date(self._start),
            self._date(self._end),
            size / MIB,
            size / MIB / elapsed_s,
            records / elapsed_s,
            records,
            round(elapsed_s * 1000),
        )
        return dict(zip(COLUMNS, values, strict=True))
