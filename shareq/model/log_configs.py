"""The broker's configurations of logs: the defaults of topic configurations. Source: Kafka's ServerLogConfigs."""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, ConfigDef

_DAY_MS = 86_400_000
_POLICIES = ("delete", "compact", "compact,delete", "delete,compact")
_CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")

LOG_CONFIGS = (
    ConfigDef("auto.create.topics.enable", True, "Allow Metadata requests to create topics."),
    ConfigDef("compression.type", "producer", "Topics' compression.type.", choices=_CODECS),
    ConfigDef("log.cleaner.delete.retention.ms", _DAY_MS, "Topics' delete.retention.ms.", 0),
    ConfigDef("log.cleaner.max.compaction.lag.ms", (1 << 63) - 1, "Topics' max.compaction.lag.ms.", 1),
    ConfigDef("log.cleaner.min.compaction.lag.ms", 0, "Topics' min.compaction.lag.ms.", 0),
    ConfigDef("log.cleanup.policy", "delete", "Topics' cleanup.policy.", choices=_POLICIES),
    ConfigDef("log.message.timestamp.after.max.ms", 3600000, "Topics' message.timestamp.after.max.ms.", 0),
    ConfigDef("log.message.timestamp.before.max.ms", (1 << 63) - 1, "Topics' message.timestamp.before.max.ms.", 0),
    ConfigDef(
        "log.message.timestamp.type",
        "CreateTime",
        "Topics' message.timestamp.type.",
        choices=("CreateTime", "LogAppendTime"),
    ),
    ConfigDef("log.retention.bytes", -1, "Topics' retention.bytes.", -1),
    ConfigDef("log.retention.ms", 7 * _DAY_MS, "Topics' retention.ms.", -1),
    ConfigDef("log.roll.ms", 7 * _DAY_MS, "Topics' segment.ms.", 1),
    ConfigDef("log.segment.bytes", 1 << 30, "Topics' segment.bytes.", 14, INT_MAX),
    ConfigDef("message.max.bytes", 1048588, "Topics' max.message.bytes.", 0, INT_MAX),
    ConfigDef("min.insync.replicas", 1, "Topics' min.insync.replicas.", 1, INT_MAX),
)
