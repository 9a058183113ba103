"""A driver of a Spark in another process: it reads a share group there, runs a sweep, makes the tables of a trace, and
writes what it found to a file.

It is the main module of a process, so that its functions are pickled by value for the workers.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shareq.sim import Scenario
from shareq.spark import acknowledge, pipeline, session, sweep
from tests.spark.patience import finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW = Scenario(records=20, max_poll_records=10, consumers=1)


def where_from(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The file from which workers import the package."""
    import shareq

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [str(shareq.__file__)] * batch.num_rows})


def dies_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Kill the executor in the middle of the rows, at the first attempt of the first task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
        yield batch


def main(
    config: dict[str, str],
    options: dict[str, str],
    *,
    checkpoint: str,
    kills: bool,
    trace: str,
    out: str,
    result: Path,
) -> None:
    def sink(df: DataFrame, number: int) -> None:
        rows = df.select("topic", "partition", "offset")
        if kills and not number:
            rows = rows.mapInArrow(dies_once, rows.schema)
        places = sorted((row.partition, row.offset) for row in rows.collect())
        acknowledge(df.where("partition = 0 AND offset = 1 AND deliveryCount = 1"), "release")
        (result.parent / f"rows-{number}.json").write_text(json.dumps(places))

    if java := os.environ.get("SPARK_DAEMON_JAVA_OPTS"):  # the same Java options for executors
        config = {"spark.executor.extraJavaOptions": java, **config}
    spark = session(**config)
    stream = spark.readStream.format("shareq").options(**options).load().writeStream
    finish(stream.foreachBatch(sink).option("checkpointLocation", checkpoint).trigger(availableNow=True).start, None)
    files = spark.range(0, 4, 1, 4).mapInArrow(where_from, "file string").distinct().collect()
    found: dict[str, Any] = {
        "batches": [json.loads(path.read_text()) for path in sorted(result.parent.glob("rows-*.json"))],
        "read": spark.read.format("shareq").options(**{**options, "group.id": "absent"}).load().count(),
        "files": sorted(row.file for row in files),
        "shuffles": spark.conf.get("spark.sql.shuffle.partitions"),
        "sweep": repr(sweep({"consumers": [1, 2]}, 2, FEW, spark=spark, progress=False).table.to_pylist()),
    }
    pipeline.run(trace, out, spark=spark, progress=False, report=False)
    result.write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]), result=Path(sys.argv[2]))
