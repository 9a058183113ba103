"""Defaults, ranges and messages of every configuration, restated from Kafka's tables."""

from __future__ import annotations

import pytest

from shareq.model.configs import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    BrokerConfig,
    GroupConfig,
    parse_by_duration,
    validate_group_overrides,
)
from shareq.model.errors import ConfigException
from shareq.model.states import IsolationLevel

# key, default, lowest, highest legal value (None: no upper bound of its own)
RANGES = [
    ("group.share.session.timeout.ms", 45000, 1, None),
    ("group.share.min.session.timeout.ms", 45000, 1, None),
    ("group.share.max.session.timeout.ms", 60000, 1, None),
    ("group.share.heartbeat.interval.ms", 5000, 1, None),
    ("group.share.min.heartbeat.interval.ms", 5000, 1, None),
    ("group.share.max.heartbeat.interval.ms", 15000, 1, None),
    ("group.share.record.lock.duration.ms", 30000, 1000, 3600000),
    ("group.share.min.record.lock.duration.ms", 15000, 1000, 30000),
    ("group.share.max.record.lock.duration.ms", 60000, 30000, 3600000),
    ("group.share.delivery.count.limit", 5, 2, 10),
    ("group.share.min.delivery.count.limit", 2, 2, 5),
    ("group.share.max.delivery.count.limit", 10, 5, 25),
    ("group.share.partition.max.record.locks", 2000, 100, 10000),
    ("group.share.min.partition.max.record.locks", 100, 100, 2000),
    ("group.share.max.partition.max.record.locks", 4000, 2000, 10000),
    ("group.share.assignment.interval.ms", 1000, 0, None),
    ("group.share.max.size", 200, 1, 1000),
    ("group.share.max.share.sessions", 2000, 1, None),
    ("max.share.sessions.per.ip", 1000, 1, None),
    ("share.coordinator.state.topic.num.partitions", 50, 1, None),
    ("share.coordinator.state.topic.replication.factor", 3, 1, 32767),
    ("share.coordinator.state.topic.min.isr", 2, 1, 32767),
    ("share.coordinator.state.topic.segment.bytes", 104857600, 1, None),
    ("share.coordinator.snapshot.update.records.per.snapshot", 500, 0, 500),
    ("share.coordinator.write.timeout.ms", 5000, 1, None),
    ("share.coordinator.state.topic.compression.codec", 0, 0, 4),
    ("share.coordinator.threads", 1, 1, None),
    ("share.coordinator.load.buffer.size", 5242880, 1, None),
    ("share.coordinator.append.linger.ms", -1, -1, None),
    ("share.coordinator.cached.buffer.max.bytes", 1048588, 524288, None),
]


@pytest.mark.parametrize(("key", "default", "low", "high"), [pytest.param(*row, id=row[0]) for row in RANGES])
def test_broker_ranges(key: str, default: int, low: int, high: int | None) -> None:
    config = BROKER_CONFIGS[key]
    assert config.default == default
    assert config.parse(low) == low
    outside = [low - 1] if high is None else [low - 1, high + 1]
    if high is not None:
        assert config.parse(high) == high
    for value in outside:
        with pytest.raises(ConfigException, match=rf"{key}={value!r}: must be .*{low}"):
            config.parse(value)


@pytest.mark.parametrize("value", ["", "many", "1.5", "1e3", None, "0x10"])
def test_a_number_is_a_number(value: object) -> None:
    with pytest.raises(ConfigException, match=r"group\.share\.max\.size=.*must be a whole number, 1\.\.1000"):
        BrokerConfig({"group.share.max.size": value})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        pytest.param(
            {"group.share.size": 3},
            'unknown broker configuration; did you mean "group.share.max.size"',
            id="unknown key",
        ),
        pytest.param(
            {"group.share.record.lock.duration.ms": 61000},
            r"record\.lock\.duration\.ms=61000: must be 15000\.\.60000",
            id="value above its max",
        ),
        pytest.param({"group.share.heartbeat.interval.ms": 4999}, r"must be 5000\.\.15000", id="value below its min"),
        pytest.param(
            {
                "group.share.heartbeat.interval.ms": 45000,
                "group.share.max.heartbeat.interval.ms": 50000,
            },
            "must be below group.share.session.timeout.ms=45000",
            id="heartbeat not below session",
        ),
        pytest.param(
            {"group.share.max.share.sessions": 199},
            r"group\.share\.max\.share\.sessions=199: must be >= group\.share\.max\.size=200",
            id="fewer share sessions than members of one group",
        ),
        pytest.param(
            {"group.share.max.share.sessions": 500, "group.share.max.size": 501},
            r"group\.share\.max\.share\.sessions=500: must be >= group\.share\.max\.size=501",
            id="more members of one group than share sessions",
        ),
        pytest.param({"group.share.assignors": "magic"}, "must be simple, all_to_all", id="unknown assignor"),
    ],
)
def test_absurd_broker_configurations(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        BrokerConfig(overrides)


def test_group_defaults_are_the_brokers() -> None:
    assert GroupConfig.effective({}, BrokerConfig()) == GroupConfig()
    locks = BrokerConfig({"group.share.partition.max.record.locks": 300})
    assert GroupConfig.effective({}, locks).partition_max_record_locks == 300


@pytest.mark.parametrize(
    ("key", "stored", "effective"),
    [
        ("share.record.lock.duration.ms", "1000", 15000),
        ("share.record.lock.duration.ms", "3600000", 60000),
        ("share.delivery.count.limit", "25", 10),
        ("share.partition.max.record.locks", "9999", 4000),
        ("share.session.timeout.ms", "50000", 50000),
    ],
)
def test_stored_values_out_of_bounds_are_clamped(key: str, stored: str, effective: int) -> None:
    attribute = key.removeprefix("share.").replace(".", "_")
    assert getattr(GroupConfig.effective({key: stored}, BrokerConfig()), attribute) == effective


@pytest.mark.parametrize("group_type", ["share", "consumer"])
def test_an_id_may_be_kept_for_one_type(group_type: str) -> None:
    validate_group_overrides({"group.type": group_type}, BrokerConfig())
    assert GroupConfig.effective({"group.type": group_type}, BrokerConfig()).group_type == group_type


@pytest.mark.parametrize("value", ["true", "false"])
def test_kafkas_offload_of_assignors_is_accepted_and_changes_nothing(value: str) -> None:
    broker = BrokerConfig({"group.share.assignor.offload.enable": value})
    validate_group_overrides({"share.assignor.offload.enable": value}, broker)
    assert GroupConfig.effective({"share.assignor.offload.enable": value}, broker) == GroupConfig()
    with pytest.raises(ConfigException, match=r"share\.assignor\.offload\.enable='1': must be true or false"):
        validate_group_overrides({"share.assignor.offload.enable": "1"}, broker)


@pytest.mark.parametrize("key", ["auto.leader.rebalance.enable", "controlled.shutdown.enable"])
def test_a_properties_file_of_kafka_may_have_keys_without_effect_here(key: str) -> None:
    assert BrokerConfig({key: "false"})[key] is False
    with pytest.raises(ConfigException, match=key):
        BrokerConfig({key: "perhaps"})


def test_texts_become_types() -> None:
    config = GroupConfig.effective(
        {"share.isolation.level": "read_committed", "share.renew.acknowledge.enable": "false"}, BrokerConfig()
    )
    assert config.isolation_level is IsolationLevel.READ_COMMITTED
    assert config.renew_acknowledge_enable is False


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        pytest.param({"share.lock": "1"}, "unknown group configuration", id="unknown key"),
        pytest.param({"share.session.timeout.ms": None}, "=None: must be", id="null value"),
        pytest.param(
            {"share.delivery.count.limit": "11"}, r"share\.delivery\.count\.limit='11': must be 2\.\.10", id="above max"
        ),
        pytest.param({"share.delivery.count.limit": "1"}, "must be >= 2", id="below its own least"),
        pytest.param({"share.auto.offset.reset": "none"}, "must be latest, earliest, by_duration", id="no such reset"),
        pytest.param({"share.auto.offset.reset": "by_duration:1h"}, "must be latest", id="not an ISO duration"),
        pytest.param({"group.type": "classic"}, "must be share, consumer", id="no such type"),
        pytest.param({"group.type": ""}, "must be share, consumer", id="no type at all: is deleted instead"),
        pytest.param({"share.renew.acknowledge.enable": "yes"}, "must be true or false", id="not a boolean"),
    ],
)
def test_absurd_group_configurations(overrides: dict[str, str | None], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        validate_group_overrides(overrides, BrokerConfig())


def test_heartbeat_must_stay_below_the_session() -> None:
    broker = BrokerConfig({"group.share.min.session.timeout.ms": 6000, "group.share.max.heartbeat.interval.ms": 40000})
    validate_group_overrides({"share.session.timeout.ms": "6000"}, broker)
    with pytest.raises(ConfigException, match=r"must be below share\.session\.timeout\.ms=6000"):
        validate_group_overrides({"share.session.timeout.ms": "6000", "share.heartbeat.interval.ms": "6000"}, broker)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:PT0S", 0),
        ("by_duration:P", None),
        ("by_duration:PT", None),
        ("PT1H", None),
        # Durations as java.time.Duration.parse takes them, and refuses them.
        ("by_duration:pt1h", 3_600_000),
        ("by_duration:+PT1H", 3_600_000),
        ("by_duration:-PT1H", None),
        ("by_duration:-PT-1H", 3_600_000),
        ("by_duration:-PT0S", 0),
        ("by_duration:PT1H-30M", 1_800_000),
        ("by_duration:P-1DT+25H", 3_600_000),
        ("by_duration:PT-0.5S", None),
        ("by_duration:PT1,5S", 1_500),
        ("by_duration:PT5.S", 5_000),
        ("by_duration:PT.5S", None),
        ("by_duration:PT1.1234567890S", None),
        ("by_duration:PT1.5M", None),
        ("by_duration:P1DT", None),
        ("by_duration:P1W", None),
        ("by_duration:PT1M1H", None),
        ("by_duration: PT1H", None),
        ("by_duration:PT\N{ARABIC-INDIC DIGIT ONE}S", None),
        ("by_duration:PT1\N{LATIN SMALL LETTER LONG S}", None),
        ("by_duration:PT9223372036854775807S", 9_223_372_036_854_775_807_000),
        ("by_duration:PT9223372036854775808S", None),
        ("by_duration:P106751991167301D", None),
        ("by_duration:PT9223372036854775807S1M", None),
        ("by_duration:PT1M9223372036854775807S", None),
    ],
)
def test_by_duration(text: str, milliseconds: int | None) -> None:
    assert parse_by_duration(text) == milliseconds


def test_every_key_has_a_purpose() -> None:
    assert all(d.doc for d in (*BROKER_CONFIGS.values(), *GROUP_CONFIGS.values()))
