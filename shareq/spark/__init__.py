"""Share groups as a source for Spark: `register`, then `spark.readStream.format("shareq")`; `session` makes a Spark,
`sweep` runs scenarios on one, `state_topic` reads what share coordinators keep.

Options of the source, named as those of Spark's Kafka source where that has them:

    kafka.bootstrap.servers   where the brokers are; must be set
    subscribe                 topics, with commas between them; must be set
    group.id                  the share group; must be set
    maxRecordsPerBatch        how many records a batch has at most; 500000
    minPartitions             how many tasks read a batch at least; one a core, of 5000 records or more
    lockRenewal               whether locks are renewed while a batch runs; true
    onFailure                 release or reject: what becomes of a batch that was begun when the query stops, and of
                              records that cannot be decompressed; release
    kafka.*                   any other configuration of a share consumer, such as kafka.share.acquire.mode

Columns are those of Spark's Kafka source and `deliveryCount`. A batch read takes nothing: it shows what the group has
not finished with. Records whose CRC is wrong are rejected, as by any share consumer; no batch has what cannot be read,
and the offset in a query's progress counts it as `unreadable`.

PySpark is loaded by the call that needs it, never by importing this.
"""

from shareq.spark.acknowledge import acknowledge
from shareq.spark.register import register
from shareq.spark.session import session
from shareq.spark.state_topic import state_topic
from shareq.spark.sweep import sweep
from shareq.spark.versions import SparkDoesNotFit

__all__ = ["SparkDoesNotFit", "acknowledge", "register", "session", "state_topic", "sweep"]
