"""The format "shareq": a share group as a source of Spark's, streaming (see `stream`) and batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

import shareq  # noqa: F401    # in the processes of Spark's, this is what knows how to reach brokers over TCP
from shareq.admin import Admin
from shareq.model.errors import KafkaError, KafkaException
from shareq.spark.options import Options, parse
from shareq.spark.ranges import Range, merged, split
from shareq.spark.reader import SCHEMA, read
from shareq.spark.session import check_pyspark

TASK_RECORDS = 5_000
"""Smaller tasks cost more than they bring, unless minPartitions asks for them."""


class Share(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.ranges = ranges


class ShareGroupSource(DataSource):
    """The format; `verdicts` is the folder in which `acknowledge` leaves its word."""

    verdicts = ""

    @classmethod
    def name(cls) -> str:
        return "shareq"

    def schema(self) -> str:
        parse(self.options)
        return SCHEMA

    def reader(self, schema: StructType) -> BatchReader:  # noqa: ARG002    # Spark hands it over by name, as below
        return BatchReader(parse(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        check_pyspark(streaming=True)
        from shareq.spark.stream import StreamReader

        return StreamReader(parse(self.options), self.verdicts)


def tasks_of(options: Options, ranges: Sequence[Range]) -> list[Share]:
    """A partition's records may go to several tasks: a share group has no order to keep."""
    at_least = 1 if options.min_partitions else TASK_RECORDS
    tasks = options.min_partitions or os.cpu_count() or 1
    return [Share(share) for share in split(ranges, tasks, at_least)]


class BatchReader(DataSourceReader):
    """`spark.read`: what the group has not finished with, from its start offsets to the end of the log.

    It looks and takes nothing: no member, no locks, no acknowledgement, as Spark's own Kafka source commits nothing.
    """

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        with Admin(self._options.connection) as admin:
            places = places_of(admin, self._options.topics)
            firsts = admin.list_offsets(dict.fromkeys(places, "earliest"))
            ends = admin.list_offsets(dict.fromkeys(places, "latest"))
            starts = admin.list_share_group_offsets(self._options.group)
            started = {(at.topic, at.partition): row.start_offset for at, row in starts.items()}
        first = {(at.topic, at.partition): row.offset or 0 for at, row in firsts.items()}
        end = {(at.topic, at.partition): row.offset or 0 for at, row in ends.items()}
        ranges = [
            Range(*place[:1], topic_id, place[1], max(first[place], started.get(place) or 0), end[place], 0)
            for place, topic_id in places.items()
        ]
        return tasks_of(self._options, merged(at for at in ranges if at.first < at.end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return read(self._options.connection, partition.ranges, leave_out=True)


def places_of(admin: Admin, topics: Sequence[str]) -> dict[tuple[str, int], str]:
    """Topic ids by (topic, partition) of all partitions; KafkaException for a topic that there is not."""
    described = admin.describe_topics(topics)
    for name, found in described.items():
        if found.error is not None:
            raise KafkaException(KafkaError(found.error.code(), f"topic {name!r}: {found.error.str()}"))
    return {
        (name, partition.partition): str(found.topic_id)
        for name, found in described.items()
        for partition in found.partitions
    }
