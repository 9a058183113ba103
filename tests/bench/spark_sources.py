"""Reads a topic with Spark's Kafka source and with shareq's source in turn, and prints the figures as JSON.

    python spark_sources.py BOOTSTRAP TOPIC SMALL_TOPIC RECORDS JARS

`seconds`: time of the batches of a query with trigger availableNow; `wall`: time of the whole query; `cpu`: processor
time of the JVM and of the Python workers, the more useful figure on a machine with other load.
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
"""Number of records of a small batch, and number of small batches."""

_groups = count()


class Sources(NamedTuple):
    """Both sources in one Spark session, on the topics of one cluster."""

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
    """Processor time of all processes of this session so far, in seconds."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        if int(fields[3]) == os.getsid(0):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(source: DataFrame, sink: str, records: int) -> dict[str, float]:
    """Read the available records of the topic once."""
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
    """Duration of a small batch in milliseconds: the median of the second half of the batches, after warm-up."""
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
    figures: dict[str, Any] = {}
    for sink in ("noop", "parquet"):
        for _ in range(ROUNDS):
            figures.setdefault(f"shareq, {sink}", []).append(run(sources.shareq(topic), sink, records))
            figures.setdefault(f"kafka, {sink}", []).append(run(sources.kafka(topic), sink, records))
    few = {"maxRecordsPerBatch": str(SMALL), "kafka.share.acquire.mode": "record_limit"}
    figures["shareq, floor"] = floor(sources.shareq(small_topic, **few))
    figures["kafka, floor"] = floor(sources.kafka(small_topic, maxOffsetsPerTrigger=str(SMALL)))
    print(json.dumps(figures))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
