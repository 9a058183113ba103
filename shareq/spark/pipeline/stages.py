"""The order in which the tables of a trace are computed, and by how many Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shareq.spark.pipeline.jobs import Trace
from shareq.spark.pipeline.one_pass.job import in_one_pass
from shareq.spark.pipeline.schema import TABLES
from shareq.spark.pipeline.store import Store
from shareq.spark.progress import Step

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SMALL = 200_000
"""So many events are read by the process that starts the run, while Java starts."""

FEW = 1_000_000
"""So many events are processed in Python, in one task. Spark's plans for the tables take a minute of processor time,
whatever their number."""

EVENTS_PER_TASK = 250_000
"""The number of events that one task sorts in memory on a laptop."""

ALWAYS: Final = {
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.maxConcurrentOutputFileWriters": "64",
}
"""The size limit of compiled methods is Java's. The second setting lets all cores read a trace of a few MB, which may
be a million events. The third one lets a task write the events of all types at once, instead of sorting them first."""

ONE_PASS: Final = ALWAYS | {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""One job for each query: an adaptive plan has one for each shuffle, and the listing of many folders is one."""

SMALL_PASS: Final = ONE_PASS | {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""With so few events, compiling code would take longer than the work itself."""

_LONG: Final = ("deliveries", "locks", "kept_back", "windows", "attempts", "writes", "poison")
"""Tables whose length grows with the trace: Spark writes them."""

ONE_PASS_STEPS: Final = 2
STEPS: Final = 2 + len(_LONG) + 1


def settings_for(events: int) -> Mapping[str, str]:
    """The settings of Spark for so many events on disk."""
    if events <= FEW:
        return SMALL_PASS if events <= SMALL else ONE_PASS
    return ALWAYS | {"spark.sql.shuffle.partitions": str(-(-events // EVENTS_PER_TASK))}


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session within the context."""
    before = {name: str(spark.conf.get(name)) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def of_few(events: DataFrame, store: Store, step: Step) -> Mapping[str, pa.Table]:
    """Compute and write all tables of few events: one job. Returns them by name."""
    step("tables")
    found = in_one_pass(events)
    for name in TABLES:
        store.save(found[name], name)
    return found


def of_many(spark: SparkSession, store: Store, step: Step) -> Mapping[str, pa.Table]:
    """Compute and write all tables of the events on disk. Returns the short tables by name."""
    events = store.read(spark, "events").drop("batch")
    trace = Trace(spark, events.columns, lambda columns: events.select(*columns))
    found: dict[str, pa.Table] = {}

    def collect(*names: str) -> None:
        step(names[0])
        found.update(trace.collected(names))
        for name in names:
            trace.frames[name] = _local(spark, found[name])
            if name in TABLES:
                store.save(found[name], name)

    collect("journals", "leaderships", "members")
    collect("all_leaderships")
    for name in _LONG:
        step(name)
        store.write(trace.table(name), name)
        trace.frames[name] = store.read(spark, name)
    collect(*(name for name in (*TABLES, "worst") if name not in trace.frames))
    return found


def _local(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Rows in memory as one partition, which no query has to shuffle."""
    if not table.num_rows:  # Spark Connect wants a schema then
        from pyspark.sql.pandas.types import from_arrow_schema

        return spark.createDataFrame([], from_arrow_schema(table.schema)).coalesce(1)
    return spark.createDataFrame(table).coalesce(1)
