"""The format "shareq": a share group as a source of Spark's, streaming (see `stream`) and batch (see `batch`).

Every session registers it, also those that read no records: what the readers need is imported when they are used.
"""

from __future__ import annotations

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

SCHEMA = """
    key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int,
    headers array<struct<key: string, value: binary>>, deliveryCount int
"""
"""The columns of Spark's Kafka source, and the delivery count of the record: 1 at the first delivery, 0 in a batch
read."""


class ShareGroupSource(DataSource):
    """The format; `verdicts` is the folder in which `acknowledge` writes acknowledge types."""

    verdicts = ""

    @classmethod
    def name(cls) -> str:
        return "shareq"

    def schema(self) -> str:
        from shareq.spark.options import parse

        parse(self.options)
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002    # Spark hands it over by name, as below
        from shareq.spark.batch import BatchReader
        from shareq.spark.options import parse

        return BatchReader(parse(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        from shareq.spark.versions import check_pyspark

        check_pyspark(pyspark.__version__, streaming=True)  # to search the installed packages takes a tenth of a second
        from shareq.spark.options import parse
        from shareq.spark.stream import StreamReader

        return StreamReader(parse(self.options), self.verdicts)
