"""The typed values of the topic configurations that have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shareq.model.config_def import LONG_MAX, ConfigDef
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.experiments import ENABLE, EXPERIMENT_TOPIC_CONFIGS
from shareq.model.near_names import did_you_mean
from shareq.model.topic_configs import DAY_MS, TOPIC_CONFIGS

_WITH_EXPERIMENTS = TOPIC_CONFIGS | EXPERIMENT_TOPIC_CONFIGS
_BY_SYNONYM = {d.synonym: key for key, d in _WITH_EXPERIMENTS.items()}


def known_topic_configs(broker: BrokerConfig) -> Mapping[str, ConfigDef]:
    """The configurations that topics have: with those of experiments if they are enabled."""
    return _WITH_EXPERIMENTS if broker[ENABLE] else TOPIC_CONFIGS


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The configuration of one log. Durations in ms, sizes in bytes; -1: no bound."""

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
    def effective(cls, overrides: Mapping[str, object], broker: BrokerConfig) -> LogConfig:
        """The configuration of a topic with these overrides: all other keys follow the broker."""
        known = known_topic_configs(broker)
        inherited = {
            _BY_SYNONYM[name]: value for name, value in broker.overrides.items() if _BY_SYNONYM.get(name) in known
        }
        return cls.from_overrides({**inherited, **overrides}, known)

    @classmethod
    def from_overrides(
        cls, overrides: Mapping[str, object], known: Mapping[str, ConfigDef] = TOPIC_CONFIGS
    ) -> LogConfig:
        """The configuration with these keys set; ConfigException for a key that is not `known` or a value out of range.

        A minimal compaction lag above the maximal one is refused too, as in Kafka.
        """
        values: dict[str, Any] = {}
        for key, value in overrides.items():
            if key not in known:
                raise ConfigException(f"{key}={value!r}: unknown topic configuration{did_you_mean(key, known)}")
            parsed = known[key].parse(value)
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
