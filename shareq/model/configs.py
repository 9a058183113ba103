"""Every configuration of share groups: keys, defaults, ranges, validation.

Two tables, one for the broker and one for the group, are the only place that defines a default or a range;
`BrokerConfig` and `GroupConfig` are typed views of them. Source: Kafka 4.4's broker and group configurations (KIP-932,
KIP-1240, KIP-1263).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from shareq.model.authorizer_configs import AUTHORIZER_CONFIGS, check_super_users
from shareq.model.config_def import INT_MAX, ConfigDef, parse_by_duration
from shareq.model.connection_configs import CONNECTION_CONFIGS, PER_IP_OVERRIDES, limits_by_ip
from shareq.model.consumer_configs import CONSUMER_CONFIGS, CONSUMER_GROUP_CONFIGS
from shareq.model.dead_letter_configs import (
    BROKER_DEAD_LETTER_CONFIGS,
    GROUP_DEAD_LETTER_CONFIGS,
    NAME_PREFIX,
    TOPIC_NAME,
    why_no_queue_name,
)
from shareq.model.errors import ConfigException
from shareq.model.experiments import (
    BROKER_EXPERIMENT_CONFIGS,
    ENABLE,
    EXPERIMENT_CONFIGS,
    Experiments,
    check_experiments,
)
from shareq.model.hidden_values import shown
from shareq.model.messages.topics import ConfigType
from shareq.model.near_names import did_you_mean
from shareq.model.security_configs import SECURITY_CONFIGS
from shareq.model.share_coordinator_configs import SHARE_COORDINATOR_CONFIGS
from shareq.model.state_designs import DESIGNS, PERSISTER_CLASS, StateDesign
from shareq.model.states import IsolationLevel
from shareq.model.topic_configs import BROKER_LOG_CONFIGS
from shareq.model.transaction_configs import TRANSACTION_CONFIGS

__all__ = [
    "BROKER_CONFIGS",
    "GROUP_CONFIGS",
    "INT_MAX",
    "BrokerConfig",
    "Clamped",
    "ConfigDef",
    "GroupConfig",
    "clamped_overrides",
    "known_group_configs",
    "parse_by_duration",
    "validate_group_overrides",
]


def _share(key: str, default: int, low: int, high: int, doc: str) -> ConfigDef:
    return ConfigDef(f"group.share.{key}", default, doc, low, high)


BROKER_CONFIGS: dict[str, ConfigDef] = {
    d.key: d
    for d in (
        _share("session.timeout.ms", 45000, 1, INT_MAX, "A member without a heartbeat for this time is removed."),
        _share("min.session.timeout.ms", 45000, 1, INT_MAX, "Lower bound of a group's session time-out."),
        _share("max.session.timeout.ms", 60000, 1, INT_MAX, "Upper bound of a group's session time-out."),
        _share("heartbeat.interval.ms", 5000, 1, INT_MAX, "The time between two heartbeats of a member."),
        _share("min.heartbeat.interval.ms", 5000, 1, INT_MAX, "Lower bound of a group's heartbeat interval."),
        _share("max.heartbeat.interval.ms", 15000, 1, INT_MAX, "Upper bound of a group's heartbeat interval."),
        _share("record.lock.duration.ms", 30000, 1000, 3600000, "The duration of an acquisition lock."),
        _share("min.record.lock.duration.ms", 15000, 1000, 30000, "Lower bound of a group's lock duration."),
        _share("max.record.lock.duration.ms", 60000, 30000, 3600000, "Upper bound of a group's lock duration."),
        _share("delivery.count.limit", 5, 2, 10, "The number of deliveries after which a record is archived."),
        _share("min.delivery.count.limit", 2, 2, 5, "Lower bound of a group's delivery count limit."),
        _share("max.delivery.count.limit", 10, 5, 25, "Upper bound of a group's delivery count limit."),
        _share(
            "partition.max.record.locks",
            2000,
            100,
            10000,
            "The most records of a share-partition that may be in flight.",
        ),
        _share("min.partition.max.record.locks", 100, 100, 2000, "Lower bound of a group's record locks."),
        _share("max.partition.max.record.locks", 4000, 2000, 10000, "Upper bound of a group's record locks."),
        _share("assignment.interval.ms", 1000, 0, INT_MAX, "The least time between two assignments of a group."),
        _share("min.assignment.interval.ms", 0, 0, INT_MAX, "Lower bound of a group's assignment interval."),
        _share("max.assignment.interval.ms", 15000, 0, INT_MAX, "Upper bound of a group's assignment interval."),
        _share("max.size", 200, 1, 1000, "The most members of a share group."),
        _share("max.share.sessions", 2000, 1, INT_MAX, "The most share sessions of a broker."),
        _share(
            "initialize.retry.interval.ms",
            30000,
            1,
            INT_MAX,
            "The age at which an unfinished initialization is retried.",
        ),
        ConfigDef("group.share.assignor.offload.enable", True, "Compute assignments in a thread.", unused=True),
        ConfigDef(
            "group.share.assignors",
            "simple",
            "The server-side assignor.",
            high=1,
            choices=("simple", "all_to_all"),
            type=ConfigType.LIST,
        ),
        ConfigDef(
            PERSISTER_CLASS,
            StateDesign.STATE_TOPIC.class_name,
            "The persister of the leaders: the state topic, a compacted one, control records, or no durable state.",
            choices=tuple(DESIGNS),
            type=ConfigType.CLASS,
        ),
        *CONNECTION_CONFIGS,
        ConfigDef("max.share.sessions.per.ip", 1000, "The most share sessions of an address on a broker.", 1, INT_MAX),
        ConfigDef("auto.leader.rebalance.enable", True, "Leaders stay until an election is requested.", unused=True),
        ConfigDef("controlled.shutdown.enable", True, "A stopped broker hands its partitions over.", unused=True),
        ConfigDef("fetch.max.bytes", 57671680, "The most bytes of one fetch response.", 1024, INT_MAX),
        ConfigDef("group.min.session.timeout.ms", 6000, "Least session time-out of a classic member.", 0, INT_MAX),
        ConfigDef(
            "group.max.session.timeout.ms", 1800000, "Greatest session time-out of a classic member.", 0, INT_MAX
        ),
        ConfigDef(
            "group.initial.rebalance.delay.ms", 3000, "The first wait of a new classic group for members.", 0, INT_MAX
        ),
        ConfigDef("group.max.size", INT_MAX, "The most members of a classic group.", 1, INT_MAX),
        ConfigDef("offset.metadata.max.bytes", 4096, "The longest text committed with an offset.", 0, INT_MAX),
        ConfigDef("offsets.retention.minutes", 10080, "The retention of offsets of an unused group.", 1, INT_MAX),
        ConfigDef(
            "offsets.retention.check.interval.ms",
            600000,
            "The time between two checks for expired offsets.",
            1,
            INT_MAX,
            type=ConfigType.LONG,
        ),
        ConfigDef("offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", 1, INT_MAX),
        ConfigDef(
            "offsets.topic.replication.factor", 3, "Its replicas, brokers permitting.", 1, 32767, type=ConfigType.SHORT
        ),
        ConfigDef("offsets.topic.segment.bytes", 104857600, "Its segment size.", 1, INT_MAX),
        ConfigDef("offsets.commit.timeout.ms", 5000, "The time-out for the commit of a group record.", 1, INT_MAX),
        *CONSUMER_CONFIGS,
        *BROKER_DEAD_LETTER_CONFIGS,
        *TRANSACTION_CONFIGS,
        *BROKER_LOG_CONFIGS,
        ConfigDef("num.partitions", 1, "Partitions of a topic created without a count.", 1, INT_MAX),
        ConfigDef("default.replication.factor", 1, "Replicas of a topic created without a factor.", 1, 32767),
        *SHARE_COORDINATOR_CONFIGS,
        *AUTHORIZER_CONFIGS,
        *SECURITY_CONFIGS,
        *BROKER_EXPERIMENT_CONFIGS,
    )
}


def _bounded(key: str, low: int, doc: str) -> ConfigDef:
    """A group key with a default and bounds from broker keys of the same name."""
    return ConfigDef(
        f"share.{key}",
        BROKER_CONFIGS[f"group.share.{key}"].default,
        doc,
        low,
        INT_MAX,
        broker_key=f"group.share.{key}",
        bounds=(f"group.share.min.{key}", f"group.share.max.{key}"),
    )


_KINDS = ("share", "consumer")

GROUP_CONFIGS: dict[str, ConfigDef] = {
    d.key: d
    for d in (
        _bounded("session.timeout.ms", 1, "A member without a heartbeat for this time is removed."),
        _bounded("heartbeat.interval.ms", 1, "The time between two heartbeats of a member."),
        _bounded("record.lock.duration.ms", 1000, "The duration of an acquisition lock."),
        _bounded("delivery.count.limit", 2, "The number of deliveries after which a record is archived."),
        _bounded("partition.max.record.locks", 100, "The most records of a share-partition that may be in flight."),
        _bounded("assignment.interval.ms", 0, "The least time between two assignments of the group."),
        ConfigDef(
            "share.auto.offset.reset",
            "latest",
            "The start offset of a new share-partition.",
            choices=("latest", "earliest", "by_duration:<duration>"),
        ),
        ConfigDef(
            "share.isolation.level",
            "read_uncommitted",
            "read_uncommitted also delivers records of open and aborted transactions.",
            choices=("read_uncommitted", "read_committed"),
        ),
        ConfigDef("share.renew.acknowledge.enable", True, "Allow consumers to renew locks."),
        ConfigDef(
            "share.assignor.offload.enable",
            True,
            "Compute assignments in a thread.",
            broker_key="group.share.assignor.offload.enable",
            unused=True,
        ),
        ConfigDef("group.type", "", "The group type that may use the id; empty: any.", choices=_KINDS),
        *GROUP_DEAD_LETTER_CONFIGS,
        *CONSUMER_GROUP_CONFIGS,
    )
}


_WITH_EXPERIMENTS = GROUP_CONFIGS | EXPERIMENT_CONFIGS


def known_group_configs(broker: BrokerConfig) -> Mapping[str, ConfigDef]:
    """The configurations that groups have: with those of experiments if they are enabled."""
    return _WITH_EXPERIMENTS if broker[ENABLE] else GROUP_CONFIGS


def _attribute(key: str) -> str:
    if key.startswith("errors.deadletterqueue."):
        key = "dead_letter." + key.removeprefix("errors.deadletterqueue.")
    for prefix in ("group.share.", "share."):
        if key.startswith(prefix):
            key = key[len(prefix) :]
            break
    return key.replace(".", "_")


def _check_heartbeat(prefix: str, values: Mapping[str, Any]) -> None:
    """The heartbeat interval must be shorter than the session time-out, so that live members are not removed."""
    heartbeat, session = values[f"{prefix}heartbeat.interval.ms"], values[f"{prefix}session.timeout.ms"]
    if heartbeat >= session:
        raise ConfigException(
            f"{prefix}heartbeat.interval.ms={heartbeat}: must be below {prefix}session.timeout.ms={session}"
        )


def _check_sessions(values: Mapping[str, Any]) -> None:
    """A broker must allow a share session for every member of the largest group."""
    sessions, members = "group.share.max.share.sessions", "group.share.max.size"
    if values[sessions] < values[members]:
        raise ConfigException(f"{sessions}={values[sessions]}: must be >= {members}={values[members]}")


class BrokerConfig:
    """The broker's configuration: `config["group.share.max.size"]`, for every key of BROKER_CONFIGS.

    Unknown keys and values out of range raise ConfigException; so does a bounded value outside its min and max, a
    heartbeat interval that is not below the session time-out, and a limit of share sessions below that of members.
    Immutable.
    """

    __slots__ = ("_values", "overrides")

    def __init__(self, overrides: Mapping[str, object] | None = None) -> None:
        self.overrides: dict[str, object] = dict(overrides or {})
        values: dict[str, Any] = {key: d.default for key, d in BROKER_CONFIGS.items()}
        for key, value in self.overrides.items():
            if key not in BROKER_CONFIGS:
                near = did_you_mean(key, BROKER_CONFIGS)
                raise ConfigException(f"{key}={shown(key, value)}: unknown broker configuration{near}")
            values[key] = BROKER_CONFIGS[key].parse(value)
        self._values = values
        for d in GROUP_CONFIGS.values():
            if d.bounds and d.broker_key:
                low, high = values[d.bounds[0]], values[d.bounds[1]]
                if not low <= values[d.broker_key] <= high:
                    raise ConfigException(
                        f"{d.broker_key}={values[d.broker_key]}: must be {low}..{high} ({d.bounds[0]}, {d.bounds[1]})"
                    )
        for kind in _KINDS:
            _check_heartbeat(f"group.{kind}.", values)
        _check_sessions(values)
        check_super_users(values)
        limits_by_ip(values[PER_IP_OVERRIDES])

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerConfig) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return f"BrokerConfig({self.overrides})"

    def with_overrides(self, changes: Mapping[str, object | None]) -> BrokerConfig:
        """A new configuration with these overrides set; a value of None removes the override."""
        merged = {**self.overrides, **changes}
        return BrokerConfig({key: value for key, value in merged.items() if value is not None})


SHARE_VERSION = 2
"""The feature share.version of a new cluster, and the highest one."""
SHARE_VERSION_OF_QUEUES = 2
"""The lowest share.version with dead-letter queues (KIP-1191)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The configuration in force for one group. Durations in ms.

    `dead_letter_queue`: records that are rejected or delivered too often go to the dead-letter queue. It is no key of
    its own: the group names a topic, and the cluster's share.version is 2 or higher. `experiments`: None if the brokers
    do not offer any.
    """

    session_timeout_ms: int = 45000
    heartbeat_interval_ms: int = 5000
    record_lock_duration_ms: int = 30000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2000
    assignment_interval_ms: int = 1000
    auto_offset_reset: str = "latest"
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    renew_acknowledge_enable: bool = True
    dead_letter_topic_name: str = ""
    dead_letter_copy_record_enable: bool = False
    dead_letter_unavailable: str = "wait"
    dead_letter_queue: bool = False
    group_type: str = ""
    consumer_session_timeout_ms: int = 45000
    consumer_heartbeat_interval_ms: int = 5000
    consumer_assignment_interval_ms: int = 1000
    experiments: Experiments | None = None

    @classmethod
    def effective(
        cls, overrides: Mapping[str, str], broker: BrokerConfig, share_version: int = SHARE_VERSION
    ) -> GroupConfig:
        """The overrides, clamped to the broker's bounds; the broker's values for all other keys."""
        values: dict[str, Any] = {}
        for key, d in GROUP_CONFIGS.items():
            if d.unused:
                continue
            value: Any = d.parse(overrides[key]) if key in overrides else d.default
            if d.broker_key and d.bounds:
                value = _clamp(d, value, broker) if key in overrides else broker[d.broker_key]
            values[_attribute(key)] = value
        values["isolation_level"] = IsolationLevel[str(values["isolation_level"]).upper()]
        has_queue = values["dead_letter_topic_name"] != ""
        values["dead_letter_queue"] = has_queue and share_version >= SHARE_VERSION_OF_QUEUES
        values["experiments"] = Experiments.of(overrides) if broker[ENABLE] else None
        return cls(**values)


_FIELDS = {_attribute(key) for key, d in GROUP_CONFIGS.items() if not d.unused} | {"dead_letter_queue", "experiments"}
assert {f.name for f in fields(GroupConfig)} == _FIELDS


def _clamp(d: ConfigDef, value: Any, broker: BrokerConfig) -> Any:
    """The nearest value within the broker's bounds, if the key has bounds."""
    return min(max(value, broker[d.bounds[0]]), broker[d.bounds[1]]) if d.bounds else value


class Clamped(NamedTuple):
    """A group's stored value outside the broker's bounds, and the value in force."""

    key: str
    stored: str
    effective: Any
    bounds: str


def clamped_overrides(overrides: Mapping[str, str], broker: BrokerConfig) -> list[Clamped]:
    """The stored overrides of a group that `GroupConfig.effective` clamps to the broker's bounds."""
    found = []
    for key, stored in overrides.items():
        d = _WITH_EXPERIMENTS[key]
        value = d.parse(stored)
        effective = _clamp(d, value, broker)
        if d.bounds and effective != value:
            low, high = d.bounds
            found.append(Clamped(key, stored, effective, f"{broker[low]}..{broker[high]} ({low}, {high})"))
    return found


def validate_group_overrides(overrides: Mapping[str, str | None], broker: BrokerConfig) -> None:
    """Raise ConfigException unless the *whole* set of overrides is valid; Kafka checks the set on every change."""
    parsed: dict[str, Any] = {}
    known = known_group_configs(broker)
    for key, value in overrides.items():
        d = known.get(key)
        if d is None:
            raise ConfigException(f"{key}={shown(key, value)}: unknown group configuration{did_you_mean(key, known)}")
        if value is None:
            raise ConfigException(f"{key}=None: must be {d.allowed}")
        parsed[key] = d.parse(value)
        if d.bounds:
            low, high = broker[d.bounds[0]], broker[d.bounds[1]]
            if not low <= parsed[key] <= high:
                raise ConfigException(f"{key}={value!r}: must be {low}..{high} ({d.bounds[0]}, {d.bounds[1]})")
    why = why_no_queue_name(parsed.get(TOPIC_NAME, ""), broker[NAME_PREFIX])
    if why:
        raise ConfigException(f"{TOPIC_NAME}: {why}")
    check_experiments(parsed)
    for kind in _KINDS:
        keys = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        _check_heartbeat(f"{kind}.", {key: parsed.get(key, broker[f"group.{key}"]) for key in keys})
