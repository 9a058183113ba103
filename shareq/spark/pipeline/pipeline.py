"""From a trace to tables, figures and a report: `run` once, `follow` continuously."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline.events import BAD
from shareq.spark.pipeline.report import report_html
from shareq.spark.pipeline.schema import EVENTS_SCHEMA, FRAMES, TABLES, as_json
from shareq.spark.pipeline.sources import READER, SCHEME, events_of
from shareq.trace.journal import JournalFileError
from shareq.trace.journal.event_text import count_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LANDED = "_landed"
"""The folder for events that may be duplicated, before deduplication into `events`."""

Step = Callable[[str], object]
"""Called with the name of each step."""

EVENTS_PER_TASK = 250_000
"""The number of events that one task sorts in memory on a laptop."""

ALWAYS = {
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.files.openCostInBytes": "65536",
}
"""The size limit of compiled methods is Java's. The second setting lets all cores read a trace of a few MB, which may
be a million events."""

FEW = 100_000
LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""With so few events, compiling code or adapting the plan would take longer than the work itself."""


@dataclass(frozen=True)
class Outcome:
    """The result of a run in the folder `out`. `bad` lines are in `out`/_bad."""

    out: str
    events: int
    bad: int


def run(
    trace: Any,
    out: str | PathLike[str],
    *,
    spark: SparkSession | None = None,
    progress: bool = True,
    report: bool = True,
) -> Outcome:
    """Read a trace once and write its tables, figures and report to the folder `out`, which is replaced.

    `trace`: a file or folder of journals, kafka://HOST:PORT/TOPIC, a `Journal` or an object with one, or a DataFrame
    with `value` (lines) and `key` or `journal`. `out`: a folder to which all executors can write. JournalFileError if
    the trace has no event.
    """
    spark = spark or _session()
    with _bar(progress, 2 + len(TABLES) + report) as step:
        step("events")
        landed = LANDED if _may_repeat(trace) else "events"
        land(events_of(spark, trace), f"{fspath(out)}/{landed}", 0, fresh=True)
        outcome = derive(spark, fspath(out), landed, step, report=report)
    if not outcome.events:
        raise JournalFileError(
            fspath(out), 0, f"no event in {trace}, and {count_text(outcome.bad, 'bad line')}: see _bad"
        )
    return outcome


def follow(
    trace: Any,
    out: str | PathLike[str],
    *,
    checkpoint: str | PathLike[str] | None = None,
    group: str = READER,
    spark: SparkSession | None = None,
    report: bool = True,
    **trigger: Any,
) -> StreamingQuery:
    """Follow a trace: a folder that receives journals, kafka://HOST:PORT/TOPIC (in share group `group`), or a streaming
    DataFrame. After each batch the tables cover all events so far.

    Each batch costs what `run` costs, so let batches be few: `trigger` is Spark's, such as
    `processingTime="1 minute"` or `availableNow=True`. `checkpoint` is Spark's, by default `out`/_checkpoint.
    """
    spark = spark or _session()
    place = fspath(out)

    def take_in(events: DataFrame, batch: int) -> None:
        land(events, f"{place}/{LANDED}", batch)
        derive(events.sparkSession, place, LANDED, lambda _: None, report=report)

    writer = events_of(spark, trace, streaming=True, group=group).writeStream.foreachBatch(take_in)
    writer = writer.option("checkpointLocation", fspath(checkpoint or f"{place}/_checkpoint"))
    return (writer.trigger(**trigger) if trigger else writer).start()


def read(spark: SparkSession, out: str | PathLike[str], name: str) -> DataFrame:
    """A written table, or "events"; with the documented column types, which are not inferred from values."""
    place = f"{fspath(out)}/{name}"
    if name in ("events", LANDED):
        return spark.read.schema(f"{EVENTS_SCHEMA}, batch bigint").parquet(place).where(f"type <> '{BAD}'")
    return spark.read.schema(TABLES[name].schema).parquet(place)


# ---- the steps -------------------------------------------------------------------------------------------------------


def land(events: DataFrame, place: str, batch: int, *, fresh: bool = False) -> None:
    """Write a batch of events and bad lines; a repeated batch replaces itself, a `fresh` one all others."""
    from pyspark.sql import functions as f

    numbered = events.withColumn("batch", f.lit(batch))
    mode = "static" if fresh else "dynamic"
    writer = numbered.write.mode("overwrite").option("partitionOverwriteMode", mode)
    with _settings(events.sparkSession, ALWAYS):
        writer.partitionBy("batch", "type").option("compression", "zstd").parquet(place)


def derive(spark: SparkSession, out: str, landed: str, step: Step, *, report: bool) -> Outcome:
    """Derive all tables from the landed events, if there are any."""
    step("bad lines")
    good, bad = _count(spark, out, landed)
    if not good:
        return Outcome(out, good, bad)
    settings = ALWAYS | {"spark.sql.shuffle.partitions": str(-(-good // EVENTS_PER_TASK))}
    with _settings(spark, settings | (LITTLE if good < FEW else {})):
        if landed != "events":  # some events may be duplicated
            once = read(spark, out, landed).drop("batch").dropDuplicates(["journal", "order"])
            land(once, f"{out}/events", 0, fresh=True)
        known = {"events": read(spark, out, "events").drop("batch")}
        for name, table in TABLES.items():
            step(name)
            _write(_made(spark, table.sql, known), out, name)
            known[name] = read(spark, out, name)
        if report:
            step("report")
            _put(out, "report.html", report_html(lambda name: known[name], good, bad))
    _put(out, "schema.json", json.dumps(as_json(), indent=1))
    return Outcome(out, good, bad)


def _made(spark: SparkSession, sql: str, known: dict[str, DataFrame]) -> DataFrame:
    """The result of an SQL text with {names} of tables."""
    for name, frame in FRAMES.items():
        if f"{{{name}}}" in sql and name not in known:
            known[name] = spark.createDataFrame(_made(spark, frame, known).toArrow())
    named: dict[str, Any] = {name: table for name, table in known.items() if f"{{{name}}}" in sql}
    return spark.sql(sql, **named)


def _write(made: DataFrame, out: str, name: str) -> None:
    from pyspark.sql import functions as f

    table = TABLES[name]
    shown = made.select(*[f.col(c.name).cast(c.type).alias(c.name) for c in table.columns])
    little = made.sparkSession.conf.get("spark.sql.adaptive.enabled") == "false"  # one part of whatever size
    if table.time:
        shown = shown.withColumn("date", f.expr(f"date_from_unix_date(CAST(floor(`{table.time}` / 86400000) AS int))"))
        shown = shown if little else shown.hint("rebalance", "group_id", "date")
    writer = (shown.coalesce(1) if little else shown).write.mode("overwrite").option("compression", "zstd")
    if table.time:
        writer = writer.option("partitionOverwriteMode", "static").partitionBy("group_id", "date")
    writer.parquet(f"{out}/{name}")


def _count(spark: SparkSession, out: str, landed: str) -> tuple[int, int]:
    """The numbers of events and of bad lines; writes the latter to _bad."""
    lines = spark.read.schema("journal string, why_bad string, line string, type string").parquet(f"{out}/{landed}")
    bad = lines.where(f"type = '{BAD}'").selectExpr("journal", "why_bad AS reason", "line")
    bad.coalesce(1).write.mode("overwrite").json(f"{out}/_bad")
    counts: dict[bool, int] = dict(lines.groupBy(lines.type == BAD).count().collect())
    return counts.get(False, 0), counts.get(True, 0)


def _put(out: str, name: str, text: str) -> None:
    """Write a file beside the tables, on their file system."""
    from pyarrow.fs import FileSystem

    files, place = FileSystem.from_uri(out if "://" in out else str(Path(out).absolute()))
    with files.open_output_stream(f"{place}/{name}") as file:
        file.write(text.encode())


@contextmanager
def _settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session within the context."""
    before = {name: str(spark.conf.get(name)) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _session() -> SparkSession:
    from shareq.spark.session import session

    return session()


def _may_repeat(trace: Any) -> bool:
    """True if lines may be duplicated: producers and share groups deliver at least once."""
    return str(trace).startswith(SCHEME) or hasattr(trace, "columns")


@contextmanager
def _bar(shown: bool, steps: int) -> Iterator[Step]:
    """A progress bar of the steps."""
    from tqdm.auto import tqdm

    with tqdm(total=steps, unit=" steps", disable=None if shown else True) as bar:

        def begin(name: str) -> None:
            bar.set_description(f"{name:<12}")
            bar.update(bar.n < steps)

        yield begin
