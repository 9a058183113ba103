"""One Spark session for the whole run: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shareq import Cluster, Producer
from tests.kafka.fixtures import Reachable
from tests.spark.stage import Stage, make_stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warm_up(spark: SparkSession) -> None:
    """The first job and the first read compile, and start Python's processes with all that they import: not in the time
    limit of the test that comes first."""
    spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
    with Cluster(brokers=1, clock="wall") as cluster, cluster.serve() as server:
        address = server.bootstrap_servers
        cluster.create_topic("warm")
        with Producer({"bootstrap.servers": address}) as producer:
            producer.produce("warm", b"up")
        options = {"kafka.bootstrap.servers": address, "subscribe": "warm", "group.id": "warm"}
        spark.read.format("shareq").options(**options).load().collect()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from shareq.spark import session

    # Two cores and eight attempts: an attempt may get one of several workers that died with an earlier attempt.
    made = session(master="local[2,8]", **{"spark.sql.streaming.stopTimeout": "300s"})
    warm_up(made)
    yield made
    made.stop()


@pytest.fixture
def stage(spark: SparkSession, served: Reachable, fresh: Callable[[str], str], tmp_path: Path) -> Stage:
    return make_stage(spark, served, fresh, tmp_path, 40)
