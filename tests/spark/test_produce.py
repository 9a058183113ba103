"""A share group in, a topic out: repeated rows differ in their origin."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from shareq.admin import Admin, NewTopic
from shareq.model.errors import KafkaException
from shareq.spark import origin, produce
from shareq.spark.produce import write_rows
from tests.kafka.fixtures import Reachable
from tests.spark.patience import finish
from tests.spark.stage import Stage, every_place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, address: str, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": address, "subscribe": topic, "group.id": topic}
    return spark.read.format("shareq").options(**options).load()


def test_results_of_a_repeated_batch_have_one_origin(
    spark: SparkSession, stage: Stage, fresh: Callable[[str], str]
) -> None:
    """The first batch fails after its rows are written, so that the restarted query writes them again."""
    results = fresh("results")
    address = stage.options["kafka.bootstrap.servers"]
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(results, 2)]).check()
    written: list[int] = []

    def sink(df: DataFrame, number: int) -> None:
        answers = df.selectExpr("upper(string(value)) AS value", "topic", "partition", "offset")
        written.append(produce(answers, results, {"bootstrap.servers": address}))
        if len(written) == 1:
            raise OSError("the sink fails after its write")

    with pytest.raises(Exception, match="the sink fails"):
        stage.run(sink)
    stage.run(sink)
    assert stage.lag() == 0
    rows = read(spark, address, results).select("value", origin("headers").alias("origin"))
    found = [(bytes(row.value), row.origin) for row in rows.collect()]
    assert len(found) == sum(written) > stage.records
    topic = stage.options["subscribe"]
    expected = {(b"VALUE-%d" % (2 * offset + partition), f"{topic}/{partition}/{offset}")
                for partition, offset in every_place(stage.records)}  # fmt: skip
    assert set(found) == expected
    assert rows.dropDuplicates(["origin"]).count() == stage.records


def test_the_example_of_the_module_answers_each_record_once(
    spark: SparkSession, stage: Stage, fresh: Callable[[str], str]
) -> None:
    results, address = fresh("results"), stage.options["kafka.bootstrap.servers"]
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(results, 2)]).check()
    text = import_module("shareq.spark.produce").__doc__ or ""
    example = dedent("\n".join(re.findall(r"^(?: {4}.*)?$", text, re.MULTILINE)))
    for shown, used in {
        "127.0.0.1:9092": address,
        '"results"': f'"{results}"',
        '"checkpoint"': f'"{stage.checkpoint}"',
    }.items():
        assert shown in example
        example = example.replace(shown, used)
    there, started, back = example.partition(".start().awaitTermination()\n")
    assert started
    names: dict[str, Any] = {"spark": spark, "options": stage.options, "produce": produce, "origin": origin}
    exec(f"{there}\n", names)
    finish(names["writer"].start)
    exec(back, names)
    found = sorted(bytes(row.value) for row in names["answers"].collect())
    assert found == sorted(b"VALUE-%d" % number for number in range(stage.records))


def test_keys_and_headers_are_written(spark: SparkSession, served: Reachable, fresh: Callable[[str], str]) -> None:
    topic, address = fresh("results"), served.bootstrap_servers
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(topic, 1)]).check()
    headers = (
        "array(named_struct('key', 'n', 'value', binary('3')), named_struct('key', 'none', 'value', NULL)) headers"
    )
    rows = spark.range(3).selectExpr("string(id) AS value", "concat('k', id) AS key", headers)
    assert produce(rows, topic, {"bootstrap.servers": address}) == 3
    found = read(spark, address, topic).withColumn("origin", origin("headers")).orderBy("value").collect()
    assert [(bytes(row.key), bytes(row.value), row.origin) for row in found] == [
        (b"k%d" % number, b"%d" % number, None) for number in range(3)
    ]
    shown = [[(each.key, each.value and bytes(each.value)) for each in row.headers] for row in found]
    assert shown == [[("n", b"3"), ("none", None)]] * 3


def test_a_row_that_is_not_delivered_fails_its_task(served: Reachable, fresh: Callable[[str], str]) -> None:
    """Also when rows after it are delivered."""
    topic, address = fresh("results"), served.bootstrap_servers
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(topic, 1, config={"max.message.bytes": "1000"})]).check()
    rows = pa.RecordBatch.from_pydict({"value": [b"x" * 5_000, b"small"]})
    task = write_rows(iter([rows]), topic, {"bootstrap.servers": address, "linger.ms": 0})
    with pytest.raises(KafkaException, match="MESSAGE_TOO_LARGE"):
        next(task)


def test_rows_without_a_value_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="rows must have a column 'value', besides id"):
        produce(spark.range(1), "results", {})
