"""Topic configurations: one table of keys, and the typed view of those that a log acts on.

Source: Kafka 4.3's topic configurations. Keys about files and disks are accepted, so that tools find what they know;
their text says that nothing follows from them here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shareq.model.errors import ConfigException

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DAY_MS = 86_400_000

Value = int | float | bool | str


class ConfigType(StrEnum):
    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class TopicConfigDef:
    """One key: its default as a typed value, its type, the allowed range or choices, and what it is for."""

    key: str
    default: Value
    type: ConfigType
    doc: str
    low: int = 0
    high: int = LONG_MAX
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values in words, for error messages and tables."""
        if self.type is ConfigType.BOOLEAN:
            return "true or false"
        if self.type is ConfigType.LIST:
            return f"a list of {', '.join(self.choices)}"
        if self.type is ConfigType.STRING:
            return " or ".join(self.choices)
        return f"{self.low}..{self.high}" if self.high not in (INT_MAX, LONG_MAX) else f">= {self.low}"

    def parse(self, value: object) -> Value:
        """The typed value; ConfigException names the key, the value and what is allowed."""
        text = str(value).strip()
        parsed = self._parse_number(text) if self._is_number else self._parse_word(text)
        if parsed is None:
            raise ConfigException(f"{self.key}={value!r}: must be {self.allowed}")
        return parsed

    @property
    def _is_number(self) -> bool:
        return self.type in (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE)

    def _parse_number(self, text: str) -> int | float | None:
        pattern = r"[+-]?\d+(\.\d+)?" if self.type is ConfigType.DOUBLE else r"[+-]?\d+"
        if not re.fullmatch(pattern, text):
            return None
        number = float(text) if self.type is ConfigType.DOUBLE else int(text)
        highest = min(self.high, INT_MAX) if self.type is ConfigType.INT else self.high
        return number if self.low <= number <= highest else None

    def _parse_word(self, text: str) -> bool | str | None:
        if self.type is ConfigType.BOOLEAN:
            return {"true": True, "false": False}.get(text.lower())
        if self.type is ConfigType.LIST:
            words = [word.strip() for word in text.split(",")]
            return ",".join(dict.fromkeys(words)) if all(word in self.choices for word in words) else None
        return text if text in self.choices else None


def _number(key: str, default: int, doc: str, low: int = 0, high: int = LONG_MAX) -> TopicConfigDef:
    return TopicConfigDef(key, default, ConfigType.INT if high <= INT_MAX else ConfigType.LONG, doc, low, high)


_IGNORED = "Accepted without effect: nothing is kept in files."

TOPIC_CONFIGS: dict[str, TopicConfigDef] = {
    d.key: d
    for d in (
        TopicConfigDef(
            "cleanup.policy",
            "delete",
            ConfigType.LIST,
            "Whether old records are deleted, or the latest record of each key is kept, or both.",
            choices=("compact", "delete"),
        ),
        TopicConfigDef(
            "compression.type",
            "producer",
            ConfigType.STRING,
            "The codec that batches are stored in; producer leaves them as they came.",
            choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        ),
        _number("delete.retention.ms", DAY_MS, "How long a compacted topic shows that a key was deleted."),
        _number("file.delete.delay.ms", 60000, _IGNORED),
        _number("flush.messages", LONG_MAX, _IGNORED, low=1),
        _number("flush.ms", LONG_MAX, _IGNORED),
        _number("index.interval.bytes", 4096, _IGNORED, high=INT_MAX),
        _number("max.compaction.lag.ms", LONG_MAX, "How long a record may stay uncompacted.", low=1),
        _number("max.message.bytes", 1048588, "The largest record batch, as it came.", high=INT_MAX),
        _number("message.timestamp.after.max.ms", 3600000, "How far ahead of the broker a CreateTime may be."),
        _number("message.timestamp.before.max.ms", LONG_MAX, "How far behind the broker a CreateTime may be."),
        TopicConfigDef(
            "message.timestamp.type",
            "CreateTime",
            ConfigType.STRING,
            "Whose clock a record's timestamp is from: the producer's or the broker's.",
            choices=("CreateTime", "LogAppendTime"),
        ),
        TopicConfigDef(
            "min.cleanable.dirty.ratio",
            0.5,
            ConfigType.DOUBLE,
            "Compaction waits until this share of the log is uncompacted.",
            high=1,
        ),
        _number("min.compaction.lag.ms", 0, "How long a record is safe from compaction."),
        _number("min.insync.replicas", 1, "How many replicas have to hold a record.", low=1, high=INT_MAX),
        TopicConfigDef("preallocate", False, ConfigType.BOOLEAN, _IGNORED),
        _number("retention.bytes", -1, "How large a partition may grow before old segments go; -1: no bound.", low=-1),
        _number("retention.ms", 7 * DAY_MS, "How old records may grow before they go; -1: no bound.", low=-1),
        # Kafka asks for 1 MiB at least; the whole log of a notebook may be smaller than that.
        _number(
            "segment.bytes", 1 << 30, "Retention and compaction go by segments of so many bytes.", low=14, high=INT_MAX
        ),
        _number("segment.index.bytes", 10485760, _IGNORED, low=4, high=INT_MAX),
        _number("segment.jitter.ms", 0, _IGNORED),
        _number("segment.ms", 7 * DAY_MS, "The longest time from the first to the last record of a segment.", low=1),
        TopicConfigDef(
            "unclean.leader.election.enable", False, ConfigType.BOOLEAN, "Accepted without effect: no replica lags."
        ),
    )
}
"""Every key of a topic; `default`, `type`, `allowed`, `parse(value)` and `doc` are what an admin needs of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What a log acts on. Durations in ms, sizes in bytes, -1 means no bound."""

    cleanup_policy: str = "delete"
    compression_type: str = "producer"
    delete_retention_ms: int = DAY_MS
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1048588
    message_timestamp_after_max_ms: int = 3600000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def segment_span_ms(self) -> int:
        """The longest time from a segment's first record to its last; compaction must not wait longer either."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @classmethod
    def from_overrides(cls, overrides: Mapping[str, object]) -> LogConfig:
        """The configuration with these keys set; ConfigException for an unknown key or a value out of range.

        A minimal compaction lag above the maximal one is refused too, as in Kafka.
        """
        values: dict[str, Any] = {}
        for key, value in overrides.items():
            if key not in TOPIC_CONFIGS:
                raise ConfigException(f"{key}={value!r}: unknown topic configuration")
            parsed = TOPIC_CONFIGS[key].parse(value)
            if _attribute(key) in cls.__slots__:
                values[_attribute(key)] = parsed
        config = cls(**values)
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise ConfigException(
                f"min.compaction.lag.ms={config.min_compaction_lag_ms}: must be at most "
                f"max.compaction.lag.ms={config.max_compaction_lag_ms}"
            )
        return config


def _attribute(key: str) -> str:
    return key.replace(".", "_")
