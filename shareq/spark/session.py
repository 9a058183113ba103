"""A SparkSession set for a laptop, on whatever Java there is."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from shareq.jvm import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM = (4, 0)
"""The first PySpark with sources written in Python."""

STREAMING_MINIMUM = (4, 2)
"""The first one that tells a source what is done and whether it is to stop at what is available now. Without that
`availableNow` would read its records and never acknowledge them, until they are archived."""

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


class SparkDoesNotFit(RuntimeError):
    """No PySpark, or one that cannot do what is asked; the message says what to do."""


def session(*, master: str | None = None, app_name: str = "shareq", **config: Any) -> SparkSession:
    """A session with the format "shareq" registered, settings for a laptop beneath `config`.

    Spark's keys have dots: `session(**{"spark.sql.shuffle.partitions": 8})`; "spark.remote" asks for Spark Connect.
    Where a session is active already, it is that one, with `config` applied as far as Spark changes it at run time.
    Raises SparkDoesNotFit, JavaNotFound.
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    from shareq.spark.register import register

    strange = sorted(key for key in config if not key.startswith("spark."))
    if strange:
        raise ValueError(f"not Spark's: {', '.join(strange)}; its keys begin with 'spark.'")
    remote = config.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    if remote and master:
        raise ValueError(f"master={master!r} and Spark Connect at {remote!r}: only one can be had")
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


def check_pyspark(found: str | None = None, *, streaming: bool = False) -> None:
    """Raise SparkDoesNotFit unless PySpark (of version `found`, else the installed one) has what sources need."""
    advice = "`pip install 'shareq[spark]'` brings one that fits"
    if found is None:
        try:
            found = version("pyspark")
        except PackageNotFoundError:
            raise SparkDoesNotFit(f"PySpark is not installed: {advice}") from None
    numbers = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in found.split(".")[:2])
    if numbers < MINIMUM:
        raise SparkDoesNotFit(f"PySpark {found} has no sources written in Python, 4.0 has: {advice}")
    if streaming and numbers < STREAMING_MINIMUM:
        raise SparkDoesNotFit(
            f"PySpark {found} does not tell a stream written in Python which batches are done, 4.2 does: {advice}; "
            "batch reads, sweeps and pipelines work as it is"
        )


def _prepare_environment(*, java: bool) -> None:
    """Spark reads these when its JVM and its workers start; what the user has set stays."""
    if java:
        os.environ["JAVA_HOME"] = str(find_java(JAVA_MINIMUM).home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
