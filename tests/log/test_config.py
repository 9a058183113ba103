"""Topic configurations: defaults, ranges, and error messages."""

from dataclasses import fields

import pytest

from shareq.log.config import LogConfig
from shareq.model.config_def import ConfigDef
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.messages.topics import ConfigType
from shareq.model.topic_configs import DAY_MS, TOPIC_CONFIGS


def test_log_config_has_the_defaults_of_the_table() -> None:
    for field in fields(LogConfig):
        assert getattr(LogConfig(), field.name) == TOPIC_CONFIGS[field.name.replace("_", ".")].default, field.name


@pytest.mark.parametrize(
    ("key", "default", "kind"),
    [
        ("cleanup.policy", "delete", "list"),
        ("compression.type", "producer", "string"),
        ("delete.retention.ms", DAY_MS, "long"),
        ("max.message.bytes", 1048588, "int"),
        ("message.timestamp.after.max.ms", 3600000, "long"),
        ("message.timestamp.type", "CreateTime", "string"),
        ("min.cleanable.dirty.ratio", 0.5, "double"),
        ("retention.bytes", -1, "long"),
        ("retention.ms", 604800000, "long"),
        ("segment.bytes", 1073741824, "int"),
        ("unclean.leader.election.enable", False, "boolean"),
    ],
)
def test_defaults_and_types(key: str, default: object, kind: str) -> None:
    assert (TOPIC_CONFIGS[key].default, TOPIC_CONFIGS[key].type) == (default, ConfigType[kind.upper()])


@pytest.mark.parametrize(
    ("key", "value", "attribute", "expected"),
    [
        ("retention.ms", "-1", "retention_ms", -1),
        ("retention.ms", 60000, "retention_ms", 60000),
        ("segment.bytes", " 14 ", "segment_bytes", 14),
        ("min.cleanable.dirty.ratio", "0.01", "min_cleanable_dirty_ratio", 0.01),
        ("min.cleanable.dirty.ratio", "1", "min_cleanable_dirty_ratio", 1),
        ("cleanup.policy", "compact, delete", "cleanup_policy", "compact,delete"),
        ("cleanup.policy", "delete,delete", "cleanup_policy", "delete"),
        ("cleanup.policy", "", "cleanup_policy", ""),
        ("compression.type", "zstd", "compression_type", "zstd"),
        ("message.timestamp.type", "LogAppendTime", "log_append_time", True),
    ],
)
def test_overrides_are_parsed(key: str, value: object, attribute: str, expected: object) -> None:
    assert getattr(LogConfig.from_overrides({key: value}), attribute) == expected


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("retention.ms", "-2", ">= -1"),
        ("retention.ms", "soon", ">= -1"),
        ("retention.ms", "1.5", ">= -1"),
        ("retention.ms", "", ">= -1"),
        ("segment.bytes", "13", ">= 14"),
        ("segment.bytes", str(1 << 31), ">= 14"),
        ("segment.ms", "0", ">= 1"),
        ("min.cleanable.dirty.ratio", "1.1", "0..1"),
        ("min.cleanable.dirty.ratio", "-0.1", "0..1"),
        ("cleanup.policy", "shred", "a list of compact, delete"),
        ("cleanup.policy", "compact,", "a list of compact, delete"),
        ("compression.type", "rar", "producer, uncompressed, gzip, snappy, lz4, zstd"),
        ("message.timestamp.type", "createtime", "CreateTime, LogAppendTime"),
        ("preallocate", "yes", "true or false"),
        ("max.message.bytes", None, ">= 0"),
        ("share.delivery.count.limit", "3", "unknown topic configuration"),
    ],
)
def test_errors_name_key_value_and_range(key: str, value: str | None, allowed: str) -> None:
    with pytest.raises(ConfigException) as caught:
        LogConfig.from_overrides({key: value})
    assert str(caught.value).startswith(f"{key}={value!r}: ")
    assert str(caught.value).endswith(allowed)


def test_min_compaction_lag_must_not_exceed_max_compaction_lag() -> None:
    with pytest.raises(
        ConfigException, match=r"min\.compaction\.lag\.ms=5: must be at most max\.compaction\.lag\.ms=4"
    ):
        LogConfig.from_overrides({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"})


def test_keys_about_files_are_accepted_without_effect() -> None:
    assert LogConfig.from_overrides({"flush.ms": "10", "preallocate": "true"}) == LogConfig()


def test_a_topic_inherits_what_the_broker_overrides() -> None:
    broker = BrokerConfig({"log.retention.ms": 1000, "log.segment.bytes": 2 << 20, "group.share.max.size": 5})
    config = LogConfig.effective({"segment.bytes": 3 << 20}, broker)
    assert (config.retention_ms, config.segment_bytes) == (1000, 3 << 20)


def test_only_the_overrides_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ten thousand new topics would else go through all keys that topics have."""
    looked_up: list[str] = []
    monkeypatch.setattr(ConfigDef, "synonym", property(lambda d: looked_up.append(d.key)))
    LogConfig.effective({"segment.bytes": 3 << 20}, BrokerConfig({"log.retention.ms": 1000}))
    assert not looked_up
