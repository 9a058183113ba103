"""A share group read by Spark: batch, streaming, limits, verdicts, failures, a restart, two queries in one group."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from shareq import Producer
from shareq.admin import Admin, NewTopic
from shareq.spark import acknowledge
from tests.kafka.fixtures import Reachable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMEOUT_S = 120

Place = tuple[int, int]
"""(partition, offset)."""


class Scene(NamedTuple):
    """A topic with records, a group that begins at its beginning, and where Spark keeps its notes."""

    spark: SparkSession
    options: dict[str, str]
    checkpoint: str
    records: int

    def load(self, **options: str) -> DataFrame:
        return self.spark.readStream.format("shareq").options(**self.options, **options).load()

    def run(self, sink: Callable[[DataFrame, int], None], **options: str) -> Any:
        """Read what is available now, into a sink; the query, which has ended."""
        writer = self.load(**options).writeStream.foreachBatch(sink).option("checkpointLocation", self.checkpoint)
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(TIMEOUT_S)
        return query

    def lag(self) -> int | None:
        with Admin({"bootstrap.servers": self.options["kafka.bootstrap.servers"]}) as admin:
            lags = [row.lag for row in admin.list_share_group_offsets(self.options["group.id"]).values()]
        return None if None in lags else sum(lag or 0 for lag in lags)


def prepare(broker: Reachable, name: Callable[[str], str], records: int) -> dict[str, str]:
    """A topic of two partitions with records, and a group that begins at its beginning, as options of the source."""
    topic, group, address = name("topic"), name("group"), broker.bootstrap_servers
    with Admin({"bootstrap.servers": address}) as admin:
        admin.create_topics([NewTopic(topic, 2)]).check()
        admin.alter_group_configs(group, {"share.auto.offset.reset": "earliest", "share.session.timeout.ms": "6000"})
    with Producer({"bootstrap.servers": address}) as producer:
        for number in range(records):
            headers = [("n", b"%d" % number)] if number == 3 else None
            producer.produce(topic, b"value-%d" % number, b"key-%d" % number, partition=number % 2, headers=headers)
    return {"kafka.bootstrap.servers": address, "subscribe": topic, "group.id": group}


def scene(spark: SparkSession, broker: Reachable, name: Callable[[str], str], folder: Path, records: int) -> Scene:
    return Scene(spark, prepare(broker, name, records), str(folder / "checkpoint"), records)


@pytest.fixture
def small(spark: SparkSession, served: Reachable, fresh: Callable[[str], str], tmp_path: Path) -> Scene:
    return scene(spark, served, fresh, tmp_path, 40)


def places(df: DataFrame) -> list[Place]:
    return [(row.partition, row.offset) for row in df.select("partition", "offset").collect()]


def every_place(records: int) -> list[Place]:
    return sorted((number % 2, number // 2) for number in range(records))


def logged_places(checkpoint: str, number: int) -> list[Place]:
    """What Spark's offset log says of a batch."""
    logged = json.loads(Path(checkpoint, "offsets", str(number)).read_text().splitlines()[2])
    return sorted(
        (int(partition), offset)
        for topic in logged["topics"].values()
        for partition, rows in topic["partitions"].items()
        for begin, end, _ in rows
        for offset in range(begin, end)
    )


def test_rows_are_those_of_sparks_kafka_source(small: Scene) -> None:
    df = small.spark.read.format("shareq").options(**small.options).load()
    rows = {bytes(row.key): row for row in df.collect()}
    assert len(rows) == small.records
    row = rows[b"key-3"]
    assert (bytes(row.value), row.topic, row.partition) == (b"value-3", small.options["subscribe"], 1)
    assert (row.offset, row.timestampType, row.deliveryCount) == (1, 0, 0)
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("n", b"3")]
    assert rows[b"key-4"].headers is None
    with Admin({"bootstrap.servers": small.options["kafka.bootstrap.servers"]}) as admin:
        assert admin.list_share_group_offsets(small.options["group.id"]) == {}  # a batch read takes nothing


def test_an_unknown_option_is_refused_by_name(small: Scene) -> None:
    with pytest.raises(Exception, match="unknown option 'startingoffsets'"):
        small.load(startingOffsets="earliest")


@pytest.mark.parametrize("which", ["served", "kafka"], ids=["shareq", "apache-kafka"])
def test_what_is_available_now_arrives_within_limits_and_is_acknowledged(
    which: str,
    request: pytest.FixtureRequest,
    spark: SparkSession,
    fresh: Callable[[str], str],
    tmp_path: Path,
) -> None:
    at = scene(spark, request.getfixturevalue(which), fresh, tmp_path, 40)
    batches: list[list[Place]] = []
    at.run(lambda df, _: batches.append(places(df)), maxRecordsPerBatch="25")
    assert sorted(place for batch in batches for place in batch) == every_place(at.records)
    assert max(map(len, batches)) <= 25
    assert at.lag() == 0


def test_poison_is_rejected_and_what_was_released_comes_again(small: Scene) -> None:
    seen: Counter[Place] = Counter()
    counts: dict[Place, int] = {}

    def sink(df: DataFrame, _: int) -> None:
        rows = df.select("partition", "offset", "deliveryCount").collect()
        seen.update((row.partition, row.offset) for row in rows)
        counts.update({(row.partition, row.offset): row.deliveryCount for row in rows})
        acknowledge(df.where("partition = 0 AND offset = 5"), "reject", group=small.options["group.id"])
        acknowledge(df.where("partition = 1 AND offset IN (2, 3) AND deliveryCount = 1"), "release")

    small.run(sink)
    twice = {(1, 2), (1, 3)}
    assert seen == {place: 2 if place in twice else 1 for place in every_place(small.records)}
    assert {place for place, count in counts.items() if count == 2} == twice
    assert small.lag() == 0


def test_an_unfinished_batch_is_replayed_as_its_offset_says(small: Scene) -> None:
    first: list[Place] = []

    def fails(df: DataFrame, _: int) -> None:
        first.extend(places(df))
        raise RuntimeError("the sink is full")

    with pytest.raises(Exception, match="the sink is full"):
        small.run(fails, maxRecordsPerBatch="15")
    batches: dict[int, list[Place]] = {}
    small.run(lambda df, number: batches.update({number: places(df)}), maxRecordsPerBatch="15")
    assert sorted(batches[0]) == sorted(first) == logged_places(small.checkpoint, 0)
    assert {place for batch in batches.values() for place in batch} == set(every_place(small.records))
    assert small.lag() == 0
