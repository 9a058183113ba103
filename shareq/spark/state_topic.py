"""The state topic of share groups in Spark: its records, and the state of every share-partition at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from shareq.model.errors import KafkaException
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.spark.register import register

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

COLUMNS = {"partition": "int", "offset": "bigint", "timestamp": "timestamp", "key": "binary", "value": "binary"}
"""The required columns of the log, with the names of Spark's Kafka source."""

READER = "shareq-state-topic"
"""The group id of the read. A batch read acquires no records, so the group is never created."""

IN_PROCESS = "inproc://"

At = int | Mapping[int, int] | datetime | None


def state_topic(spark: SparkSession, source: Any, name: str = SHARE_STATE_TOPIC) -> StateTopic:
    """The state topic of a cluster of shareq or of Apache Kafka, in Spark.

    `source`: an address `host:port`, or an object with one as `bootstrap_servers`: a server, a cluster, a local Kafka.
    Or a path of copied segments: a `.log` file, a folder `__share_group_state-N`, or a broker's data folder. Or a
    DataFrame with COLUMNS, such as that of Spark's Kafka source. `name`: the topic; a cluster of shareq on a backend
    has its states in the backend's topic `shareq-share-group-state`.
    KafkaException if a cluster does not answer or does not have the topic; ValueError for any other source.
    """
    from pyspark.sql import DataFrame

    if isinstance(source, DataFrame):
        return StateTopic(source.select(*COLUMNS))
    address = getattr(source, "bootstrap_servers", source)
    if isinstance(address, str) and _is_address(address):
        return StateTopic(_from_brokers(spark, address, name), _topic_names(address))
    if isinstance(source, str | PathLike):
        return StateTopic(_from_segments(spark, fspath(source), name))
    raise ValueError(f"source={source!r}: must be an address, a path or a DataFrame")


@dataclass(frozen=True)
class StateTopic:
    """The state topic. `raw`: the undecoded records; `topics`: topic names by id.

    Its DataFrames are lazy: the log ends are requested from brokers when rows are.
    """

    raw: DataFrame
    topics: Mapping[str, str] = field(default_factory=dict)

    def records(self) -> DataFrame:
        """Every record of the log, decoded: the columns of `state_rows.RECORDS`."""
        from shareq.spark import state_rows

        return self.raw.mapInArrow(partial(state_rows.records, names=self.topics), _schema(state_rows.RECORDS))

    def history(self) -> DataFrame:
        """The state of a share-partition after each of its records: the columns of `state_rows.STATES`."""
        from shareq.spark import state_rows

        return self._folded(partial(state_rows.history, names=self.topics))

    def states(self, at: At = None) -> DataFrame:
        """The state of each share-partition, now or `at` a moment: the columns of `state_rows.STATES`.

        `at`: a time, compared with the log's timestamps; an offset, as if the log ended there; or such offsets by
        partition of the state topic, where other partitions are left out. It is the share coordinator's state then.
        """
        from shareq.spark import state_rows

        return self._folded(partial(state_rows.states, moment=state_rows.ReadEnd.of(at), names=self.topics))

    def _folded(self, fold: Callable[[pa.Table], pa.Table]) -> DataFrame:
        """Apply a fold to each partition of the state topic as a whole."""
        from shareq.spark.state_rows import STATES

        def of_partition(table: pa.Table) -> pa.Table:  # Spark inspects the signature, so a partial does not work
            return fold(table)

        return self.raw.groupBy("partition").applyInArrow(of_partition, _schema(STATES))


def _schema(arrow: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow)


# ---- sources ---------------------------------------------------------------------------------------------------------


def _is_address(text: str) -> bool:
    from shareq.wire.client.addresses import parse_bootstrap_servers

    try:
        return text.startswith(IN_PROCESS) or bool(parse_bootstrap_servers(text))
    except KafkaException:
        return False


def _topic_names(address: str) -> dict[str, str]:
    from shareq.admin import Admin

    with Admin({"bootstrap.servers": address}) as admin:
        return {str(topic.topic_id): name for name, topic in admin.list_topics().check().items()}


def _from_brokers(spark: SparkSession, address: str, name: str) -> DataFrame:
    """The log from its start to its end, read by tasks. Tasks cannot access this process: a cluster without a server is
    read here, at once."""
    options = {"kafka.bootstrap.servers": address, "subscribe": name, "group.id": READER}
    if not address.startswith(IN_PROCESS):
        register(spark)
        return spark.read.format("shareq").options(**options).load().select(*COLUMNS)
    import pyarrow as pa

    from shareq.spark.batch import BatchReader
    from shareq.spark.options import parse
    from shareq.spark.reader import ARROW_SCHEMA

    reader = BatchReader(parse(options))
    batches = [batch for share in reader.partitions() for batch in reader.read(share)]
    return spark.createDataFrame(pa.Table.from_batches(batches, ARROW_SCHEMA).select(list(COLUMNS)))


def _from_segments(spark: SparkSession, path: str, name: str) -> DataFrame:
    """Segments in the format of brokers: consecutive record batches."""
    from shareq.spark import state_rows

    last = path.rstrip("/").rsplit("/", 1)[-1]
    if last.startswith(f"{name}-"):
        path = f"{path}/*.log"
    elif not last.endswith(".log"):
        path = f"{path}/{name}-*/*.log"
    files = spark.read.format("binaryFile").load(path).select("path", "content")
    return files.mapInArrow(partial(state_rows.segments, topic=name), ", ".join(map(" ".join, COLUMNS.items())))
