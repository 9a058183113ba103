"""The tables of a trace equal those that DuckDB computes from the same journals, record by record."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from click.testing import CliRunner

from shareq import Cluster, Producer, ShareConsumer
from shareq.admin import Admin, NewTopic
from shareq.cli import main
from shareq.lessons import Bench, settle
from shareq.model.events import RecordsDelivered, SharePartitionLoaded
from shareq.model.states import AcknowledgeType
from shareq.spark import pipeline
from shareq.spark.pipeline import stages
from shareq.spark.pipeline.events import columns
from shareq.spark.pipeline.schema import TABLES, as_markdown
from shareq.spark.pipeline.sources import events_of
from shareq.spark.pipeline.store import Store
from shareq.trace import Journal, attempts, lag_over_time
from tests.kafka.fixtures import Reachable
from tests.spark.patience import finish
from tests.spark.pipeline_journals import (
    as_version_1,
    in_transactions,
    in_trouble,
    late_story,
    of_a_leader,
    of_experiments,
    story,
)
from tests.spark.pipeline_oracle import BY_RECORD, counted, expected_of, names_of, oracle, written
from tests.trace.histories import ORIGIN_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BURST = "burst.jsonl"

BAD_LINES = {
    '{"order": 9000, "time_ms": 1, "broker"': "not a JSON object, or a field has the wrong type",
    "[1, 2]": "not a JSON object, or a field has the wrong type",
    '{"order":9001,"time_ms":true,"broker":0,"type":"BrokerStarted","broker_id":1}': "not a JSON object, or a field",
    '{"order":9002,"broker":0,"type":"BrokerStarted","broker_id":1}': "time_ms must be a whole number",
    '{"order":9003,"time_ms":1,"broker":0,"type":"Nonsense"}': "unknown event type Nonsense",
    '{"order":9004,"time_ms":1,"broker":0}': "unknown event type null",
    '{"order":9005,"time_ms":1,"broker":0,"type":"WindowMoved","group_id":"g","topic":"t","partition":0,"spso":1}': (
        "WindowMoved lacks the field window_end"
    ),
    '{"order":9006,"time_ms":1,"broker":0,"type":"BrokerStopped","broker_id":1,"killed":"yes"}': "not a JSON object",
}


def burst() -> Journal:
    """Half a minute of quiet, then 2,000 records, accepted after 50 ms but for ten, released first. 500 records are
    older than the group, which starts at the end of the log."""
    with Cluster(seed=7) as cluster:
        address = {"bootstrap.servers": cluster.bootstrap_servers}
        cluster.create_topic("orders", partitions=1)
        conf = {**address, "group.id": "g", "max.poll.records": 2_000, "share.acknowledgement.mode": "explicit"}
        with Producer(address) as producer, ShareConsumer(conf) as consumer:
            producer.produce_batch("orders", [{"value": b"old"}] * 500)
            producer.flush()
            consumer.subscribe(["orders"])
            while not any(isinstance(entry.event, SharePartitionLoaded) for entry in cluster.journal):
                assert not consumer.poll(1)
            cluster.advance(30_000)
            producer.produce_batch("orders", [{"value": b"new"}] * 2_000)
            producer.flush()
            accepted = 0
            while accepted < 2_000:
                messages = consumer.poll(10)
                cluster.advance(50)
                for message in messages:
                    first = message.delivery_count() == 1 and (message.offset() or 0) < 510
                    consumer.acknowledge(message, AcknowledgeType.RELEASE if first else AcknowledgeType.ACCEPT)
                    accepted += not first
                consumer.commit_sync()
            cluster.advance(30_000)
        return cluster.journal


def many_groups() -> Journal:
    """A delivery to each of forty groups. Spark lists more than 32 folders in a job."""
    journal = Journal(ORIGIN_MS)
    for number in range(40):
        journal.record(ORIGIN_MS, 0, RecordsDelivered(f"g{number}", "anna", "client", "orders", 0, 0, 1, 1, 1))
    return journal


def jobs(spark: SparkSession) -> int:
    """The number of jobs of the session so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


class Trace(NamedTuple):
    """Journals, their folder, the tables that were made of them, in how many Spark jobs, the output of the command, and
    the expected tables."""

    journals: Mapping[str, Journal]
    folder: Path
    out: Path
    jobs: int
    output: str
    oracle: Any


@pytest.fixture(scope="module")
def trace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The command on a folder of journals, some in Parquet, some of version 1, and one with bad lines: one run for all
    tests of what a run does, because it takes ten seconds of a processor."""
    folder, out = tmp_path_factory.mktemp("journals"), tmp_path_factory.mktemp("out") / "tables"
    in_trouble(11, 120).to_jsonl(folder / "faults.jsonl")
    lines = (folder / "faults.jsonl").read_text().splitlines()
    (folder / "faults.jsonl").write_text("\n".join([*lines[:40], *BAD_LINES, "", *lines[40:], ""]))
    of_a_leader(1, 300).to_jsonl(folder / "leader.jsonl")
    as_version_1(folder / "leader.jsonl")
    story().to_jsonl(folder / "story.jsonl")
    late_story().to_jsonl(folder / "late.jsonl")
    burst().to_jsonl(folder / BURST)
    many_groups().to_jsonl(folder / "groups.jsonl")
    in_transactions(13).to_jsonl(folder / "transactions.jsonl")
    of_experiments(14).to_parquet(folder / "experiments.parquet")
    in_trouble(12, 80).to_parquet(folder / "more.parquet")
    of_a_leader(2, 100).to_parquet(folder / "old.parquet")
    as_version_1(folder / "old.parquet")
    before = jobs(spark)  # the command uses the running session
    done = CliRunner().invoke(main, ["pipeline", "run", str(folder), "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    ran = jobs(spark) - before
    journals = {path.name: Journal.from_jsonl(path, strict=False) for path in folder.glob("*.jsonl")}
    journals |= {path.name: Journal.from_parquet(path) for path in folder.glob("*.parquet")}
    return Trace(journals, folder, out, ran, done.output, oracle(journals))


@pytest.mark.parametrize("name", TABLES)
def test_each_table_equals_an_independent_computation(trace: Trace, name: str) -> None:
    expected = expected_of(trace.oracle, name)
    assert written(trace.out, name) == expected
    assert expected


def test_spark_reads_tables_back_with_their_documented_columns(trace: Trace, spark: SparkSession) -> None:
    for name in TABLES:
        table = pipeline.read(spark, trace.out, name)
        if name in BY_RECORD:
            table = table.selectExpr("*", "explode(sequence(`first`, `end` - 1)) AS o")
        assert counted(table.select(*names_of(name)).collect()) == expected_of(trace.oracle, name), name


def test_the_journals_cover_every_outcome(trace: Trace) -> None:
    """Otherwise the comparison would prove little."""
    found = {name for (name,) in trace.oracle.execute("SELECT DISTINCT outcome FROM records").fetchall()}
    assert found >= {
        "accept", "release", "reject", "gap", "lock_timeout", "session_release", "aborted", "log_start", "missing",
        "passed", "lost", "held", "txn_abort",
    }  # fmt: skip
    kept_back = trace.oracle.execute("SELECT DISTINCT event FROM kept_back").fetchall()
    assert {name for (name,) in kept_back} == {
        "rests", "rested", "staged", "txn_commit", "txn_abort", "expired", "skipped",
    }  # fmt: skip
    ends = {name for (name,) in trace.oracle.execute("SELECT DISTINCT ended FROM leaderships").fetchall()}
    assert ends == {"dropped", "stopped", "superseded", None}


def test_every_event_is_in_the_table_of_events(trace: Trace, spark: SparkSession) -> None:
    events = pipeline.read(spark, trace.out, "events")
    expected = Counter((name, type(e.event).__name__) for name, journal in trace.journals.items() for e in journal)
    assert {
        (row.journal, row.type): row["count"] for row in events.groupBy("journal", "type").count().collect()
    } == expected
    assert {name for name, _ in events.dtypes} == {*columns(), "batch"}


def test_bad_lines_are_counted_and_kept_apart(trace: Trace) -> None:
    kept = [json.loads(line) for part in (trace.out / "_bad").glob("*.json") for line in part.read_text().splitlines()]
    assert {row["line"]: row["journal"] for row in kept} == dict.fromkeys(BAD_LINES, "faults.jsonl")
    assert all(row["reason"].startswith(BAD_LINES[row["line"]]) for row in kept)
    assert f"{len(BAD_LINES)} bad lines" in trace.output


def test_tables_are_partitioned_by_group_and_date(trace: Trace) -> None:
    parts = {path.relative_to(trace.out).parts[:3] for path in trace.out.glob("attempts/*/*/*.parquet")}
    assert ("attempts", "group_id=007", "date=2026-01-01") in parts
    assert {group for _, group, _ in parts} == {"group_id=007", "group_id=g", "group_id=group"}


def test_the_schema_is_documented_and_versioned(trace: Trace, spark: SparkSession) -> None:
    document = Path(pipeline.__file__).with_name("TABLES.md")
    assert document.read_text() == as_markdown()
    written = json.loads((trace.out / "schema.json").read_text())
    assert written["version"] == pipeline.VERSION
    for name, table in TABLES.items():
        there = dict(spark.read.parquet(str(trace.out / name)).dtypes)
        assert there.keys() == {column.name for column in table.columns} | ({"date"} if table.time else set())
        types = {column["name"]: column["type"] for column in written["tables"][name]}
        assert {column.name: column.type for column in table.columns}.items() <= types.items()
        assert all(there[column] == kind for column, kind in types.items() if column not in ("group_id", "date"))


def test_the_report_has_a_sentence_for_each_chart(trace: Trace) -> None:
    report = (trace.out / "report.html").read_text()
    figures = re.findall(r'<figure>.*?<img src="(.*?)" alt=".+?"><figcaption>(.+?)</figcaption>', report)
    acquiring = len(trace.journals) - 1  # the groups of one have acquired no record
    assert len(figures) >= 6 * acquiring - 2  # one of them has no append, so no chart of latency
    assert all(source.startswith("data:image/svg+xml;base64,") and re.search(r"\d", text) for source, text in figures)
    assert not re.search(r'(?:src|href)="(?!data:)', report)
    accepted = trace.oracle.execute(
        "SELECT sum(accepted)::BIGINT FROM rates WHERE journal = 'faults.jsonl'"
    ).fetchone()[0]
    assert f"{accepted:,} accepted" in report


def test_a_topic_is_read_and_followed_without_counting_duplicates(
    spark: SparkSession, served: Reachable, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    topic, journal = fresh("trace"), story()
    with Admin({"bootstrap.servers": served.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, 2)]).check()
    with Producer({"bootstrap.servers": served.bootstrap_servers}) as producer:
        assert pipeline.publish(journal, producer, topic, journal="story") == journal.total
        assert pipeline.publish(journal, producer, topic, journal="story", since=10) == journal.total
    address, expected = f"kafka://{served.bootstrap_servers}/{topic}", oracle({"story": journal})
    done = pipeline.run(address, tmp_path / "run", spark=spark, progress=False, report=False)
    assert done.events == 2 * journal.total - 10
    options: dict[str, Any] = {"group": fresh("g"), "spark": spark, "report": False, "availableNow": True}
    finish(lambda: pipeline.follow(address, tmp_path / "out", **options), 1000)
    for out in (tmp_path / "run", tmp_path / "out"):
        assert {name for name in TABLES if written(out, name) != expected_of(expected, name)} == set(), out


def test_small_journals_take_two_jobs(trace: Trace) -> None:
    """One would do without bad lines."""
    assert trace.jobs == 2


@pytest.mark.parametrize("limit", ["SMALL", "FEW"])
def test_more_events_have_the_same_tables_and_report(
    trace: Trace, limit: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads those above SMALL, and makes the tables of those above FEW by its SQL."""
    monkeypatch.setattr(stages, "SMALL", 0)
    monkeypatch.setattr(stages, limit, 0)
    before = jobs(spark)
    done = pipeline.run(trace.folder, tmp_path, spark=spark, progress=False)
    assert limit == "FEW" or jobs(spark) - before <= 4
    assert (done.events, done.bad) == (sum(map(len, trace.journals.values())), len(BAD_LINES))
    assert {name for name in TABLES if written(tmp_path, name) != expected_of(trace.oracle, name)} == set()
    reports = [(out / "report.html").read_text().count("<figure>") for out in (trace.out, tmp_path)]
    assert reports[0] == reports[1] > 0


def test_the_figures_of_a_short_burst_are_those_of_the_trace(trace: Trace, spark: SparkSession) -> None:
    """Its records are open within one bin, at whose end the lag is 0."""
    journal = trace.journals[BURST]

    def rows(table: str, where: str = "true") -> list[Any]:
        return pipeline.read(spark, trace.out, table).where(f"journal = '{BURST}' AND {where}").collect()

    lags = rows("lag")
    started_ms = next(entry.time_ms for entry in journal if isinstance(entry.event, SharePartitionLoaded))
    known = [lag for time_ms, lag in lag_over_time(journal, "g", "orders") if time_ms >= started_ms]
    assert (max(row.max_lag for row in lags), max(row.lag for row in lags)) == (max(known), 0) == (2_000, 0)
    found = attempts(journal, "g", "orders")
    (latency,) = rows("latency", "stage = 'processing'")
    assert (latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms) == tuple(found.latency_ms.values())
    accepted = rows("redeliveries", "outcome = 'accept'")
    assert {row.delivery_count: row.records for row in accepted} == found.deliveries == {1: 1_990, 2: 10}
    assert "orders-0 at most 2,000, 0 in the end" in (trace.out / "report.html").read_text()


def test_the_shares_of_a_killed_member_and_of_the_one_after_it(spark: SparkSession, tmp_path: Path) -> None:
    """Lesson 11: what the first has acquired and never accepted is what the second acquires again."""
    bench = Bench(*[10] * 4)
    first, second = (bench.consumer(name, most=10) for name in ("driver-1", "driver-2"))
    settle(first, first.poll(1))
    held = [message.offset() for message in first.poll(1)]
    bench.cluster.crash(first)
    while bench.view.snapshot()["lag"]:
        settle(second, second.poll(60))
    bench.cluster.journal.to_jsonl(tmp_path / "run.jsonl")
    pipeline.run(tmp_path / "run.jsonl", tmp_path / "tables", spark=spark, progress=False, report=False)
    shares = pipeline.read(spark, str(tmp_path / "tables"), "shares")
    rows = {tuple(row) for row in shares.select("client_id", "acquired", "accepted").collect()}
    assert rows == {("driver-1", 20, 10), ("driver-2", 30, 30)}
    assert [offset for offset in range(40) if bench.life(offset).holders == ["driver-1", "driver-2"]] == held


def test_a_group_with_any_name_is_read_back(spark: SparkSession, tmp_path: Path) -> None:
    names = ["a/b c", "100%", "group_id=x", "[1]"]
    types = {"string": pa.string(), "bigint": pa.int64()}
    schema = pa.schema([(name, types[kind]) for name, kind, _ in TABLES["deliveries"].columns])
    rows = pa.Table.from_pylist([{"group_id": name, "order": place} for place, name in enumerate(names)], schema)
    day = pa.array([date(2026, 1, 1)] * len(names))
    store = Store(str(tmp_path))
    store.save(rows.append_column("date", day), "deliveries")
    found = store.read(spark, "deliveries").collect()
    assert {row.order: (row.group_id, row.date) for row in found} == {
        place: (name, date(2026, 1, 1)) for place, name in enumerate(names)
    }
    store.save(rows.append_column("date", day).slice(1), "deliveries")
    assert store.read(spark, "deliveries").count() == len(names) - 1


def test_a_journal_gives_the_same_events_in_memory_and_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    journal = story()
    journal.to_jsonl(tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    parts = tmp_path / "two parts.jsonl"
    parts.mkdir()
    (parts / "part-0").write_text("".join(lines[:20]))
    (parts / "part-1").write_text("".join(lines[20:]))
    names = ["order", *(name for name in columns() if name not in ("journal", "order"))]
    rows = [
        sorted(events_of(spark, trace).select(*names, "why_bad").collect())
        for trace in (journal, tmp_path / "whole.jsonl", parts)
    ]
    assert rows[0] == rows[1] == rows[2]
    assert [row.order for row in rows[0]] == list(range(journal.total))
    assert {row.journal for row in events_of(spark, str(parts)).select("journal").collect()} == {"two parts.jsonl"}


def test_new_journals_in_a_folder_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    folder, journal = tmp_path / "journals", story()
    folder.mkdir()
    for name, write in (("one.jsonl", journal.to_jsonl), ("two.parquet", journal.to_parquet)):
        write(folder / name)
        stream = events_of(spark, str(folder), streaming=True).select("journal", "order").writeStream
        stream = stream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = stream.trigger(availableNow=True).start(str(tmp_path / "landed"))
        assert query.awaitTermination(1000)
    found = Counter(tuple(row) for row in spark.read.parquet(str(tmp_path / "landed")).collect())
    assert found == Counter((name, entry.order) for name in ("one.jsonl", "two.parquet") for entry in journal)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        pytest.param("prose.txt", "no event in {}, and 1 bad line", id="not a journal"),
        pytest.param("nothing.jsonl", "{} does not exist", id="no file"),
        pytest.param("empty.jsonl", "no event in {}, and 0 bad lines", id="an empty file"),
        pytest.param("folder", "there is no journal (*.jsonl, *.parquet) in {}", id="a folder without journals"),
        pytest.param("damaged.parquet", "damaged.parquet", id="a damaged file"),
        pytest.param("kafka://host:9092", "must be kafka://HOST:PORT/TOPIC", id="no topic"),
    ],
)
def test_an_invalid_trace_is_refused(spark: SparkSession, tmp_path: Path, trace: str, message: str) -> None:
    del spark  # the command uses the running session
    (tmp_path / "prose.txt").write_text("It was a dark and stormy night.\n")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "damaged.parquet").write_text("PAR1, and nothing more")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").touch()
    where = trace if ":" in trace else str(tmp_path / trace)
    done = CliRunner().invoke(main, ["pipeline", "run", where, "--out", str(tmp_path / "out"), "--no-progress"])
    assert done.exit_code == 1
    assert message.format(where) in done.output
    assert len(done.output) < 1000


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        pytest.param("one.jsonl", "Spark reads a file once, even if it grows", id="a file"),
        pytest.param("nothing", "does not exist", id="no folder"),
        pytest.param(7, "7 cannot be followed", id="a number"),
    ],
)
def test_a_trace_that_cannot_be_followed_is_refused(
    spark: SparkSession, tmp_path: Path, trace: Any, message: str
) -> None:
    (tmp_path / "one.jsonl").touch()
    with pytest.raises((OSError, ValueError), match=message):
        pipeline.follow(tmp_path / trace if isinstance(trace, str) else trace, tmp_path / "out", spark=spark)
