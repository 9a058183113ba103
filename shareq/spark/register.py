"""Registration of the format "shareq" in a Spark session, and distribution of the package to its workers."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from shareq.spark.acknowledge import verdict_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHIPPED_KEY = "spark.shareq.shipped"

REDACTED_KEY = "spark.sql.redaction.options.regex"
"""Which options Spark hides in plans, beside those of `spark.redaction.regex` (secret, password, token)."""

SECRET_OPTIONS = r"ssl[.]key[.]pem|oauthbearer[.]config"


def register(spark: SparkSession) -> None:
    """Register the format "shareq" for `spark.readStream` and `spark.read`. Idempotent.

    Plans hide the values of its options that are secrets. On a cluster and with Spark Connect the package is sent along
    (see `ship`).
    """
    from shareq.spark.source import ShareGroupSource

    ship(spark)
    _redact(spark)

    class SourceOfThisSession(ShareGroupSource):
        """The source of this session. It runs in another process, so it carries the folder for `acknowledge`."""

        verdicts = verdict_folder(spark)

    spark.dataSource.register(SourceOfThisSession)


def _redact(spark: SparkSession) -> None:
    """Let Spark hide the options with secrets that it does not know by their names."""
    hidden = spark.conf.get(REDACTED_KEY) or ""
    if SECRET_OPTIONS not in hidden:
        spark.conf.set(REDACTED_KEY, f"{hidden}|{SECRET_OPTIONS}" if hidden else SECRET_OPTIONS)


def ship(spark: SparkSession) -> None:
    """Send this package to the workers of a session, once. They must have its dependencies (`shareq[spark]`).

    Local workers share this process's packages and need no copy.
    """
    if spark.conf.get(SHIPPED_KEY, None):
        return
    if is_remote(spark):
        spark.addArtifacts(str(_packed()), pyfile=True)
    elif not (spark.sparkContext.master or "local").startswith("local"):
        spark.sparkContext.addPyFile(str(_packed()))
    spark.conf.set(SHIPPED_KEY, "true")


def is_remote(spark: SparkSession) -> bool:
    """True for a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@cache
def _packed() -> Path:
    """This package as a zip. Workers fetch it from here while the driver runs; it is deleted with this process."""
    package = Path(__file__).parents[1]
    folder = tempfile.mkdtemp(prefix="shareq-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder, "shareq.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))
    return target
