"""Spark reads a topic of Apache Kafka with shareq's source in a share group, and with its own Kafka source.

    make bench ARGS='-k spark_source'

A million records of 100 bytes in 32 partitions, into a noop and a Parquet sink; the first round is left out, because
the JVM still compiles. Share groups lock at most 10,000 records of a partition at a time
(`group.share.max.partition.max.record.locks`), which bounds shareq's batches; Spark's source reads the topic in one
batch. Small batches follow, one at a time. Spark's source needs jars that are not part of PySpark; Ivy downloads them.
They are of version 4.2.0 and work with later ones, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from shareq import Producer
from shareq.admin import Admin, NewTopic
from shareq.jvm import cache_folder, find_java
from shareq.kafka import LocalKafka, ivy
from tests.bench.spark_sources import SMALL

RECORDS = 1_000_000
BYTES = 100
PARTITIONS = 32
PROGRAM = Path(__file__).with_name("spark_sources.py")

JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)


@pytest.fixture(scope="module")
def jars() -> str:
    """Jars of Spark's Kafka source, as a value of `spark.jars`."""
    folder = cache_folder() / "spark-sql-kafka-4.2.0"
    cache = folder.with_suffix(".ivy")
    for organisation, name, revision in JARS:
        if not (folder / f"{name}-{revision}.jar").exists():
            cache.mkdir(parents=True, exist_ok=True)
            options = ("-types", "jar", "bundle", "-confs", "default", "-notransitive")
            where = ("-settings", str(ivy._settings(cache)), "-cache", str(cache))
            what = ("-dependency", organisation, name, revision, "-retrieve", f"{folder}/[artifact]-[revision].[ext]")
            command = [*ivy._java_command(find_java(), ivy._ivy_jar()), *where, *options, *what]
            subprocess.run(command, check=True, capture_output=True)
    return ",".join(map(str, sorted(folder.glob("*.jar"))))


def fill(address: str, topic: str, partitions: int, records: int) -> None:
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(topic, partitions)]).check()
    with Producer({"bootstrap.servers": address, "linger.ms": 5, "batch.size": 1_000_000}) as producer:
        for first in range(0, records, 10_000):
            several = range(first, min(first + 10_000, records))
            producer.produce_batch(topic, [{"value": bytes(BYTES), "partition": at % partitions} for at in several])
            producer.flush()


@pytest.mark.timeout(3600)
def test_spark_source(benchmark: Any, jars: str) -> None:
    with LocalKafka() as kafka:
        address = kafka.bootstrap_servers
        fill(address, "many", PARTITIONS, RECORDS)
        fill(address, "few", 2, 100 * SMALL)
        command = [sys.executable, str(PROGRAM), address, "many", "few", str(RECORDS), jars]

        def measure() -> dict[str, Any]:
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, start_new_session=True)
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found

        found = benchmark.pedantic(measure, rounds=1)
    for what, rounds in found.items():
        if what.endswith("floor"):
            benchmark.extra_info[f"{what}, ms"] = rounds
        else:
            figures = {key: median(each[key] for each in rounds[1:]) for key in rounds[0]}
            benchmark.extra_info[f"{what}, records/s"] = round(RECORDS / figures["seconds"])
            benchmark.extra_info[f"{what}, cpu s"] = round(figures["cpu"], 2)
            benchmark.extra_info[f"{what}, batches"] = figures["batches"]
    for sink in ("noop", "parquet"):
        ours, theirs = (benchmark.extra_info[f"{name}, {sink}, records/s"] for name in ("shareq", "kafka"))
        benchmark.extra_info[f"{sink}, ours to theirs"] = round(ours / theirs, 2)
