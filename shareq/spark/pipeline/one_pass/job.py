"""The tables of a trace by one Spark job with one task, in Python.

The task returns each table in rows: its name, and some of its content in Arrow's format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from shareq.spark.pipeline.one_pass.events import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_PART: Final = 50_000
"""So many rows of a table are in one row of the task: Java keeps a row in one piece of memory."""


def in_one_pass(events: DataFrame) -> Mapping[str, pa.Table]:
    """All tables of the events, and the frames that the report shows, by name."""
    import pyarrow as pa

    rows = events.select(*COLUMNS).coalesce(1).mapInArrow(_compute, "name string, content binary").toArrow()
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for name, content in zip(*rows.columns, strict=True):
        parts[name.as_py()].append(pa.ipc.open_stream(content.as_buffer()).read_all())
    return {name: pa.concat_tables(found) for name, found in parts.items()}


def _compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from shareq.spark.pipeline.one_pass.tables import tables_of
    from shareq.spark.worker import spare_modules

    spare_modules()
    for name, table in tables_of(pa.Table.from_batches(batches)).items():
        for first in range(0, max(len(table), 1), _PART):
            content = pa.BufferOutputStream()
            with pa.ipc.new_stream(content, table.schema) as writer:
                writer.write_table(table.slice(first, _PART))
            yield pa.record_batch({"name": [name], "content": [content.getvalue().to_pybytes()]})
