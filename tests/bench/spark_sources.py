"""Reads a topic with Spark's own Kafka source and with ours, alternating, and tells the figures as JSON on stdout.

    python spark_sources.py BOOTSTRAP TOPIC SMALL_TOPIC RECORDS JARS

`seconds` are those of the batches of a query that reads what is available, `wall` those of the whole query; `cpu` is
the processor time of the JVM and of the Python workers, which says more where a machine does other work besides.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from shareq.admin import Admin
from shareq.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = 3
SMALL = 20
"""So many records has a small batch, and so many such batches are measured."""

_groups = count()


class Sources(NamedTuple):
    """The two sources of one Spark, on the topics of one cluster."""

    spark: SparkSession
    address: str

    def kafka(self, topic: str, **options: str) -> DataFrame:
        common = {"kafka.bootstrap.servers": self.address, "subscribe": topic, "startingOffsets": "earliest"}
        return self.spark.readStream.format("kafka").options(**common, **options).load()

    def shareq(self, topic: str, **options: str) -> DataFrame:
        group = f"{topic}-{next(_groups)}"
        with Admin({"bootstrap.servers": self.address}) as admin:
            widest = {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": "10000"}
            admin.alter_group_configs(group, widest)
        common = {"kafka.bootstrap.servers": self.address, "subscribe": topic, "group.id": group}
        return self.spark.readStream.format("shareq").options(**common, **options).load()


def cpu_seconds() -> float:
    """What all processes of this session have used so far."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == os.getsid(0):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(source: DataFrame, sink: str, records: int) -> dict[str, float]:
    """Read what is available."""
    folder = tempfile.mkdtemp()
    writer = source.writeStream.format(sink).option("checkpointLocation", f"{folder}/checkpoint")
    if sink == "parquet":
        writer = writer.option("path", f"{folder}/rows")
    began, used = time.perf_counter(), cpu_seconds()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert sum(progress["numInputRows"] for progress in batches) == records
    return {
        "wall": time.perf_counter() - began,
        "seconds": sum(progress["durationMs"]["triggerExecution"] for progress in batches) / 1000,
        "cpu": cpu_seconds() - used,
        "batches": len(batches),
    }


def floor(source: DataFrame) -> float:
    """Milliseconds of a small batch, the median of those that have not to warm anything up."""
    query = source.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp()).start()
    took: list[int] = []
    while len(took) < SMALL:
        query.awaitTermination(1)
        took = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
    query.stop()
    return float(median(took[len(took) // 2 :]))


def main(address: str, topic: str, small_topic: str, records: int, jars: str) -> None:
    spark = session(master="local[2]", **{"spark.jars": jars, "spark.driver.memory": "3g"})
    spark.sparkContext.setLogLevel("ERROR")
    sources = Sources(spark, address)
    told: dict[str, Any] = {}
    for sink in ("noop", "parquet"):
        for _ in range(ROUNDS):
            told.setdefault(f"shareq, {sink}", []).append(run(sources.shareq(topic), sink, records))
            told.setdefault(f"kafka, {sink}", []).append(run(sources.kafka(topic), sink, records))
    few = {"maxRecordsPerBatch": str(SMALL), "kafka.share.acquire.mode": "record_limit"}
    told["shareq, floor"] = floor(sources.shareq(small_topic, **few))
    told["kafka, floor"] = floor(sources.kafka(small_topic, maxOffsetsPerTrigger=str(SMALL)))
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
