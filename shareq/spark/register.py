"""Making the format "shareq" known to a Spark session, and the package to its workers."""

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


def register(spark: SparkSession) -> None:
    """Let `spark.readStream.format("shareq")` and `spark.read.format("shareq")` read share groups. Repeatable.

    On a cluster and with Spark Connect the package travels along (see `ship`).
    """
    from shareq.spark.source import ShareGroupSource

    ship(spark)

    class SourceOfThisSession(ShareGroupSource):
        """The source of this session: it runs in another process, and knows the folder that `acknowledge` writes to."""

        verdicts = verdict_folder(spark)

    spark.dataSource.register(SourceOfThisSession)


def ship(spark: SparkSession) -> None:
    """Send this package to the workers of a session, once. What it needs (`shareq[spark]`) has to be installed there.

    Local workers share this process's packages and need nothing.
    """
    if spark.conf.get(SHIPPED_KEY, None):
        return
    if is_remote(spark):
        spark.addArtifacts(str(_packed()), pyfile=True)
    elif not (spark.sparkContext.master or "local").startswith("local"):
        spark.sparkContext.addPyFile(str(_packed()))
    spark.conf.set(SHIPPED_KEY, "true")


def is_remote(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect's."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@cache
def _packed() -> Path:
    """This package as a zip. Workers fetch it from here as long as there is a driver: it goes with this process."""
    package = Path(__file__).parents[1]
    folder = tempfile.mkdtemp(prefix="shareq-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder, "shareq.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))
    return target
