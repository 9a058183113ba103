"""A driver to be killed: reads a share group in small batches into files, and says on stdout how far it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from shareq.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(options: dict[str, str], checkpoint: str, folder: Path) -> None:
    def sink(df: DataFrame, number: int) -> None:
        print(f"read {number}", flush=True)
        rows = [(row.partition, row.offset) for row in df.select("partition", "offset").collect()]
        print(f"write {number}", flush=True)
        draft = folder / f"{number}.draft"
        draft.write_text(json.dumps(rows))
        draft.replace(folder / f"batch-{number}.json")
        print(f"written {number}", flush=True)

    spark = session(master="local[1]")
    stream = spark.readStream.format("shareq").options(**options).load().writeStream
    query = stream.foreachBatch(sink).option("checkpointLocation", checkpoint).start()
    print("started", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
