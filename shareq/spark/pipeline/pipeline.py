"""From a trace to tables, figures and a report: `run` once, `follow` continuously."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline import stages
from shareq.spark.pipeline.events import BAD
from shareq.spark.pipeline.one_pass.events import COLUMNS
from shareq.spark.pipeline.report import report_html
from shareq.spark.pipeline.schema import as_json
from shareq.spark.pipeline.small import read_here
from shareq.spark.pipeline.sources import READER, SCHEME, events_of, size_of
from shareq.spark.pipeline.stages import (
    ALWAYS,
    ONE_PASS_STEPS,
    SMALL_PASS,
    STEPS,
    of_few,
    of_many,
    settings,
    settings_for,
)
from shareq.spark.pipeline.store import LANDED, Store
from shareq.spark.progress import Step, steps_shown
from shareq.trace.journal import JournalFileError
from shareq.trace.journal.event_text import count_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_BAD_COLUMNS = ["journal", "reason", "line"]


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
    with `value` (lines) and `key` or `journal`. `out`: a folder to which this process and all executors can write.
    Up to a million events take at most four Spark jobs, with one for bad lines. JournalFileError if the trace has no
    event.
    """
    spark = spark or _session()
    return run_with(spark, trace, out, lambda: read_here(trace), progress=progress, report=report)


def run_with(
    spark: SparkSession,
    trace: Any,
    out: str | PathLike[str],
    read_early: Callable[[], pa.Table | None],
    *,
    progress: bool,
    report: bool,
) -> Outcome:
    """As `run`. `read_early` returns the events of a small trace, as `read_here` does."""
    store = Store(fspath(out))
    small = is_small(trace)
    with steps_shown((ONE_PASS_STEPS if small else STEPS) + report, shown=progress) as step:
        step("events")
        if small:
            outcome = _run_small(spark, trace, store, step, read_early(), report=report)
        else:
            landed = LANDED if _may_repeat(trace) else "events"
            counts = land(events_of(spark, trace), store, landed)
            outcome = derive(spark, store, landed, counts, step, report=report)
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
    store = Store(fspath(out))

    def take_in(events: DataFrame, batch: int) -> None:
        with settings(events.sparkSession, ALWAYS):
            store.land(events, LANDED, batch, fresh=False)
        derive(events.sparkSession, store, LANDED, store.landed(LANDED), lambda _: None, report=report)

    writer = events_of(spark, trace, streaming=True, group=group).writeStream.foreachBatch(take_in)
    writer = writer.option("checkpointLocation", fspath(checkpoint or f"{store.out}/_checkpoint"))
    return (writer.trigger(**trigger) if trigger else writer).start()


def read(spark: SparkSession, out: str | PathLike[str], name: str) -> DataFrame:
    """A written table, or "events"; with the documented column types, which are not inferred from values."""
    return Store(fspath(out)).read(spark, name)


# ---- the steps -------------------------------------------------------------------------------------------------------


def is_small(trace: Any) -> bool:
    """True if the events of a trace are few, as far as that is known without reading it."""
    size = size_of(trace)
    return size is not None and size <= stages.SMALL


def _run_small(
    spark: SparkSession, trace: Any, store: Store, step: Step, valid: pa.Table | None, *, report: bool
) -> Outcome:
    """The whole run for few events. `valid`: all of them, if they are known already."""
    with settings(spark, SMALL_PASS):
        good, bad = _read_by_spark(spark, trace) if valid is None else (valid, [])
        store.save_bad(bad)
        outcome = Outcome(store.out, len(good), len(bad))
        if outcome.events:
            store.save_events(good)
            tables = of_few(spark.createDataFrame(good.select(COLUMNS)), store, step)
            _finish(store, tables, outcome, step, report=report)
    return outcome


def _read_by_spark(spark: SparkSession, trace: Any) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The events and the bad lines of a trace, by one job."""
    import pyarrow.compute as pc

    events = events_of(spark, trace).coalesce(1).toArrow()
    is_bad = pc.equal(events["type"], BAD)
    bad = events.filter(is_bad).select(["journal", "why_bad", "line"]).rename_columns(_BAD_COLUMNS)
    return events.filter(pc.invert(is_bad)).drop_columns(["why_bad", "line"]), bad.to_pylist()


def land(events: DataFrame, store: Store, name: str) -> dict[bool, int]:
    """Write the events and bad lines of a trace in place of all others. Returns the numbers of events (False) and of
    bad lines (True)."""
    with settings(events.sparkSession, ALWAYS):
        store.land(events, name, 0, fresh=True)
    return store.landed(name)


def _lines(spark: SparkSession, store: Store, landed: str) -> DataFrame:
    schema = "journal string, why_bad string, line string, type string"
    return spark.read.schema(schema).parquet(f"{store.out}/{landed}")


def derive(
    spark: SparkSession, store: Store, landed: str, counts: Mapping[bool, int], step: Step, *, report: bool
) -> Outcome:
    """Derive all tables from the landed events, if there are any. `counts`: of events (False) and bad lines (True)."""
    step("bad lines")
    outcome = Outcome(store.out, counts[False], counts[True])
    if outcome.bad:
        bad = _lines(spark, store, landed).where(f"type = '{BAD}'").selectExpr("journal", "why_bad AS reason", "line")
        bad.coalesce(1).write.mode("overwrite").json(f"{store.out}/_bad")
    else:
        store.clear("_bad")
    if outcome.events:
        with settings(spark, settings_for(outcome.events)):
            events = store.read(spark, landed).drop("batch")
            if landed != "events":  # some events may be duplicated
                events = events.dropDuplicates(["journal", "order"])
                store.land(events, "events", 0, fresh=True)
            few = outcome.events <= stages.FEW
            tables = of_few(store.read(spark, "events"), store, step) if few else of_many(spark, store, step)
            _finish(store, tables, outcome, step, report=report)
    return outcome


def _finish(store: Store, tables: Mapping[str, pa.Table], outcome: Outcome, step: Step, *, report: bool) -> None:
    """Write what stands beside the tables."""
    if report:
        step("report")
        text = report_html(lambda name: tables[name].to_pylist(), outcome.events, outcome.bad)
        store.put("report.html", text)
    store.put("schema.json", json.dumps(as_json(), indent=1))


def _session() -> SparkSession:
    from shareq.spark.session import session

    return session()


def _may_repeat(trace: Any) -> bool:
    """True if lines may be duplicated: producers and share groups deliver at least once."""
    return str(trace).startswith(SCHEME) or hasattr(trace, "columns")
