"""Every configuration of a topic, in one table.

Source: Kafka 4.3's topic configurations. Keys about files, disks and tiers are accepted, so that tools find what they
know; their text says that nothing follows from them here.
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


_NO_FILES = "Accepted without effect: nothing is kept in files."
_NO_LEVELS = "Accepted without effect: what is compressed again here gets the codec's usual level."
_NO_TIERS = "Accepted without effect: nothing is tiered."
_NO_THROTTLE = "Accepted without effect: replicas copy nothing."

TOPIC_CONFIGS: dict[str, TopicConfigDef] = {
    d.key: d
    for d in (
        TopicConfigDef(
            "cleanup.policy",
            "delete",
            TopicConfigType.LIST,
            "Whether old records are deleted, or the latest record of each key is kept, or both.",
            choices=("compact", "delete"),
            broker_key="log.cleanup.policy",
        ),
        _number("compression.gzip.level", -1, _NO_LEVELS, -1, 9),
        _number("compression.lz4.level", 9, _NO_LEVELS, 1, 17),
        _word(
            "compression.type",
            ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
            "The codec that batches are stored in; producer leaves them as they came.",
        ),
        _number("compression.zstd.level", 3, _NO_LEVELS, -131072, 22),
        _number(
            "delete.retention.ms",
            DAY_MS,
            "How long a compacted topic shows that a key was deleted.",
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
        _word(
            "message.timestamp.type",
            ("CreateTime", "LogAppendTime"),
            "Whose clock a record's timestamp is from: the producer's or the broker's.",
            "log.message.timestamp.type",
        ),
        TopicConfigDef(
            "min.cleanable.dirty.ratio",
            0.5,
            TopicConfigType.DOUBLE,
            "Compaction waits until this share of the log is uncompacted.",
            high=1,
            broker_key="log.cleaner.min.cleanable.ratio",
        ),
        _number(
            "min.compaction.lag.ms",
            0,
            "How long a record is safe from compaction.",
            broker_key="log.cleaner.min.compaction.lag.ms",
        ),
        _number("min.insync.replicas", 1, "How many replicas have to hold a record.", 1, INT_MAX),
        TopicConfigDef("preallocate", False, TopicConfigType.BOOLEAN, _NO_FILES, broker_key="log.preallocate"),
        TopicConfigDef("remote.log.copy.disable", False, TopicConfigType.BOOLEAN, _NO_TIERS),
        TopicConfigDef("remote.log.delete.on.disable", False, TopicConfigType.BOOLEAN, _NO_TIERS),
        TopicConfigDef(
            "remote.storage.enable", False, TopicConfigType.BOOLEAN, "Nothing is tiered.", choices=("false",)
        ),
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
            "Accepted without effect: no replica lags.",
        ),
    )
}
"""Every key of a topic; `default`, `type`, `allowed`, `parse(value)` and `doc` are what an admin needs of it."""
