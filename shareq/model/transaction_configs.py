"""The broker's configurations of transactions. Source: Kafka's TransactionStateManagerConfig, TransactionLogConfig,
AddPartitionsToTxnConfig."""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, ConfigDef
from shareq.model.messages.topics import ConfigType

_LOG = "transaction.state.log."
_RETRY = "add.partitions.to.txn.retry.backoff."

TRANSACTION_CONFIGS = (
    ConfigDef(_LOG + "num.partitions", 50, "Partitions of __transaction_state.", 1, INT_MAX),
    ConfigDef(_LOG + "replication.factor", 3, "Its replicas, brokers permitting.", 1, 32767, type=ConfigType.SHORT),
    ConfigDef(_LOG + "min.isr", 2, "Its min.insync.replicas.", 1, 32767),
    ConfigDef(_LOG + "segment.bytes", 104857600, "Its segment size.", 1, INT_MAX),
    ConfigDef("transaction.max.timeout.ms", 900000, "The longest transaction time-out of a producer.", 1, INT_MAX),
    ConfigDef(
        "transactional.id.expiration.ms",
        604800000,
        "The age at which an unused transactional id is removed.",
        1,
        INT_MAX,
    ),
    ConfigDef(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "The time between two searches for transactions past their time-out.",
        1,
        INT_MAX,
    ),
    ConfigDef(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "The time between two searches for unused transactional ids.",
        1,
        INT_MAX,
    ),
    ConfigDef(_RETRY + "ms", 20, "The wait before a partition is added again during a completion.", 1, INT_MAX),
    ConfigDef(_RETRY + "max.ms", 100, "The longest time of such retries.", 0, INT_MAX),
)
