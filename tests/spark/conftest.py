"""One Spark session for the whole run: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from shareq.spark import session

    # Two cores and eight attempts: an attempt may get one of several workers that died with an earlier attempt.
    made = session(master="local[2,8]", **{"spark.sql.streaming.stopTimeout": "300s"})
    # The first job compiles and starts Python workers: not in the time limit of the test that comes first.
    made.range(1).mapInArrow(lambda batches: batches, "id long").collect()
    yield made
    made.stop()
