"""The session for a laptop, and versions of PySpark that are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shareq.spark import SparkDoesNotFit, session
from shareq.spark.versions import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0.dev1", "4.3.0", "5.0.0"])
def test_supported_versions_of_pyspark_are_accepted(version: str) -> None:
    check_pyspark(version)


@pytest.mark.parametrize("version", ["2.4.8", "3.5.3"])
def test_an_old_pyspark_is_refused_with_a_reason(version: str) -> None:
    with pytest.raises(SparkDoesNotFit, match=f"PySpark {version} does not support sources in Python.*pip install"):
        check_pyspark(version)


@pytest.mark.parametrize("version", ["4.0.5", "4.1.4"])
def test_streams_are_refused_where_spark_does_not_report_finished_batches(version: str) -> None:
    reason = f"PySpark {version} does not support acknowledging streams.*4.2 does.*batch reads"
    with pytest.raises(SparkDoesNotFit, match=reason):
        check_pyspark(version, streaming=True)


@pytest.mark.parametrize("version", ["4.2.0", "4.10.1", "5.0.0"])
def test_versions_of_pyspark_with_streams_are_accepted(version: str) -> None:
    check_pyspark(version, streaming=True)


def test_a_master_with_spark_connect_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be set with Spark Connect"):
        session(master="local[2]", **{"spark.remote": "sc://127.0.0.1"})


def test_an_unknown_spark_key_is_refused() -> None:
    with pytest.raises(ValueError, match="shuffle_partitions: keys of Spark"):
        session(shuffle_partitions=2)


def test_settings_of_the_user_replace_those_for_a_laptop(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.ui.enabled") == "false"
    again = session(**{"spark.sql.shuffle.partitions": "3"})
    try:
        assert again is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
