"""Share groups as a source for Spark: `register`, then `spark.readStream.format("shareq")`; `session` makes a Spark.

PySpark is loaded by the call that needs it, never by importing this.
"""

from shareq.spark.acknowledge import acknowledge
from shareq.spark.register import register
from shareq.spark.session import SparkDoesNotFit, session

__all__ = ["SparkDoesNotFit", "acknowledge", "register", "session"]
