"""Spark reads a share group through the proxy while brokers stop and start; then a query without faults reads the rest.

The rows of all batches are compared with the logs, the producer's reports and the journal.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shareq import Admin, Cluster
from shareq.model.states import RecordState
from tests.broker.ledger import Books, Place
from tests.polling import PATIENCE_S, eventually
from tests.soak.proxy import Fault, Frame, Plan, Proxy
from tests.soak.stage import MOVES, Moves, read_log
from tests.soak.team import CONF, PLAIN, Progress, WorkerContext, Writer
from tests.spark.patience import BUSY, TIMEOUT_S, finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FRAMES = 20
"""Number of frames between two moves."""

AHEAD = 1000
"""Upper bound of written records that no batch has yet."""

GROUP = "s"
CONFIGS = {
    "share.auto.offset.reset": "earliest",
    "share.session.timeout.ms": 6000,  # Spark stops a query's reader, a member, without a leave request
}


class CountingPlan(Plan):
    """A random rule that counts frames."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        super().__init__(rng, rate)
        self.ticks = threading.Semaphore(0)
        self._frames = 0

    def __call__(self, frame: Frame) -> Fault | None:
        self._frames += 1
        if self._frames % FRAMES == 0:
            self.ticks.release()
        return super().__call__(frame)


class Sink:
    """The rows of all batches, with the journal's state of the share-partitions at the time of each batch."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._books = Books(GROUP)
        self._read = 0
        self.values: dict[Place, str] = {}
        self.deliveries: Counter[Place] = Counter()
        self.batches = 0
        self.redelivered: list[Place] = []
        """Places in a batch whose acceptance was durable before the batch."""
        self.progress = Progress()

    def __call__(self, batch: DataFrame, number: int) -> None:
        self._catch_up()
        rows = batch.select("topic", "partition", "offset", "value").collect()
        places = {(row.topic, row.partition, row.offset): bytes(row.value).decode() for row in rows}
        assert len(places) == len(rows), f"batch {number} has a record twice"
        self.redelivered += [place for place in places if self._books.state.get(place) is RecordState.ACKNOWLEDGED]
        self.values |= places
        self.deliveries.update(places.keys())
        self.batches += 1
        self.progress.add(len(rows))

    def _catch_up(self) -> None:
        entries = self._cluster.journal.since(self._read)
        self._books.read(entries)
        self._read += len(entries)

    def books(self) -> Books:
        self._catch_up()
        return self._books


class PacedWriter(Writer):
    """Writes only as fast as Spark reads."""

    def __init__(self, sink: Sink, *args: Any) -> None:
        super().__init__(*args)
        self._sink = sink

    def turn(self) -> None:
        if len(self.records) - len(self._sink.values) < AHEAD:
            super().turn()
        else:
            self.producer.poll(0.1)


def restarted(query: Any, start: Callable[[], Any]) -> Any:
    """The query, restarted if it ended with BUSY; no other error may end it."""
    error = query.exception()
    assert error is None or BUSY in str(error), error
    return start() if error else query


@pytest.mark.timeout(900)
def test_every_record_reaches_the_sink_once(
    spark: SparkSession, cluster: Cluster, proxy: Proxy, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    cluster.configure_group(GROUP, CONFIGS)
    moves = Moves(cluster, proxy, rng)
    sink = Sink(cluster)
    writer = PacedWriter(sink, "w", WorkerContext(proxy.bootstrap_servers, random.Random(seed), Progress()))
    options = {f"kafka.{key}": str(value) for key, value in CONF.items()}
    options |= {"kafka.bootstrap.servers": proxy.bootstrap_servers, "subscribe": PLAIN, "group.id": GROUP}
    source = spark.readStream.format("shareq").options(**options, maxRecordsPerBatch="200").load()
    query = source.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))

    writer.start()
    running = query.start()
    sink.progress.wait_for(1)
    pulse = proxy.rule = CountingPlan(rng, 0.05)
    for move in moves.draw(max(6, MOVES // 5)):
        assert pulse.ticks.acquire(timeout=PATIENCE_S), "the clients make no progress"
        running = restarted(running, query.start)
        move()
    moves.end_faults()
    writer.stop()
    writer.end()
    running.stop()
    finish(query.trigger(availableNow=True).start, TIMEOUT_S)

    acknowledged, written = writer.acknowledged(), read_log(cluster, PLAIN)
    assert acknowledged.items() <= written.items()
    assert sink.values == written, "the sink and the log differ"
    assert sink.redelivered == [], "an accepted record was delivered again"
    with Admin({"bootstrap.servers": proxy.bootstrap_servers}) as admin:
        eventually(lambda: {row.lag for row in admin.list_share_group_offsets(GROUP).values()}, {0})
    assert sink.books().accepted == dict.fromkeys(written, 1)
    print(
        f"{len(written)} records, {sink.batches} batches, {sink.deliveries.total()} rows, {proxy.frames} frames, "
        f"faults { {str(fault): count for fault, count in proxy.injected.items()} }"
    )
