"""The broker's configurations of transactions. Source: Kafka's TransactionStateManagerConfig, TransactionLogConfig,
AddPartitionsToTxnConfig."""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, ConfigDef

_LOG = "transaction.state.log."
_RETRY = "add.partitions.to.txn.retry.backoff."

TRANSACTION_CONFIGS = (
    ConfigDef(_LOG + "num.partitions", 50, "Partitions of __transaction_state.", 1, INT_MAX),
    ConfigDef(_LOG + "replication.factor", 3, "Its replicas, brokers permitting.", 1, 32767),
    ConfigDef(_LOG + "min.isr", 2, "Its min.insync.replicas.", 1, 32767),
    ConfigDef(_LOG + "segment.bytes", 104857600, "Its segment size.", 1, INT_MAX),
    ConfigDef("transaction.max.timeout.ms", 900000, "The longest time-out that a producer may ask for.", 1, INT_MAX),
    ConfigDef("transactional.id.expiration.ms", 604800000, "When a transactional id is forgotten.", 1, INT_MAX),
    ConfigDef(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "How often transactions that are open for too long are looked for.",
        1,
        INT_MAX,
    ),
    ConfigDef(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "How often transactional ids that nobody uses are looked for.",
        1,
        INT_MAX,
    ),
    ConfigDef(_RETRY + "ms", 20, "How soon a partition is added again while a transaction completes.", 1, INT_MAX),
    ConfigDef(_RETRY + "max.ms", 100, "For how long it is tried.", 0, INT_MAX),
)
