"""Share groups as a source for Spark: `register`, then `spark.readStream.format("shareq")`; `session` makes a Spark,
`sweep` runs scenarios on one, `state_topic` reads what share coordinators keep.

PySpark is loaded by the call that needs it, never by importing this.
"""

from shareq.spark.acknowledge import acknowledge
from shareq.spark.register import register
from shareq.spark.session import SparkDoesNotFit, session
from shareq.spark.state_topic import state_topic
from shareq.spark.sweep import sweep

__all__ = ["SparkDoesNotFit", "acknowledge", "register", "session", "state_topic", "sweep"]
