"""A share group read by Spark: batch, stream, limits, acknowledge types, failures, restarts, two queries in a group."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from shareq import Cluster, Producer
from shareq.admin import Admin, NewTopic
from shareq.spark import acknowledge
from tests.log import support
from tests.spark.patience import TIMEOUT_S, finish, is_running
from tests.spark.stage import Place, Stage, every_place, logged_places, make_stage, places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from shareq.wire.server import Server

MOMENT_MS = 1_760_000_000_123


@pytest.mark.parametrize("time_type", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("which", ["served", "kafka"], ids=["shareq", "apache-kafka"])
def test_rows_are_those_of_sparks_kafka_source(
    which: str, time_type: str, request: pytest.FixtureRequest, spark: SparkSession, fresh: Callable[[str], str]
) -> None:
    address, topic = request.getfixturevalue(which).bootstrap_servers, fresh("topic")
    headers = [("n", b"3"), ("none", None), ("n", b"")]
    with Admin({"bootstrap.servers": address}) as admin, Producer({"bootstrap.servers": address}) as producer:
        config = {"message.timestamp.type": time_type, "retention.ms": "-1"}  # keep such old records
        admin.create_topics([NewTopic(topic, 1, config=config)]).check()
        producer.produce(topic, b"value", b"key", headers=headers, timestamp=MOMENT_MS)
        producer.produce(topic, None, None, timestamp=MOMENT_MS + 1)
        producer.flush()
        options = {"kafka.bootstrap.servers": address, "subscribe": topic, "group.id": topic}
        first, second = spark.read.format("shareq").options(**options).load().orderBy("offset").collect()
        assert admin.list_share_group_offsets(topic) == {}  # a batch read takes nothing
    assert (bytes(first.key), bytes(first.value), first.topic, first.partition) == (b"key", b"value", topic, 0)
    assert [(header.key, header.value and bytes(header.value)) for header in first.headers] == headers
    assert (second.key, second.value, second.headers) == (None, None, None)
    assert [(row.offset, row.deliveryCount) for row in (first, second)] == [(0, 0), (1, 0)]
    assert {row.timestampType for row in (first, second)} == {int(time_type == "LogAppendTime")}
    times = [round(row.timestamp.astimezone(UTC).timestamp() * 1000) for row in (first, second)]
    assert (times == [MOMENT_MS, MOMENT_MS + 1]) == (time_type == "CreateTime")


def test_an_unknown_option_is_refused_by_name(stage: Stage) -> None:
    with pytest.raises(Exception, match="unknown option 'startingoffsets'"):
        stage.load(startingOffsets="earliest")


@pytest.mark.parametrize("which", ["served", "kafka"], ids=["shareq", "apache-kafka"])
def test_available_now_reads_and_acknowledges_all_records_within_limits(
    which: str,
    request: pytest.FixtureRequest,
    spark: SparkSession,
    fresh: Callable[[str], str],
    tmp_path: Path,
) -> None:
    stage = make_stage(spark, request.getfixturevalue(which), fresh, tmp_path, 40)
    batches: list[list[Place]] = []
    stage.run(lambda df, _: batches.append(places(df)), maxRecordsPerBatch="25")
    assert sorted(place for batch in batches for place in batch) == every_place(stage.records)
    assert max(map(len, batches)) <= 25
    assert stage.lag() == 0


def test_rejected_records_are_archived_and_released_ones_delivered_again(stage: Stage) -> None:
    seen: Counter[Place] = Counter()
    counts: dict[Place, int] = {}

    def sink(df: DataFrame, _: int) -> None:
        rows = df.select("partition", "offset", "deliveryCount").collect()
        seen.update((row.partition, row.offset) for row in rows)
        counts.update({(row.partition, row.offset): row.deliveryCount for row in rows})
        acknowledge(df.where("partition = 0 AND offset = 5"), "reject", group=stage.options["group.id"])
        acknowledge(df.where("partition = 1 AND offset IN (2, 3) AND deliveryCount = 1"), "release")

    stage.run(sink)
    twice = {(1, 2), (1, 3)}
    assert seen == {place: 2 if place in twice else 1 for place in every_place(stage.records)}
    assert {place for place, count in counts.items() if count == 2} == twice
    assert stage.lag() == 0


def test_a_restart_replays_exactly_the_unfinished_batch(stage: Stage) -> None:
    first: list[Place] = []

    def fails(df: DataFrame, _: int) -> None:
        first.extend(places(df))
        raise RuntimeError("the sink is full")

    with pytest.raises(Exception, match="the sink is full"):
        stage.run(fails, maxRecordsPerBatch="15")
    batches: dict[int, list[Place]] = {}
    stage.run(lambda df, number: batches.update({number: places(df)}), maxRecordsPerBatch="15")
    assert sorted(batches[0]) == sorted(first) == logged_places(stage.checkpoint, 0)
    assert {place for batch in batches.values() for place in batch} == set(every_place(stage.records))
    assert stage.lag() == 0


def test_a_broken_batch_is_rejected_and_the_stream_goes_on(stage: Stage, served: Server) -> None:
    """The progress of the query has the number of records that were left out."""
    assert isinstance(served.cluster, Cluster)
    log = served.cluster.log(stage.options["subscribe"], 1)
    log.append(support.broken(support.batch(b"lost", b"gone"), -1), now_ms=MOMENT_MS, leader_epoch=0, validate=False)
    with Producer({"bootstrap.servers": served.bootstrap_servers}) as producer:
        producer.produce(stage.options["subscribe"], b"behind them", partition=1)
    found: list[Place] = []
    writer = stage.load().writeStream.foreachBatch(lambda df, _: found.extend(places(df)))
    writer = writer.option("checkpointLocation", stage.checkpoint).trigger(availableNow=True)
    queries = []

    def start() -> Any:
        queries.append(writer.start())
        return queries[-1]

    finish(start)
    assert set(found) == {*every_place(stage.records), (1, stage.records // 2 + 2)}
    assert stage.lag() == 0
    (*_, progress) = queries[-1].recentProgress
    assert json.loads(progress["sources"][0]["endOffset"])["unreadable"] == 2


def dies_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Kill Spark's Python workers in the middle of the rows, at the first attempt of the first task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    assert os.getpgrp() == os.getppid()  # the daemon that forked the workers
    for batch in batches:
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        attempts = pa.array([context.attemptNumber()] * batch.num_rows, pa.int32())
        yield batch.set_column(2, "attempt", attempts)


def test_tasks_whose_worker_dies_are_run_again(stage: Stage) -> None:
    found: list[tuple[int, int, int]] = []

    def sink(df: DataFrame, _: int) -> None:
        rows = df.selectExpr("partition", "offset", "0 AS attempt")
        run = rows if found else rows.mapInArrow(dies_once, rows.schema)  # each death costs a start of the workers
        found.extend(tuple(row) for row in run.collect())

    stage.run(sink, minPartitions="4", maxRecordsPerBatch="20", **{"kafka.share.acquire.mode": "record_limit"})
    assert sorted((partition, offset) for partition, offset, _ in found) == every_place(stage.records)
    assert max(attempt for _, _, attempt in found) >= 1
    assert stage.lag() == 0


def test_two_queries_of_a_group_share_the_work(stage: Stage, tmp_path: Path) -> None:
    """Both hold records at the same time. The first batch of a query may be empty."""
    found: list[list[Place]] = [[], []]
    both = Barrier(2, timeout=TIMEOUT_S)

    def start(number: int) -> Any:
        def sink(df: DataFrame, _: int) -> None:
            rows, first = places(df), not found[number]
            found[number] += rows
            if rows and first:
                both.wait()

        options = {"maxRecordsPerBatch": "5", "kafka.share.acquire.mode": "record_limit"}
        writer = stage.load(**options).writeStream.foreachBatch(sink)
        return writer.option("checkpointLocation", str(tmp_path / f"of-{number}")).start()

    queries = [start(number) for number in range(2)]
    deadline = time.monotonic() + TIMEOUT_S
    while not all(found) or stage.lag() != 0:
        assert time.monotonic() < deadline, found
        queries = [query if is_running(query, 0.2) else start(number) for number, query in enumerate(queries)]
    for query in queries:
        query.stop()
    assert all(found)
    assert sorted(found[0] + found[1]) == every_place(stage.records)


def test_an_acknowledge_type_without_effect_is_refused(stage: Stage) -> None:
    rows = stage.spark.read.format("shareq").options(**stage.options).load()
    with pytest.raises(RuntimeError, match="no streaming query of group 'absent' is running"):
        acknowledge(rows, "reject", group="absent")
    with pytest.raises(ValueError, match="must be one of release, reject"):
        acknowledge(rows, "accept")
