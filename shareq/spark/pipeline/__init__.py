"""The trace pipeline: journals, from files or a topic, to tables, figures and a report. `TABLES.md` has the schema.

from shareq.spark import pipeline
pipeline.run("journals/", "out/")           # once; `shareq pipeline run` is the same from a shell
pipeline.follow("kafka://host:9092/trace", "out/", processingTime="1 minute")
pipeline.read(spark, "out/", "attempts")    # a table as a DataFrame
pipeline.publish(cluster, producer, "trace")
"""

from shareq.spark.pipeline.pipeline import Outcome, follow, read, run
from shareq.spark.pipeline.schema import TABLES, VERSION
from shareq.spark.pipeline.sources import publish

__all__ = ["TABLES", "VERSION", "Outcome", "follow", "publish", "read", "run"]
