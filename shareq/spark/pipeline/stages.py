"""The order in which the tables of a trace are computed, and by how many Spark jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shareq.spark.pipeline.jobs import Trace
from shareq.spark.pipeline.schema import TABLES
from shareq.spark.pipeline.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Step = Callable[[str], object]
"""Called with the name of each step."""

SMALL = 25_000
"""So many events are processed in memory, in one partition."""

FEW = 100_000
MEDIUM = 1_000_000

EVENTS_PER_TASK = 250_000
"""The number of events that one task sorts in memory on a laptop."""

ALWAYS: Final = {
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.files.openCostInBytes": "65536",
}
"""The size limit of compiled methods is Java's. The second setting lets all cores read a trace of a few MB, which may
be a million events."""

_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""With few events, compiling code would take longer than the work itself."""

_PLANNED_QUICKLY: Final = {
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "LEGACY",
    "spark.sql.optimizer.maxIterations": "1",
}
"""With few events, planning takes most of the time; the first two parts of it find nothing in such plans. LEGACY puts
the text of a WITH where its name stands, which spares the nodes of the plan in between. A plan that is optimized once
is as correct as one that is optimized until nothing changes."""

_ONE_JOB: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""One job for each query: an adaptive plan has one for each shuffle, each broadcast is one, too, and so is the listing
of a table's folders if there are many."""

IN_MEMORY: Final = ALWAYS | _INTERPRETED | _PLANNED_QUICKLY | _ONE_JOB | {"spark.sql.shuffle.partitions": "1"}

_LONG: Final = ("deliveries", "locks", "windows", "attempts", "writes", "poison")
"""Tables whose length grows with the trace: Spark writes them."""

_STAGES: Final = (
    (("journals", "leaderships"),),
    (("reigns",), ("deliveries", "members", "writes")),
    (("windows",), ("attempts", "locks")),
    (("lag", "occupancy"), ("latency", "redeliveries", "rates", "activity", "poison", "worst", "shares", "fairness")),
)
"""For small journals: the tables of each job; the jobs of a stage run side by side, and take about as long."""

IN_MEMORY_STEPS: Final = len(_STAGES) + 1
STEPS: Final = 2 + len(_LONG) + 1


def settings_for(events: int) -> Mapping[str, str]:
    """The settings of Spark for so many events on disk."""
    settings = ALWAYS | {"spark.sql.shuffle.partitions": str(-(-events // EVENTS_PER_TASK))}
    return settings | (_ONE_JOB if events <= MEDIUM else {}) | (_INTERPRETED if events < FEW else {})


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


def in_memory(spark: SparkSession, events: pa.Table, store: Store, step: Step) -> Mapping[str, pa.Table]:
    """Compute and write all tables of a small trace, seven jobs in all. Returns them by name."""
    trace = Trace(spark, events.column_names, lambda columns: _local(spark, events.select(columns)))
    found: dict[str, pa.Table] = {}
    with ThreadPoolExecutor() as pool:
        for stage in _STAGES:
            step(stage[0][0])
            for tables in tuple(pool.map(trace.collected, stage)):  # all jobs of a stage read the same frames
                found |= tables
                trace.frames |= {name: _local(spark, table) for name, table in tables.items()}
        for name in TABLES:
            store.save(found[name], name)
    return found


def on_disk(spark: SparkSession, store: Store, step: Step) -> Mapping[str, pa.Table]:
    """Compute and write all tables of the events on disk: nine jobs. Returns the short tables by name."""
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
    collect("reigns")
    for name in _LONG:
        step(name)
        store.write(trace.table(name), name)
        trace.frames[name] = store.read(spark, name)
    collect(*(name for name in (*TABLES, "worst") if name not in trace.frames))
    return found


def _local(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Rows in memory as one partition, so that no query of a small trace shuffles them."""
    if not table.num_rows:  # Spark Connect wants a schema then
        from pyspark.sql.pandas.types import from_arrow_schema

        return spark.createDataFrame([], from_arrow_schema(table.schema)).coalesce(1)
    return spark.createDataFrame(table).coalesce(1)
