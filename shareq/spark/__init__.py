"""Share groups as a source for Spark: `register`, then `spark.readStream.format("shareq")`; `session` creates a Spark
session and `close` ends it with its Java, `produce` writes results to a topic, `sweep` runs scenarios on Spark,
`state_topic` reads the state of share coordinators.

Options of the source, with the names of Spark's Kafka source where it has them:

    kafka.bootstrap.servers   bootstrap servers; required
    subscribe                 topics, separated by commas; required
    group.id                  the share group; required
    maxRecordsPerBatch        the most records in a batch; 500000
    minPartitions             the least number of tasks of a batch; by default one per core, of 5000 records or more
    lockRenewal               whether locks are renewed while a batch runs; true
    onFailure                 release or reject: the acknowledge type for a batch in progress when the query stops, and
                              for records that cannot be decompressed; release
    kafka.*                   any other configuration of a share consumer, such as kafka.share.acquire.mode

Columns are those of Spark's Kafka source and `deliveryCount`. A batch read acquires no records: it returns those that
the group has not finished. Records with a wrong CRC are rejected, as by any share consumer; unreadable records are in
no batch, and the offset in a query's progress counts them as `unreadable`.

This package imports PySpark only in the calls that need it.
"""

from shareq.spark.acknowledge import acknowledge
from shareq.spark.produce import origin, produce
from shareq.spark.register import register
from shareq.spark.session import close, session
from shareq.spark.state_topic import state_topic
from shareq.spark.sweep import sweep
from shareq.spark.versions import SparkDoesNotFit

__all__ = [
    "SparkDoesNotFit",
    "acknowledge",
    "close",
    "origin",
    "produce",
    "register",
    "session",
    "state_topic",
    "sweep",
]
