"""Reads topics with Spark's Kafka source and with shareq's source in turn, and prints the figures as JSON.

    python spark_sources.py BOOTSTRAP RECORDS JARS SINKS PARTITIONS...

For each number of partitions there is a full topic, `full-N`, and an empty one, `paced-N`. The machine has other work
than the query, so processor time, that of the JVM and of the Python workers, is the more stable figure.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from operator import itemgetter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from shareq import Producer
from shareq.admin import Admin
from shareq.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = {"Spark's own": 0, "shareq, 10,000 locks": 10_000, "shareq, 2,000 locks": 2_000}
"""The most records of a partition that a share group locks, by source; 0: no share group."""

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""What the sink "delta" needs. Each of its commits reads the log of the table by so many tasks, 50 by default: on two
cores a commit then takes 4 s."""

ROUNDS = 2
SECONDS = 6
"""A query ends when it has read all records, or at the end of the batch in which this time is over."""

PACE = 1_000
"""Records a second for the latency, for TASTED and then PACED seconds, of which the first are warm-up."""
TASTED, PACED = 4, 8

_groups = count()


class Query(NamedTuple):
    """What one query has read."""

    records: int
    seconds: float
    cpu: dict[str, float]
    """Processor time in seconds, by the names of CPU."""
    batches: list[dict[str, int]]
    """Of each batch its rows, and the milliseconds of its parts, by Spark's names."""


def summed(queries: Sequence[Query]) -> dict[str, Any]:
    """The figures of equal queries. `fastest`: the batch, of the largest ones; `median`: of their milliseconds."""
    sums = {name: sum(getattr(query, name) for query in queries) for name in ("records", "seconds")}
    cpu = {name: sum(query.cpu[name] for query in queries) for name in CPU}
    batches = [batch for query in queries for batch in query.batches]
    most = max(batch["rows"] for batch in batches)
    largest = sorted((b for b in batches if b["rows"] == most), key=itemgetter("triggerExecution"))
    median = round(statistics.median(batch["triggerExecution"] for batch in largest))
    return {**sums, "batches": len(batches), "cpu": cpu, "fastest": largest[0], "median": median}


class Sources(NamedTuple):
    """Both sources in one Spark session, on the topics of one cluster."""

    spark: SparkSession
    address: str

    def read(self, source: str, topic: str, start: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": self.address, "subscribe": topic}
        if not SOURCES[source]:
            return self.spark.readStream.format("kafka").options(**options, startingOffsets=start).load()
        group = f"{topic}-{next(_groups)}"
        with Admin({"bootstrap.servers": self.address}) as admin:
            limits = {"share.auto.offset.reset": start, "share.partition.max.record.locks": str(SOURCES[source])}
            admin.alter_group_configs(group, limits)
        return self.spark.readStream.format("shareq").options(**options, **{"group.id": group}).load()


QUERY, COMPILER, JAVA = "Java: query", "Java: compiler, collector", "Java: tasks, the rest"
PYTHON_TASKS, PLANNER, DRIVER = "Python: tasks", "Python: planner", "Python: driver"
CPU = QUERY, COMPILER, JAVA, PYTHON_TASKS, PLANNER, DRIVER
"""What takes processor time: threads of the JVM, the workers of tasks, the process in which Spark calls a source's
reader for offsets and partitions, and this process."""

THREADS = {
    "stream executio": QUERY,
    **dict.fromkeys(("C1 ", "C2 ", "G1 ", "GC ", "VM "), COMPILER),
}
"""The beginnings of the names of threads, of which Linux keeps 15 characters. Those of tasks change their names."""


def cpu_seconds() -> dict[tuple[int, str], float]:
    """Processor time of the processes of this session so far, in seconds, by process and what it is for."""
    found: defaultdict[tuple[int, str], float] = defaultdict(float)
    for process in Path("/proc").glob("[0-9]*"):
        number = int(process.name)
        with suppress(OSError):  # it has ended meanwhile
            _, session, seconds = _times(process)
            if session != os.getsid(0):
                continue
            part = _part_of(number, (process / "cmdline").read_bytes())
            found[number, part] += seconds
            for thread in (process / "task").iterdir() if part == JAVA else ():
                name, _, seconds = _times(thread)
                named = next((part for start, part in THREADS.items() if name.startswith(start)), JAVA)
                found[number, named] += seconds
                found[number, JAVA] -= seconds
    return found


def _times(folder: Path) -> tuple[str, int, float]:
    """The name of a process or a thread, its session, and its processor time in seconds."""
    head, _, rest = (folder / "stat").read_text().rpartition(")")
    fields = rest.split()
    return head.partition("(")[2], int(fields[3]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _part_of(process: int, command: bytes) -> str:
    if process == os.getpid():
        return DRIVER
    if b"java" in command.partition(b"\0")[0]:
        return JAVA
    return PYTHON_TASKS if command.rstrip(b"\0").endswith(b"pyspark.worker") else PLANNER


def throughput(rows: DataFrame, sink: str, records: int, seconds: float = SECONDS) -> Query:
    """Read a full topic. The time is that of the batches, without the start of the query."""
    folder = tempfile.mkdtemp()
    writer = rows.writeStream.format(sink).option("checkpointLocation", f"{folder}/checkpoint")
    if sink != "noop":
        writer = writer.option("path", f"{folder}/rows")
    before, batches = cpu_seconds(), list[Any]()
    query, end, newest = writer.start(), float("inf"), ""
    while sum(batch["numInputRows"] for batch in batches) < records and time.monotonic() < end:
        time.sleep(0.02)
        last = query.lastProgress
        if last is None or last["timestamp"] == newest:  # all of them 50 times a second would cost more than a batch
            continue
        newest = last["timestamp"]
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        end = min(end, time.monotonic() + seconds) if batches else end
    used = dict.fromkeys(CPU, 0.0)
    for at, so_far in cpu_seconds().items():
        used[at[1]] += so_far - before.get(at, 0)
    query.stop()
    return Query(
        sum(batch["numInputRows"] for batch in batches),
        sum(batch["durationMs"]["triggerExecution"] for batch in batches) / 1000,
        used,
        [{"rows": batch["numInputRows"], **batch["durationMs"]} for batch in batches],
    )


def latencies(rows: DataFrame, address: str, topic: str, partitions: int) -> list[int]:
    """Milliseconds from `produce` until a function for `foreachBatch` has the rows, of each record, sorted."""
    found: list[tuple[int, int]] = []

    def sink(batch: DataFrame, _: int) -> None:
        times = batch.selectExpr("CAST(timestamp AS double) AS s").toArrow()["s"].to_pylist()
        now_ms = time.time() * 1000
        found.extend((round(s * 1000), round(now_ms - s * 1000)) for s in times)

    query = rows.writeStream.foreachBatch(sink).option("checkpointLocation", tempfile.mkdtemp()).start()
    while not query.recentProgress:
        time.sleep(0.02)
    began_ms = time.time() * 1000
    with paced(address, topic, partitions):
        query.awaitTermination(TASTED + PACED)
    query.stop()
    return sorted(took for at_ms, took in found if at_ms >= began_ms + TASTED * 1000)


@contextmanager
def paced(address: str, topic: str, partitions: int) -> Iterator[None]:
    """Produces records at an even pace, in a thread."""
    ended = Event()

    def work() -> None:
        with Producer({"bootstrap.servers": address, "linger.ms": 0}) as producer:
            began, sent = time.monotonic(), 0
            while not ended.wait(0.005):
                while sent < (time.monotonic() - began) * PACE:
                    producer.produce(topic, bytes(100), partition=sent % partitions)
                    sent += 1
                producer.poll(0)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def main(address: str, records: int, jars: str, sinks: Sequence[str], sizes: list[int]) -> None:
    config: dict[str, Any] = {
        "spark.jars": jars,
        "spark.driver.memory": "3g",
        "spark.sql.streaming.numRecentProgressUpdates": 10_000,
        **(DELTA if "delta" in sinks else {}),
    }
    spark = session(master="local[2]", **config)
    spark.sparkContext.setLogLevel("ERROR")
    sources = Sources(spark, address)
    figures: list[dict[str, Any]] = []
    for sink in sinks:  # until Java has compiled
        for source in SOURCES:
            throughput(sources.read(source, f"full-{sizes[0]}", "earliest"), sink, records, 3)
    for size in sizes:
        for sink in sinks:
            queries: dict[str, list[Query]] = {source: [] for source in SOURCES}
            for _ in range(ROUNDS):
                for source in SOURCES:
                    queries[source].append(throughput(sources.read(source, f"full-{size}", "earliest"), sink, records))
            for source, several in queries.items():
                figures.append({"partitions": size, "sink": sink, "source": source, **summed(several)})
        for source in SOURCES if "noop" in sinks else ():  # a function has the rows, and none of the other sinks
            rows = sources.read(source, f"paced-{size}", "latest")
            found = latencies(rows, address, f"paced-{size}", size)
            assert found, source
            percentiles = {f"p{n}": found[len(found) * n // 100] for n in (50, 99)}
            next(f for f in figures if (f["partitions"], f["source"]) == (size, source)).update(percentiles)
    print(json.dumps(figures))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4].split(","), list(map(int, sys.argv[5:])))
