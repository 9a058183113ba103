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
    yield made
    made.stop()
