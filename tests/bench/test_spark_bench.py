"""Spark reads topics of Apache Kafka with its own source, and with shareq's source in a share group: one table of both,
one of the parts of a batch, and one of the parts of the processor time.

    make bench ARGS='-k spark_source'                           # ten minutes
    SHAREQ_SPARK_PARTITIONS=4 make bench ARGS='-k spark_source' # a third of it

A million records (SHAREQ_SPARK_RECORDS) of 100 bytes in 1, 4 and 32 partitions, into a noop and a Parquet sink, with
the most locks of a partition that Kafka grants (`group.share.max.partition.max.record.locks`), and with its default;
locks bound shareq's batches, while Spark's source reads a topic in one batch. `p50` and `p99`: from produce until a
function for `foreachBatch` has the rows, at 1,000 records a second. Spark's source needs jars that are not part of
PySpark (`spark_jars.py`). They are of version 4.2.0 and work with later ones, too.

Delta Lake has no release for Spark 4.3. With PySpark 4.2 there is a Delta sink, too; SHAREQ_SPARK_SINKS has the sinks:

    make build/pyspark-4.2
    PYTHONPATH=build/pyspark-4.2 SHAREQ_SPARK_SINKS=delta make bench ARGS='-k spark_source'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from shareq import Producer
from shareq.admin import Admin, NewTopic
from shareq.kafka import LocalKafka
from tests.bench.spark_jars import DELTA, spark_jars

RECORDS = int(os.environ.get("SHAREQ_SPARK_RECORDS", "1000000"))
BYTES = 100
PARTITIONS = tuple(map(int, os.environ.get("SHAREQ_SPARK_PARTITIONS", "1 4 32").split()))
PROGRAM = Path(__file__).with_name("spark_sources.py")


FITS_DELTA = version("pyspark").startswith("4.2.")
SINKS = os.environ.get("SHAREQ_SPARK_SINKS", "noop parquet delta" if FITS_DELTA else "noop parquet").split()


@pytest.fixture(scope="module")
def jars() -> str:
    """Jars of Spark's Kafka source and of the sinks, as a value of `spark.jars`."""
    return ",".join(map(str, spark_jars() + (spark_jars(DELTA) if "delta" in SINKS else [])))


def fill(address: str, topic: str, partitions: int, records: int) -> None:
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(topic, partitions)]).check()
    with Producer({"bootstrap.servers": address, "linger.ms": 5, "batch.size": 1_000_000}) as producer:
        for first in range(0, records, 10_000):
            several = range(first, min(first + 10_000, records))
            producer.produce_batch(topic, [{"value": bytes(BYTES), "partition": at % partitions} for at in several])
            producer.flush()


def table(figures: list[dict[str, Any]]) -> str:
    """The figures as a table in Markdown."""
    own = {(f["partitions"], f["sink"]): f for f in figures if f["source"] == "Spark's own"}
    heads = ["partitions", "sink", "source", "records/s", "of Spark's", "CPU s per million", "of Spark's"]
    heads += ["records a batch", "p50 ms", "p99 ms"]
    lines = [heads, ["---:", "---", "---", *["---:"] * (len(heads) - 3)]]
    for figure in figures:
        theirs = own[figure["partitions"], figure["sink"]]
        rate, their_rate = (each["records"] / each["seconds"] for each in (figure, theirs))
        cpu, their_cpu = (sum(each["cpu"].values()) / each["records"] * 1e6 for each in (figure, theirs))
        line = [figure["partitions"], figure["sink"], figure["source"], f"{rate:,.0f}", f"{rate / their_rate:.2f}"]
        line += [f"{cpu:.1f}", f"{cpu / their_cpu:.2f}", f"{figure['records'] / figure['batches']:,.0f}"]
        lines.append([*map(str, line), *(str(figure.get(name, "")) for name in ("p50", "p99"))])
    return as_markdown(lines)


PARTS = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets")
"""What a batch does, by Spark's names: ask for its end, write it to the offset log, plan, run the job, write the commit
log. `latestOffset` of shareq's source also acknowledges the batch before."""


def parts_of_a_batch(figures: list[dict[str, Any]]) -> str:
    """The time of a batch in milliseconds, as Markdown: of the largest batches the median, and the fastest by its
    parts."""
    heads = ["partitions", "sink", "source", "records", "median", "fastest", *PARTS, "the rest"]
    lines = [heads, ["---:", "---", "---", *["---:"] * (len(heads) - 3)]]
    for figure in figures:
        batch = figure["fastest"]
        parts = [batch.get(name, 0) for name in PARTS]
        whole = batch["triggerExecution"]
        numbers = [batch["rows"], figure["median"], whole, *parts, whole - sum(parts)]
        lines.append([str(figure["partitions"]), figure["sink"], figure["source"], *(f"{each:,}" for each in numbers)])
    return as_markdown(lines)


def parts_of_cpu(figures: list[dict[str, Any]]) -> str:
    """Processor time for a million records, in seconds, by what it is for, as Markdown."""
    names = list(figures[0]["cpu"])
    lines = [["partitions", "sink", "source", *names], ["---:", "---", "---", *["---:"] * len(names)]]
    for figure in figures:
        each = [f"{seconds / figure['records'] * 1e6:.2f}" for seconds in figure["cpu"].values()]
        lines.append([str(figure["partitions"]), figure["sink"], figure["source"], *each])
    return as_markdown(lines)


def as_markdown(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@pytest.mark.timeout(3600)
def test_spark_source(benchmark: Any, jars: str, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalKafka() as kafka:
        address = kafka.bootstrap_servers
        for size in PARTITIONS:
            fill(address, f"full-{size}", size, RECORDS)
            fill(address, f"paced-{size}", size, 0)
        command = [sys.executable, str(PROGRAM), address, str(RECORDS), jars, ",".join(SINKS), *map(str, PARTITIONS)]

        def measure() -> list[dict[str, Any]]:
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, start_new_session=True)
            found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
            return found

        found = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["figures"] = found
    with capsys.disabled():
        print(f"\n{table(found)}\n\n{parts_of_a_batch(found)}\n\n{parts_of_cpu(found)}")
