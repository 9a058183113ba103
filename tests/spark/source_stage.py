"""The test environment of the source, called as Spark calls it, without Spark, on a cluster in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from pyspark.sql.streaming.datasource import ReadMaxRows

from shareq import Cluster, Producer
from shareq.admin import Admin
from shareq.spark.options import parse
from shareq.spark.reader import fetcher
from shareq.spark.stream import StreamReader

TOPIC, GROUP = "orders", "g"
RECORDS = 40
PATIENCE = 60
"""How often `plan` asks for the next offset; each call takes up to half a second of virtual time."""

Place = tuple[int, int]
"""(partition, offset)."""

EVERY = sorted((number % 2, number // 2) for number in range(RECORDS))


class SourceStage(NamedTuple):
    """A cluster whose topic has records, and the folder of the verdicts."""

    cluster: Cluster
    folder: str

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, **cluster: Any) -> Iterator[Self]:
        fetcher.cache_clear()  # clusters with the same seed have the same name
        with Cluster(seed=5, **cluster) as made:
            made.create_topic(TOPIC, 2)
            made.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
            with Producer({"bootstrap.servers": made.bootstrap_servers}) as producer:
                for number in range(RECORDS):
                    producer.produce(TOPIC, b"value-%d" % number, partition=number % 2)
            yield cls(made, str(folder / "verdicts"))

    def reader(self, **options: str) -> StreamReader:
        needed = {"kafka.bootstrap.servers": self.cluster.bootstrap_servers, "subscribe": TOPIC, "group.id": GROUP}
        strict = {"kafka.share.acquire.mode": "record_limit", "minPartitions": "2"}
        return StreamReader(parse({**needed, **strict, **options}), self.folder)

    def lag(self) -> int:
        """How many records the group has not finished; all records of a partition that it has not begun."""
        with Admin({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
            lags = {at.partition: row.lag for at, row in admin.list_share_group_offsets(GROUP).items()}
        return sum(RECORDS // 2 if (lag := lags.get(partition)) is None else lag for partition in (0, 1))

    def crash(self, reader: StreamReader) -> None:
        """The driver's machine loses power, and its locks expire."""
        assert reader._member is not None
        self.cluster.crash(reader._member)
        reader._member._closing.set()  # its thread dies with it
        self.cluster.advance(60_000)


Offset = dict[str, Any]


def as_stored(offset: Offset) -> Offset:
    """An offset after a round trip through JSON, in which Spark keeps it."""
    restored: Offset = json.loads(json.dumps(offset))
    return restored


def plan(reader: StreamReader, start: Offset, limit: int = RECORDS) -> Offset:
    """The next offset, or `start` if there is none after many calls: joining a group takes some time."""
    offsets = (as_stored(reader.latestOffset(start, ReadMaxRows(limit))) for _ in range(PATIENCE))
    return next((offset for offset in offsets if offset != start), start)


def rows(reader: StreamReader, start: Offset, end: Offset) -> list[tuple[int, int, int]]:
    """The rows of all tasks of a batch: (partition, offset, delivery_count)."""
    found = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
    columns = (("partition", "offset", "deliveryCount"), found)
    return [tuple(row.values()) for batch in columns[1] for row in batch.select(list(columns[0])).to_pylist()]


def places(several: Sequence[tuple[int, int, int]]) -> list[Place]:
    return sorted((partition, offset) for partition, offset, _ in several)
