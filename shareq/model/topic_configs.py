"""The topic configurations, and the broker configurations that hold their defaults.

Source: Kafka 4.4's topic configurations. Keys of files, disks and tiers are accepted without effect, so that tools
that set them work.
"""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, LONG_MAX, ConfigDef
from shareq.model.dead_letter_configs import ENABLED, TOPIC_DEAD_LETTER_CONFIGS
from shareq.model.messages.topics import ConfigType

DAY_MS = 86_400_000


def _number(
    key: str, default: int, doc: str, low: int = 0, high: int = LONG_MAX, *, broker_key: str | None = None
) -> ConfigDef:
    return ConfigDef(key, default, doc, low, high, broker_key=broker_key)


def _unused(
    key: str,
    default: int | bool | str,
    doc: str,
    low: int = 0,
    high: int = LONG_MAX,
    *,
    choices: tuple[str, ...] = (),
    broker_key: str | None = None,
) -> ConfigDef:
    kind = ConfigType.LIST if isinstance(default, str) else ConfigType.UNKNOWN
    return ConfigDef(key, default, doc, low, high, choices, broker_key, unused=True, type=kind)


_NO_FILES = "Accepted without effect: logs are in memory, without files."
_NO_LEVELS = "Accepted without effect: recompression uses the codec's default level."
_NO_TIERS = "Accepted without effect: there is no tiered storage."
_NO_THROTTLE = "Accepted without effect: replication is immediate."

TOPIC_CONFIGS: dict[str, ConfigDef] = {
    d.key: d
    for d in (
        ConfigDef(
            "cleanup.policy",
            "delete",
            "Delete old segments (delete), keep the latest record of each key (compact), or both.",
            choices=("compact", "delete"),
            broker_key="log.cleanup.policy",
            type=ConfigType.LIST,
        ),
        _unused("compression.gzip.level", -1, _NO_LEVELS, -1, 9),
        _unused("compression.lz4.level", 9, _NO_LEVELS, 1, 17),
        ConfigDef(
            "compression.type",
            "producer",
            "The codec of stored batches; producer keeps the producer's codec.",
            choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        ),
        _unused("compression.zstd.level", 3, _NO_LEVELS, -131072, 22),
        _number(
            "delete.retention.ms",
            DAY_MS,
            "How long a compacted topic keeps a tombstone.",
            broker_key="log.cleaner.delete.retention.ms",
        ),
        *TOPIC_DEAD_LETTER_CONFIGS,
        _unused("file.delete.delay.ms", 60000, _NO_FILES, broker_key="log.segment.delete.delay.ms"),
        _unused("flush.messages", LONG_MAX, _NO_FILES, 1, broker_key="log.flush.interval.messages"),
        _unused("flush.ms", LONG_MAX, _NO_FILES, broker_key="log.flush.interval.ms"),
        _unused("follower.replication.throttled.replicas", "", _NO_THROTTLE),
        _unused("index.interval.bytes", 4096, _NO_FILES, high=INT_MAX, broker_key="log.index.interval.bytes"),
        _unused("leader.replication.throttled.replicas", "", _NO_THROTTLE),
        _unused("local.retention.bytes", -2, _NO_TIERS, -2, broker_key="log.local.retention.bytes"),
        _unused("local.retention.ms", -2, _NO_TIERS, -2, broker_key="log.local.retention.ms"),
        _number(
            "max.compaction.lag.ms",
            LONG_MAX,
            "The longest time that a record stays uncompacted.",
            1,
            broker_key="log.cleaner.max.compaction.lag.ms",
        ),
        _unused(
            "max.decompressed.message.bytes",
            INT_MAX - 8,
            "Accepted without effect: the bound is a fixed one.",
            high=INT_MAX,
        ),
        _number(
            "max.message.bytes",
            1048588,
            "The largest size of a record batch, as received.",
            high=INT_MAX,
            broker_key="message.max.bytes",
        ),
        _number(
            "message.timestamp.after.max.ms",
            3600000,
            "How far ahead of the broker a CreateTime may be.",
            broker_key="log.message.timestamp.after.max.ms",
        ),
        _number(
            "message.timestamp.before.max.ms",
            LONG_MAX,
            "How far behind the broker a CreateTime may be.",
            broker_key="log.message.timestamp.before.max.ms",
        ),
        ConfigDef(
            "message.timestamp.type",
            "CreateTime",
            "The clock of record timestamps: the producer's (CreateTime) or the broker's (LogAppendTime).",
            choices=("CreateTime", "LogAppendTime"),
            broker_key="log.message.timestamp.type",
        ),
        ConfigDef(
            "min.cleanable.dirty.ratio",
            0.5,
            "Compaction runs when more than this fraction of the log is uncompacted.",
            0,
            1,
            broker_key="log.cleaner.min.cleanable.ratio",
        ),
        _number(
            "min.compaction.lag.ms",
            0,
            "The age below which a record is not compacted.",
            broker_key="log.cleaner.min.compaction.lag.ms",
        ),
        _number("min.insync.replicas", 1, "How many replicas must hold a record.", 1, INT_MAX),
        _unused("preallocate", False, _NO_FILES, broker_key="log.preallocate"),
        _unused("remote.copy.lag.bytes", -1, _NO_TIERS, -1, broker_key="log.remote.copy.lag.bytes"),
        _unused("remote.copy.lag.ms", 0, _NO_TIERS, -1, broker_key="log.remote.copy.lag.ms"),
        _unused("remote.log.copy.disable", False, _NO_TIERS),
        _unused("remote.log.delete.on.disable", False, _NO_TIERS),
        _unused("remote.storage.enable", False, "There is no tiered storage.", choices=("false",)),
        _number(
            "retention.bytes",
            -1,
            "The partition size above which old segments are deleted; -1: no limit.",
            -1,
            broker_key="log.retention.bytes",
        ),
        _number(
            "retention.ms",
            7 * DAY_MS,
            "The age of records above which segments are deleted; -1: no limit.",
            -1,
            broker_key="log.retention.ms",
        ),
        # Kafka's minimum is 1 MiB; the whole log of a notebook may be smaller than that.
        _number(
            "segment.bytes",
            1 << 30,
            "The size of segments, the units of retention and compaction.",
            14,
            INT_MAX,
            broker_key="log.segment.bytes",
        ),
        _unused("segment.index.bytes", 10485760, _NO_FILES, 4, INT_MAX, broker_key="log.index.size.max.bytes"),
        _unused("segment.jitter.ms", 0, _NO_FILES, broker_key="log.roll.jitter.ms"),
        _number(
            "segment.ms",
            7 * DAY_MS,
            "The longest time from the first to the last record of a segment.",
            1,
            broker_key="log.roll.ms",
        ),
        _unused("unclean.leader.election.enable", False, "Accepted without effect: replicas never lag."),
    )
}
"""Every topic configuration by key."""

BROKER_LOG_CONFIGS = (
    ConfigDef("auto.create.topics.enable", True, "Allow Metadata requests to create topics."),
    *(
        ConfigDef(d.synonym, d.default, f"Topics' {d.key}.", d.low, d.high, d.choices, type=d.type)
        for d in TOPIC_CONFIGS.values()
        if not d.unused and d.key != ENABLED
    ),
)
"""The broker's defaults of the topic configurations that have an effect. Source: Kafka's ServerLogConfigs."""
