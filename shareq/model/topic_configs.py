"""The configurations of topics, and the broker's defaults of them.

Source: Kafka 4.3's topic configurations. Keys about files, disks and tiers are accepted without effect, so that tools
that set them work.
"""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, LONG_MAX, ConfigDef
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


_NO_FILES = "Accepted without effect: nothing is kept in files."
_NO_LEVELS = "Accepted without effect: what is compressed again here gets the codec's usual level."
_NO_TIERS = "Accepted without effect: nothing is tiered."
_NO_THROTTLE = "Accepted without effect: replicas copy nothing."

TOPIC_CONFIGS: dict[str, ConfigDef] = {
    d.key: d
    for d in (
        ConfigDef(
            "cleanup.policy",
            "delete",
            "delete: old segments are deleted; compact: the latest record of each key is kept.",
            choices=("compact", "delete"),
            broker_key="log.cleanup.policy",
            type=ConfigType.LIST,
        ),
        _unused("compression.gzip.level", -1, _NO_LEVELS, -1, 9),
        _unused("compression.lz4.level", 9, _NO_LEVELS, 1, 17),
        ConfigDef(
            "compression.type",
            "producer",
            "The codec of stored batches; producer: the codec that the producer chose.",
            choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        ),
        _unused("compression.zstd.level", 3, _NO_LEVELS, -131072, 22),
        _number(
            "delete.retention.ms",
            DAY_MS,
            "How long a compacted topic shows that a key was deleted.",
            broker_key="log.cleaner.delete.retention.ms",
        ),
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
            "How long a record may stay uncompacted.",
            1,
            broker_key="log.cleaner.max.compaction.lag.ms",
        ),
        _number(
            "max.message.bytes",
            1048588,
            "The largest record batch, as it came.",
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
            "Compaction waits until this share of the log is uncompacted.",
            0,
            1,
            broker_key="log.cleaner.min.cleanable.ratio",
        ),
        _number(
            "min.compaction.lag.ms",
            0,
            "How long a record is safe from compaction.",
            broker_key="log.cleaner.min.compaction.lag.ms",
        ),
        _number("min.insync.replicas", 1, "How many replicas have to hold a record.", 1, INT_MAX),
        _unused("preallocate", False, _NO_FILES, broker_key="log.preallocate"),
        _unused("remote.log.copy.disable", False, _NO_TIERS),
        _unused("remote.log.delete.on.disable", False, _NO_TIERS),
        _unused("remote.storage.enable", False, "Nothing is tiered.", choices=("false",)),
        _number(
            "retention.bytes",
            -1,
            "How large a partition may grow before old segments go; -1: no bound.",
            -1,
            broker_key="log.retention.bytes",
        ),
        _number(
            "retention.ms",
            7 * DAY_MS,
            "How old records may grow before they go; -1: no bound.",
            -1,
            broker_key="log.retention.ms",
        ),
        # Kafka asks for 1 MiB at least; the whole log of a notebook may be smaller than that.
        _number(
            "segment.bytes",
            1 << 30,
            "Retention and compaction go by segments of so many bytes.",
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
        _unused("unclean.leader.election.enable", False, "Accepted without effect: no replica lags."),
    )
}
"""Every key of a topic."""

BROKER_LOG_CONFIGS = (
    ConfigDef("auto.create.topics.enable", True, "Allow Metadata requests to create topics."),
    *(
        ConfigDef(d.synonym, d.default, f"Topics' {d.key}.", d.low, d.high, d.choices, type=d.type)
        for d in TOPIC_CONFIGS.values()
        if not d.unused
    ),
)
"""The broker's defaults of the topic configurations that have an effect. Source: Kafka's ServerLogConfigs."""
