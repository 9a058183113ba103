"""A SparkSession with settings for a laptop, on any installed Java."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from shareq.jvm import find_java
from shareq.spark.register import register
from shareq.spark.versions import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MINIMUM = 17

LAPTOP = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def session(*, master: str | None = None, app_name: str = "shareq", **config: Any) -> SparkSession:
    """A session with the format "shareq" registered, and laptop settings as defaults of `config`.

    Spark's keys have dots: `session(**{"spark.sql.shuffle.partitions": 8})`; "spark.remote" selects Spark Connect.
    An active session is reused, with `config` applied as far as Spark allows it at run time. Raises SparkDoesNotFit,
    JavaNotFound.
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    strange = sorted(key for key in config if not key.startswith("spark."))
    if strange:
        raise ValueError(f"{', '.join(strange)}: keys of Spark's configuration begin with 'spark.'")
    remote = config.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    if remote and master:
        raise ValueError(f"master={master!r}: must not be set with Spark Connect ({remote!r})")
    _prepare_environment(java=not remote or remote.startswith("local"))
    builder = SparkSession.builder.appName(app_name)
    if not remote and SparkSession.getActiveSession() is None:
        builder = builder.master(master or config.get("spark.master", "local[*]"))
        config = {**LAPTOP, **config}
    for key, value in config.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def _prepare_environment(*, java: bool) -> None:
    """Set the variables that Spark reads when its JVM and its workers start; the user's values stay."""
    if java:
        os.environ["JAVA_HOME"] = str(find_java(JAVA_MINIMUM).home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
