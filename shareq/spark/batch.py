"""A batch read of a share group: `spark.read.format("shareq")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from shareq.admin import Admin
from shareq.spark.options import Options
from shareq.spark.ranges import Range, merged
from shareq.spark.reader import read
from shareq.spark.tasks import Share, places_of, tasks_of


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
