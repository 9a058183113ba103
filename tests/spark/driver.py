"""A driver to be killed: it reads a share group in small batches into files, and blocks at a given step.

Steps are logged in a file, because the reader and the sink run in separate processes. The process that reaches the
fatal step waits there to be killed, so that nothing happens after it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shareq.spark import session
from shareq.spark.options import parse
from shareq.spark.source import ShareGroupSource
from shareq.spark.stream import StreamReader
from tests.spark.patience import finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StepLog:
    """Logs steps in a file, and blocks when the fatal step is logged for the `nth` time."""

    def __init__(self, file: str, fatal: str, nth: int) -> None:
        self._file = file
        self._fatal = fatal
        self._left = nth

    def __call__(self, step: str) -> None:
        with Path(self._file).open("a") as file:
            file.write(f"{step}\n")
        self._left -= step == self._fatal
        if not self._left:
            with Path(self._file).open("a") as file:
                file.write("blocked\n")
            signal.pause()


class LoggedReader(StreamReader):
    """Logs when records are acquired and not yet in Spark's offset log, and when Spark has committed a batch."""

    log_step: StepLog

    def latestOffset(self, start: Mapping[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802    # Spark's name, as below
        while (end := super().latestOffset(start, limit)) == start:
            continue  # no batch is empty, not even the first: a driver killed in one holds records
        self.log_step("acquired")
        return end

    def commit(self, end: Mapping[str, Any]) -> None:
        super().commit(end)
        self.log_step("committed")


def main(options: dict[str, str], folder: Path, fatal: str, nth: int) -> None:
    log_step = StepLog(str(folder / "steps"), fatal, nth)
    attempts: Counter[int] = Counter()

    class LoggedSource(ShareGroupSource):
        def streamReader(self, schema: Any) -> StreamReader:  # noqa: N802
            reader = LoggedReader(parse(self.options), str(folder / "verdicts"))
            reader.log_step = log_step
            return reader

    def sink(df: DataFrame, number: int) -> None:
        log_step("begun")
        rows = [(row.partition, row.offset) for row in df.select("partition", "offset").collect()]
        log_step("read")
        attempts[number] += 1
        draft = folder / f"{os.getpid()}.draft"
        draft.write_text(json.dumps(rows))
        draft.replace(folder / f"batch-{number}-{attempts[number]}-{os.getpid()}.json")
        log_step("written")

    spark = session(master="local[1]")
    spark.dataSource.register(LoggedSource)
    stream = spark.readStream.format("shareq").options(**options).load().writeStream
    finish(stream.foreachBatch(sink).option("checkpointLocation", str(folder / "checkpoint")).start, None)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
