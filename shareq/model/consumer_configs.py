"""Configurations of consumer groups of the new protocol. Source: Kafka 4.4's configurations (KIP-848, KIP-1263)."""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, ConfigDef


def _broker(key: str, default: int, low: int, doc: str) -> ConfigDef:
    return ConfigDef(f"group.consumer.{key}", default, doc, low, INT_MAX)


CONSUMER_CONFIGS = (
    _broker("session.timeout.ms", 45000, 1, "A member without a heartbeat for this time is removed."),
    _broker("min.session.timeout.ms", 45000, 1, "Lower bound of a group's session time-out."),
    _broker("max.session.timeout.ms", 60000, 1, "Upper bound of a group's session time-out."),
    _broker("heartbeat.interval.ms", 5000, 1, "The time between two heartbeats of a member."),
    _broker("min.heartbeat.interval.ms", 5000, 1, "Lower bound of a group's heartbeat interval."),
    _broker("max.heartbeat.interval.ms", 15000, 1, "Upper bound of a group's heartbeat interval."),
    _broker("assignment.interval.ms", 1000, 0, "The least time between two assignments of a group."),
    _broker("min.assignment.interval.ms", 0, 0, "Lower bound of a group's assignment interval."),
    _broker("max.assignment.interval.ms", 15000, 0, "Upper bound of a group's assignment interval."),
    _broker("regex.refresh.interval.ms", 600000, 10000, "The longest time between two resolutions of an expression."),
    _broker("max.size", INT_MAX, 1, "The most members of a consumer group."),
)


def _group(key: str, low: int, doc: str) -> ConfigDef:
    (default,) = (d.default for d in CONSUMER_CONFIGS if d.key == f"group.consumer.{key}")
    bounds = f"group.consumer.min.{key}", f"group.consumer.max.{key}"
    return ConfigDef(f"consumer.{key}", default, doc, low, INT_MAX, broker_key=f"group.consumer.{key}", bounds=bounds)


CONSUMER_GROUP_CONFIGS = (
    _group("session.timeout.ms", 1, "A member without a heartbeat for this time is removed."),
    _group("heartbeat.interval.ms", 1, "The time between two heartbeats of a member."),
    _group("assignment.interval.ms", 0, "The least time between two assignments of the group."),
)
