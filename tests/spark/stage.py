"""The test environment of Spark that reads a share group."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shareq import Producer
from shareq.admin import Admin, NewTopic
from tests.kafka.fixtures import Reachable
from tests.polling import configure
from tests.spark.patience import finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFIGS = {
    "share.auto.offset.reset": "earliest",
    "share.session.timeout.ms": "6000",  # killed members are soon removed
    "share.record.lock.duration.ms": "60000",  # a machine that stalls for a while causes no redelivery
}

Place = tuple[int, int]
"""(partition, offset)."""


class Stage(NamedTuple):
    """A topic with records, a group that reads it from its beginning, and Spark's checkpoint."""

    spark: SparkSession
    options: dict[str, str]
    checkpoint: str
    records: int

    def load(self, **options: str) -> DataFrame:
        return self.spark.readStream.format("shareq").options(**self.options, **options).load()

    def run(self, sink: Callable[[DataFrame, int], None], **options: str) -> None:
        """Read what is available now, into a sink."""
        writer = self.load(**options).writeStream.foreachBatch(sink).option("checkpointLocation", self.checkpoint)
        finish(writer.trigger(availableNow=True).start)

    def lag(self) -> int | None:
        with Admin({"bootstrap.servers": self.options["kafka.bootstrap.servers"]}) as admin:
            lags = [row.lag for row in admin.list_share_group_offsets(self.options["group.id"]).values()]
        return None if None in lags else sum(lag or 0 for lag in lags)


def prepare(broker: Reachable, name: Callable[[str], str], records: int) -> dict[str, str]:
    """A topic of two partitions with records and a group that reads it from its beginning; the source's options."""
    topic, group, address = name("topic"), name("group"), broker.bootstrap_servers
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(topic, 2)]).check()
        configure(admin, group, CONFIGS)
    with Producer({"bootstrap.servers": address}) as producer:
        for number in range(records):
            producer.produce(topic, b"value-%d" % number, partition=number % 2)
    return {"kafka.bootstrap.servers": address, "subscribe": topic, "group.id": group}


def make_stage(spark: SparkSession, broker: Reachable, name: Callable[[str], str], folder: Path, records: int) -> Stage:
    return Stage(spark, prepare(broker, name, records), str(folder / "checkpoint"), records)


def places(df: DataFrame) -> list[Place]:
    return [(row.partition, row.offset) for row in df.select("partition", "offset").collect()]


def every_place(records: int) -> list[Place]:
    return sorted((number % 2, number // 2) for number in range(records))


def logged_places(checkpoint: str, number: int) -> list[Place]:
    """The places of a batch in Spark's offset log."""
    logged = json.loads(Path(checkpoint, "offsets", str(number)).read_text().splitlines()[2])
    return sorted(
        (int(partition), offset)
        for topic in logged["topics"].values()
        for partition, rows in topic["partitions"].items()
        for begin, end, _ in rows
        for offset in range(begin, end)
    )
