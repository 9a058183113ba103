"""Writes rows to a topic, each with the place of the record that it was made of.

Delivery is at least once: a task or a batch that is repeated writes its rows again. Both copies have the same origin,
so a reader can tell duplicates apart (`origin`, then `dropDuplicates`), which Spark's own Kafka sink leaves to the
application. From a share group to a topic, and back without copies:

    conf = {"bootstrap.servers": "127.0.0.1:9092"}

    def answer(orders, batch):
        answers = orders.selectExpr("upper(string(value)) AS value", "topic", "partition", "offset")
        produce(answers, "results", conf)

    orders = spark.readStream.format("shareq").options(**options).load()
    writer = orders.writeStream.foreachBatch(answer).option("checkpointLocation", "checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()

    results = spark.read.format("shareq").options(**{**options, "subscribe": "results"}).load()
    answers = results.withColumn("origin", origin("headers")).dropDuplicates(["origin"])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

ORIGIN = "shareq.origin"
"""The name of the header with the origin: topic/partition/offset."""

_PLACE = ("topic", "partition", "offset")


def produce(rows: DataFrame, topic: str, conf: Mapping[str, Any]) -> int:
    """Write rows to a topic from Spark's tasks, and return their number when all are acknowledged by the brokers.

    `rows`: `value`, and if wanted `key` and `headers`, with the types of Spark's Kafka source, text also as string. If
    they have `topic`, `partition` and `offset`, these are the origin of the row, in the header ORIGIN. `conf`: of
    `shareq.Producer`. An error of the first record that is not delivered fails the job, and with it the batch: call it
    in `foreachBatch`. ValueError for rows without a value.
    """
    from shareq.spark.register import ship

    if "value" not in rows.columns:
        raise ValueError(f"rows must have a column 'value', besides {', '.join(rows.columns)}")
    ship(rows.sparkSession)
    origin = ["concat_ws('/', topic, partition, offset) AS origin"] if {*_PLACE} <= {*rows.columns} else []
    kept = [f"CAST({name} AS binary) AS {name}" for name in ("value", "key") if name in rows.columns]
    kept += ["headers"] if "headers" in rows.columns else []
    write = partial(write_rows, topic=topic, conf=dict(conf))
    written = rows.selectExpr(*kept, *origin).mapInArrow(write, "written bigint").collect()
    return sum(row.written for row in written)


def origin(headers: Column | str) -> Column:
    """The origin of a row that `produce` wrote, as topic/partition/offset; null for a record without one."""
    from pyspark.sql import functions as f

    found = f.filter(headers, lambda header: header["key"] == ORIGIN)
    return f.try_element_at(found, f.lit(-1))["value"].cast("string")


def write_rows(batches: Iterator[pa.RecordBatch], topic: str, conf: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """A task: one row with the number of written records, after the last one is acknowledged."""
    import pyarrow as pa

    from shareq.model.errors import KafkaException
    from shareq.producer import Producer
    from shareq.spark.worker import spare_modules

    spare_modules()
    failed: list[KafkaException] = []

    def delivered(error: Any, message: object) -> None:
        del message
        if error is not None:
            failed.append(KafkaException(error))

    written = 0
    with Producer(conf) as producer:
        for batch in batches:
            for row in batch.to_pylist():
                headers = [(header["key"], header["value"]) for header in row.get("headers") or ()]
                headers += [(ORIGIN, row["origin"])] if "origin" in row else []
                while True:
                    try:
                        producer.produce(topic, row["value"], row.get("key"), headers=headers, on_delivery=delivered)
                        break
                    except BufferError:
                        producer.poll(1)
            written += batch.num_rows
        producer.flush()
    if failed:
        raise failed[0]
    yield pa.RecordBatch.from_pydict({"written": pa.array([written], pa.int64())})
