"""Making the format "shareq" known to a Spark session."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from shareq.spark.acknowledge import verdict_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let `spark.readStream.format("shareq")` and `spark.read.format("shareq")` read share groups. Repeatable.

    On a cluster the package travels to the workers; what it needs (`shareq[spark,kafka]`) has to be installed there.
    """
    from shareq.spark.source import ShareGroupSource

    class SourceOfThisDriver(ShareGroupSource):
        """Spark runs sources in processes of their own: this one knows where `acknowledge` leaves its word."""

        verdicts = str(verdict_folder())

    if not (spark.sparkContext.master or "local").startswith("local"):
        spark.sparkContext.addPyFile(str(_packed()))
    spark.dataSource.register(SourceOfThisDriver)


def _packed() -> Path:
    """This package as a zip, as Spark hands it to its workers."""
    package = Path(__file__).parents[1]
    target = Path(tempfile.mkdtemp(prefix="shareq-")) / "shareq.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))
    return target
