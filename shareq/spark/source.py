"""The format "shareq": a share group as a source of Spark's, streaming (see `stream`) and batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from shareq.admin import Admin
from shareq.spark.options import Options, parse
from shareq.spark.ranges import Range, merged
from shareq.spark.reader import SCHEMA, read
from shareq.spark.tasks import Share, places_of, tasks_of
from shareq.spark.versions import check_pyspark


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
