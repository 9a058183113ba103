"""The folder of a trace's tables, on any file system that all executors can write to.

Spark writes long tables, this process short ones: in the same form, without a Spark job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline.events import BAD
from shareq.spark.pipeline.schema import EVENTS_SCHEMA, TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

LANDED = "_landed"
"""The folder for events that may be duplicated, before deduplication into `events`."""

WRITTEN = frozenset({*TABLES, "events", LANDED, "_bad", "report.html", "schema.json"})
"""What a run writes into the folder."""

_COMPRESSION = "zstd"
_SPECIAL = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""What Spark writes as %XX in the name of a folder."""


@dataclass(frozen=True)
class Store:
    """The folder `out`: a path, or an address that both Spark and pyarrow know."""

    out: str

    # ---- by Spark ----------------------------------------------------------------------------------------------------

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """A written table, or "events"; with the documented column types, which are not inferred from values."""
        place = f"{self.out}/{name}"
        if name in ("events", LANDED):
            return spark.read.schema(f"{EVENTS_SCHEMA}, batch bigint").parquet(place).where(f"type <> '{BAD}'")
        return spark.read.schema(TABLES[name].schema).parquet(place)

    def write(self, table: DataFrame, name: str) -> None:
        """Replace a table by the rows of a DataFrame."""
        if TABLES[name].time and table.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true":
            table = table.hint("rebalance", "group_id", "date")
        writer = table.write.mode("overwrite").option("compression", _COMPRESSION)
        if TABLES[name].time:
            writer = writer.option("partitionOverwriteMode", "static").partitionBy("group_id", "date")
        writer.parquet(f"{self.out}/{name}")

    def land(self, events: DataFrame, name: str, batch: int, *, fresh: bool) -> None:
        """Write a batch of events and bad lines; a repeated batch replaces itself, a `fresh` one all others."""
        from pyspark.sql import functions as f

        writer = events.withColumn("batch", f.lit(batch)).write.mode("overwrite")
        writer = writer.option("partitionOverwriteMode", "static" if fresh else "dynamic")
        writer.partitionBy("batch", "type").option("compression", _COMPRESSION).parquet(f"{self.out}/{name}")

    # ---- by this process ---------------------------------------------------------------------------------------------

    def landed(self, name: str) -> dict[bool, int]:
        """The numbers of landed events (False) and of bad lines (True), from the ends of the files: an observation by
        Spark while it writes them would copy each row once more, a quarter of the work."""
        from pyarrow import parquet
        from pyarrow.fs import FileSelector

        files, place = self._place
        rows = {False: 0, True: 0}
        for found in files.get_file_info(FileSelector(f"{place}/{name}", recursive=True)):
            if found.extension == "parquet":
                rows[f"/type={BAD}/" in found.path] += parquet.read_metadata(found.path, filesystem=files).num_rows
        return rows

    def save(self, table: pa.Table, name: str) -> None:
        """Replace a table by rows in memory."""
        self._replace(table, name, ("group_id", "date") if TABLES[name].time else ())

    def save_events(self, events: pa.Table) -> None:
        """Replace the events, which include bad lines, by those in memory."""
        import pyarrow as pa

        self._replace(
            events.append_column("batch", pa.array([0] * len(events), pa.int32())), "events", ("batch", "type")
        )

    def save_bad(self, lines: list[dict[str, Any]]) -> None:
        """Replace the bad lines (journal, reason, line)."""
        self.clear("_bad")
        if lines:
            self.put("_bad/part-0.json", "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))

    def put(self, name: str, text: str) -> None:
        """Write a file beside the tables."""
        files, place = self._place
        with files.open_output_stream(f"{place}/{name}") as file:
            file.write(text.encode())

    def clear(self, name: str) -> None:
        """Make a folder empty."""
        files, place = self._place
        files.create_dir(f"{place}/{name}")
        files.delete_dir_contents(f"{place}/{name}")

    def remove(self) -> None:
        """Remove all that a run writes; other files stay, and so does a folder with such."""
        from pyarrow.fs import FileSelector, FileType

        files, place = self._place
        for found in files.get_file_info(FileSelector(place)):
            if found.base_name in WRITTEN:
                (files.delete_dir if found.type is FileType.Directory else files.delete_file)(found.path)
        if not files.get_file_info(FileSelector(place)):
            files.delete_dir(place)

    def _replace(self, table: pa.Table, name: str, by: tuple[str, ...]) -> None:
        from pyarrow import parquet

        self.clear(name)
        files, place = self._place
        for folder, rows in _parts(table, by):
            files.create_dir(f"{place}/{name}/{folder}")
            target = f"{place}/{name}/{folder}part-0.parquet"
            parquet.write_table(rows, target, filesystem=files, compression=_COMPRESSION)

    @cached_property
    def _place(self) -> tuple[FileSystem, str]:
        from pyarrow.fs import FileSystem

        files, place = FileSystem.from_uri(self.out if "://" in self.out else str(Path(self.out).absolute()))
        files.create_dir(place)
        return files, place


def _parts(table: pa.Table, by: tuple[str, ...]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each folder, without the columns that its name has."""
    import pyarrow as pa

    if not by:
        yield "", table
        return
    numbered = table.select(by).append_column("row", pa.array(range(len(table)), pa.int64()))
    rest = table.drop_columns(list(by))
    for found in numbered.group_by(list(by), use_threads=False).aggregate([("row", "list")]).to_pylist():
        folder = "".join(f"{each}={_SPECIAL.sub(_escaped, str(found[each]))}/" for each in by)
        yield folder, rest.take(found["row_list"])


def _escaped(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"
