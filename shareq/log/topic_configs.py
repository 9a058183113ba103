"""All topic configurations.

Source: Kafka 4.3's topic configurations. Keys of files, disks and tiers are accepted without effect, so that tools
work; their documentation states that.
"""

from __future__ import annotations

from shareq.log.topic_config_def import INT_MAX, LONG_MAX, TopicConfigDef, TopicConfigType

DAY_MS = 86_400_000


def _number(
    key: str, default: int, doc: str, low: int = 0, high: int = LONG_MAX, *, broker_key: str | None = None
) -> TopicConfigDef:
    kind = TopicConfigType.INT if high <= INT_MAX else TopicConfigType.LONG
    return TopicConfigDef(key, default, kind, doc, low, high, broker_key=broker_key)


def _word(key: str, choices: tuple[str, ...], doc: str, broker_key: str | None = None) -> TopicConfigDef:
    return TopicConfigDef(key, choices[0], TopicConfigType.STRING, doc, choices=choices, broker_key=broker_key)


_NO_FILES = "Accepted without effect: logs are in memory, without files."
_NO_LEVELS = "Accepted without effect: recompression uses the codec's default level."
_NO_TIERS = "Accepted without effect: there is no tiered storage."
_NO_THROTTLE = "Accepted without effect: replication is immediate."

TOPIC_CONFIGS: dict[str, TopicConfigDef] = {
    d.key: d
    for d in (
        TopicConfigDef(
            "cleanup.policy",
            "delete",
            TopicConfigType.LIST,
            "Delete old segments (delete), keep the latest record of each key (compact), or both.",
            choices=("compact", "delete"),
            broker_key="log.cleanup.policy",
        ),
        _number("compression.gzip.level", -1, _NO_LEVELS, -1, 9),
        _number("compression.lz4.level", 9, _NO_LEVELS, 1, 17),
        _word(
            "compression.type",
            ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
            "The codec of stored batches; producer keeps the producer's codec.",
        ),
        _number("compression.zstd.level", 3, _NO_LEVELS, -131072, 22),
        _number(
            "delete.retention.ms",
            DAY_MS,
            "How long a compacted topic keeps a tombstone.",
            broker_key="log.cleaner.delete.retention.ms",
        ),
        _number("file.delete.delay.ms", 60000, _NO_FILES, broker_key="log.segment.delete.delay.ms"),
        _number("flush.messages", LONG_MAX, _NO_FILES, 1, broker_key="log.flush.interval.messages"),
        _number("flush.ms", LONG_MAX, _NO_FILES, broker_key="log.flush.interval.ms"),
        TopicConfigDef("follower.replication.throttled.replicas", "", TopicConfigType.LIST, _NO_THROTTLE),
        _number("index.interval.bytes", 4096, _NO_FILES, high=INT_MAX, broker_key="log.index.interval.bytes"),
        TopicConfigDef("leader.replication.throttled.replicas", "", TopicConfigType.LIST, _NO_THROTTLE),
        _number("local.retention.bytes", -2, _NO_TIERS, -2, broker_key="log.local.retention.bytes"),
        _number("local.retention.ms", -2, _NO_TIERS, -2, broker_key="log.local.retention.ms"),
        _number(
            "max.compaction.lag.ms",
            LONG_MAX,
            "The longest time that a record stays uncompacted.",
            1,
            broker_key="log.cleaner.max.compaction.lag.ms",
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
        _word(
            "message.timestamp.type",
            ("CreateTime", "LogAppendTime"),
            "The clock of record timestamps: the producer's or the broker's.",
            "log.message.timestamp.type",
        ),
        TopicConfigDef(
            "min.cleanable.dirty.ratio",
            0.5,
            TopicConfigType.DOUBLE,
            "Compaction runs when more than this share of the log is uncompacted.",
            high=1,
            broker_key="log.cleaner.min.cleanable.ratio",
        ),
        _number(
            "min.compaction.lag.ms",
            0,
            "The age below which a record is not compacted.",
            broker_key="log.cleaner.min.compaction.lag.ms",
        ),
        _number("min.insync.replicas", 1, "How many replicas must hold a record.", 1, INT_MAX),
        TopicConfigDef("preallocate", False, TopicConfigType.BOOLEAN, _NO_FILES, broker_key="log.preallocate"),
        TopicConfigDef("remote.log.copy.disable", False, TopicConfigType.BOOLEAN, _NO_TIERS),
        TopicConfigDef("remote.log.delete.on.disable", False, TopicConfigType.BOOLEAN, _NO_TIERS),
        TopicConfigDef(
            "remote.storage.enable", False, TopicConfigType.BOOLEAN, "There is no tiered storage.", choices=("false",)
        ),
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
        _number("segment.index.bytes", 10485760, _NO_FILES, 4, INT_MAX, broker_key="log.index.size.max.bytes"),
        _number("segment.jitter.ms", 0, _NO_FILES, broker_key="log.roll.jitter.ms"),
        _number(
            "segment.ms",
            7 * DAY_MS,
            "The longest time from the first to the last record of a segment.",
            1,
            broker_key="log.roll.ms",
        ),
        TopicConfigDef(
            "unclean.leader.election.enable",
            False,
            TopicConfigType.BOOLEAN,
            "Accepted without effect: replicas never lag.",
        ),
    )
}
"""Every topic configuration by key."""
