"""A driver to be killed: reads a share group in small batches into files, and stops dead where it is told to.

Words go to a file, for the reader and the sink live in processes of their own. At the fatal word the process that says
it waits for its end, so that nothing happens after it.
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


class Teller:
    """Says words, up to the `nth` time that one is the fatal one."""

    def __init__(self, file: str, fatal: str, nth: int) -> None:
        self._file = file
        self._fatal = fatal
        self._left = nth

    def __call__(self, word: str) -> None:
        with Path(self._file).open("a") as file:
            file.write(f"{word}\n")
        self._left -= word == self._fatal
        if not self._left:
            with Path(self._file).open("a") as file:
                file.write("now\n")
            signal.pause()


class TellingReader(StreamReader):
    """Says when records are acquired and not yet in Spark's offset log, and when Spark has told that it is done."""

    tell: Teller

    def latestOffset(self, start: Mapping[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802    # Spark's name, as below
        while (end := super().latestOffset(start, limit)) == start:
            continue  # no batch is empty, not even the first: whoever is killed in one has records in hand
        self.tell("acquired")
        return end

    def commit(self, end: Mapping[str, Any]) -> None:
        super().commit(end)
        self.tell("committed")


def main(options: dict[str, str], folder: Path, fatal: str, nth: int) -> None:
    tell = Teller(str(folder / "words"), fatal, nth)
    attempts: Counter[int] = Counter()

    class TellingSource(ShareGroupSource):
        def streamReader(self, schema: Any) -> StreamReader:  # noqa: N802
            reader = TellingReader(parse(self.options), str(folder / "verdicts"))
            reader.tell = tell
            return reader

    def sink(df: DataFrame, number: int) -> None:
        tell("begun")
        rows = [(row.partition, row.offset) for row in df.select("partition", "offset").collect()]
        tell("read")
        attempts[number] += 1
        draft = folder / f"{os.getpid()}.draft"
        draft.write_text(json.dumps(rows))
        draft.replace(folder / f"batch-{number}-{attempts[number]}-{os.getpid()}.json")
        tell("written")

    spark = session(master="local[1]")
    spark.dataSource.register(TellingSource)
    stream = spark.readStream.format("shareq").options(**options).load().writeStream
    finish(stream.foreachBatch(sink).option("checkpointLocation", str(folder / "checkpoint")).start, None)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
