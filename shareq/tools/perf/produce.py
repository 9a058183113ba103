"""`shareq perf produce`: Kafka's kafka-producer-perf-test. It writes records, and prints rates and latencies.

Source: the options and lines of Kafka 4.4's tool. Its properties of several words are repeated options here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import count, repeat
from pathlib import Path
from typing import Any

import click

from shareq.client.message import Message
from shareq.client.properties import client_properties
from shareq.model.errors import KafkaError, KafkaException
from shareq.producer import Producer
from shareq.tools.connection import Connection, client_options, pairs_of
from shareq.tools.options import the_one
from shareq.tools.perf.latencies import Latencies
from shareq.tools.rows import print_json
from shareq.tools.sender import Sender

TRANSACTION_MS = 3000
CLIENT_ID = "perf-producer-client"
_FILE = click.Path(dir_okay=False, path_type=Path)
_POSITIVE = click.IntRange(min=1)
_LETTERS = bytes(65 + code % 26 for code in range(256))
"""Turns random bytes into capital letters."""


@click.command()
@client_options
@click.option("--topic", required=True, help="The topic.")
@click.option("--num-records", type=_POSITIVE, required=True, metavar="N", help="The number of records.")
@click.option("--throughput", type=float, required=True, metavar="N", help="The most records a second; -1: no limit.")
@click.option("--record-size", type=_POSITIVE, metavar="BYTES", help="Random values of this size.")
@click.option("--payload-file", type=_FILE, metavar="FILE", help="Values that are chosen at random from a file.")
@click.option("--payload-delimiter", default="\\n", show_default=True, help="Between the values of the file.")
@click.option("--payload-monotonic", is_flag=True, help="The values 0, 1, 2 and so on.")
@click.option("--transactional-id", metavar="ID", help="Write in transactions.")
@click.option("--transaction-duration-ms", type=_POSITIVE, metavar="MS", help="Commit so often.  [default: 3000]")
@click.option("--warmup-records", type=int, default=0, metavar="N", help="Print statistics without these, too.")
@click.option("--reporting-interval", type=_POSITIVE, default=5000, show_default=True, metavar="MS")
@click.option("--print-metrics", is_flag=True, hidden=True)
@click.option("--producer-props", multiple=True, hidden=True, help="The former --command-property.")
@click.option("--producer.config", "producer_config", type=_FILE, hidden=True, help="The former --command-config.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects at the end, and progress on stderr.")
def produce(connection: Connection, **given: Any) -> None:
    """Measure a producer, as kafka-producer-perf-test does."""
    payload = the_one(given, ("record_size", "payload_file", "payload_monotonic"), "one payload is needed")
    if given["warmup_records"] >= given["num_records"]:
        raise click.UsageError("--warmup-records must be less than --num-records")
    if not given["throughput"] > 0 and given["throughput"] != -1:
        raise click.UsageError("--throughput must be a number of records a second above 0, or -1")
    if given["print_metrics"]:
        raise click.UsageError("--print-metrics: shareq's producer has no metrics")
    show: Callable[[str], object] = lambda line: click.echo(line, err=given["as_json"])  # noqa: E731
    payloads = _payloads(payload, given, show)
    config = _config(connection, given)
    with Producer(config) as producer:
        run = _Run(producer, given, show, transactional="transactional.id" in config)
        run.produce(payloads)
    now_ms = run.now_ms()
    summaries = [stats for stats in (run.stats, run.steady) if stats is not None]
    if given["as_json"]:
        print_json([stats.row(now_ms) for stats in summaries])
    else:
        for stats in summaries:
            click.echo(stats.summary(now_ms))
    if run.failures:
        first = next(iter(run.failures))
        raise click.ClickException(f"records that were not written: {sum(run.failures.values())} ({first})")


def _config(connection: Connection, given: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = client_properties(given["producer_config"]) if given["producer_config"] else {}
    config |= pairs_of("--producer-props", given["producer_props"])
    config = {"client.id": CLIENT_ID, **config, **connection.config()}
    if given["transactional_id"]:
        config["transactional.id"] = given["transactional_id"]
    elif given["transaction_duration_ms"]:
        config.setdefault("transactional.id", f"performance-producer-{random.Random().getrandbits(128):032x}")
    return config


def _payloads(kind: str, given: dict[str, Any], show: Callable[[str], object]) -> Iterator[bytes]:
    """The values of the records, without end."""
    rng = random.Random(0)
    if kind == "payload_monotonic":
        return (b"%d" % number for number in count())
    if kind == "record_size":
        size = given["record_size"]
        return (rng.randbytes(size).translate(_LETTERS) for _ in repeat(None))
    path: Path = given["payload_file"]
    show(f"Reading payloads from: {path.absolute()}")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text:
        raise click.ClickException("File does not exist or empty file provided.")
    delimiter = given["payload_delimiter"].replace("\\n", "\n").replace("\\t", "\t")
    found = [value.encode() for value in text.removesuffix(delimiter).split(delimiter)]
    show(f"Number of messages read: {len(found)}")
    return (rng.choice(found) for _ in repeat(None))


class _Run:
    """Writes the records. `stats` are those of all, `steady` those after the warm-up. `failures`: the number of records
    that were not written, by reason."""

    def __init__(
        self, producer: Producer, given: dict[str, Any], show: Callable[[str], object], *, transactional: bool
    ) -> None:
        self._producer = producer
        self._sender = Sender(producer)
        self._topic: str = given["topic"]
        self._records: int = given["num_records"]
        self._warmup: int = max(given["warmup_records"], 0)
        self._throughput: float = given["throughput"]
        self._interval_ms: int = given["reporting_interval"]
        self._transaction_ms: int | None = None
        if transactional:
            self._transaction_ms = given["transaction_duration_ms"] or TRANSACTION_MS
        self._show = show
        self.stats: Latencies | None = None
        self.steady: Latencies | None = None
        self.failures: dict[str, int] = {}

    @staticmethod
    def now_ms() -> float:
        return time.monotonic() * 1000

    def produce(self, payloads: Iterator[bytes]) -> None:
        if self._transaction_ms is not None:
            self._producer.init_transactions()
        if self._warmup:
            self._show(
                f"Warmup first {self._warmup} records. Steady state results will print after the complete test summary."
            )
        start_ms = self.now_ms()
        self.stats = stats = Latencies(self._records, start_ms, self._interval_ms, self._show)
        begun_ms: float | None = None
        for index in range(self._records):
            now_ms = self.now_ms()
            if self._transaction_ms is not None and begun_ms is None:
                self._producer.begin_transaction()
                begun_ms = now_ms
            if self._warmup and index == self._warmup:
                left = self._records - self._warmup
                self.steady = Latencies(left, now_ms, self._interval_ms, self._show, steady=True)
                stats.show = None
            self._send(next(payloads), now_ms)
            if begun_ms is not None and self._transaction_ms is not None and self._transaction_ms <= now_ms - begun_ms:
                self._producer.commit_transaction()
                begun_ms = None
            if self._throughput > 0:
                self._wait_until(start_ms + 1000 * (index + 1) / self._throughput)
        if begun_ms is not None:
            self._producer.commit_transaction()
        self._producer.flush()

    def _send(self, payload: bytes, sent_ms: float) -> None:
        size, stats, steady = len(payload), self.stats, self.steady

        def delivered(error: KafkaError | None, message: Message) -> None:
            del message
            if error is not None:
                self.failures[error.str()] = self.failures.get(error.str(), 0) + 1
                return
            now_ms = self.now_ms()
            for counted in (stats, steady):
                if counted is not None:
                    counted.add(int(now_ms - sent_ms), size, now_ms)

        try:
            self._sender.send(self._topic, payload, on_delivery=delivered)
        except KafkaException as refused:
            delivered(refused.error, Message())

    def _wait_until(self, due_ms: float) -> None:
        """Pass the time until the next record is due, with the results of others."""
        while (left_ms := due_ms - self.now_ms()) > 0:
            if len(self._producer):
                self._producer.poll(left_ms / 1000)
            else:
                time.sleep(left_ms / 1000)
