"""The tasks of a batch, and the partitions of topics."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from shareq.model.errors import KafkaError, KafkaException
from shareq.spark.options import Options
from shareq.spark.ranges import Range, split

if TYPE_CHECKING:
    from shareq.admin import Admin

TASK_RECORDS = 5_000
"""The least records of a task, unless minPartitions requires fewer: each task has a fixed cost."""


class Share(InputPartition):
    """The ranges of one task."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.ranges = ranges


def tasks_of(options: Options, ranges: Sequence[Range]) -> list[Share]:
    """The tasks of ranges. Several tasks may share a partition: a share group has no order."""
    at_least = 1 if options.min_partitions else TASK_RECORDS
    tasks = options.min_partitions or os.cpu_count() or 1
    return [Share(share) for share in split(ranges, tasks, at_least)]


def places_of(admin: Admin, topics: Sequence[str]) -> dict[tuple[str, int], str]:
    """Topic ids by (topic, partition), of all partitions. KafkaException for a topic that does not exist."""
    described = admin.describe_topics(topics)
    for name, found in described.items():
        if found.error is not None:
            raise KafkaException(KafkaError(found.error.code(), f"topic {name!r}: {found.error.str()}"))
    return {
        (name, partition.partition): str(found.topic_id)
        for name, found in described.items()
        for partition in found.partitions
    }
