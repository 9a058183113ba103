"""A control for each dynamic configuration that has an effect: of the group, of its topics, of the brokers.

A slider shows a useful part of the allowed range, and `do` takes all of it. The useful part is a tenth to ten times the
default, within the allowed range; it begins at 0 where 0 is allowed. `_USEFUL` has the exceptions: keys without a limit
by default, and those whose default suits disks and weeks. A range of two decades or more has a logarithmic slider.
`do(None)` removes the override.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shareq.broker import Cluster
from shareq.broker.configs import READ_AT_START, topic_configs
from shareq.log.config import known_topic_configs
from shareq.model.config_def import INT_MAX, LONG_MAX, ConfigDef
from shareq.model.configs import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    GroupConfig,
    known_group_configs,
    validate_group_overrides,
)
from shareq.model.errors import ConfigException
from shareq.model.messages.topics import ConfigType
from shareq_widgets.steering.control import CHOICE, SLIDER, Control, Executor, Number, Range

GROUP, TOPIC, BROKER = "group configurations", "topic configurations", "broker configurations"

_WEEK_MS = 604_800_000

_USEFUL: dict[str, tuple[int, int]] = {
    "delete.retention.ms": (0, _WEEK_MS),
    "retention.ms": (1_000, _WEEK_MS),
    "retention.bytes": (1_000, 1_000_000_000),
    "segment.bytes": (1_000, 1_073_741_824),
    "segment.ms": (1_000, _WEEK_MS),
    "log.roll.ms": (1_000, _WEEK_MS),
    "compaction.lag.ms": (0, _WEEK_MS),
    "record.ttl.ms": (1_000, _WEEK_MS),
    "min.assignment.interval.ms": (0, 15_000),
    "before.max.ms": (0, _WEEK_MS),
    "max.size": (1, 1_000),
    "message.bytes": (0, 10_000_000),
    "message.max.bytes": (0, 10_000_000),
}
"""By the end of a key; the first one counts."""

_UNITS = {"ms": "ms", "bytes": "bytes", "minutes": "minutes", "limit": "deliveries", "locks": "records"}
"""By the last word of a key."""


def config_controls(panel: Executor, cluster: Cluster, group: str, topics: Sequence[str]) -> Iterator[Control]:
    """The controls of the group's, the topics' and the brokers' configurations, in this order.

    Configurations of consumer groups, which a share group does not use, have none; neither have those of any text.
    """
    for key, d in known_group_configs(cluster.image.broker_config).items():
        if key.startswith(("share.", "shareq.")) and not d.unused:
            yield _group_control(panel, cluster, group, d)
    for topic in topics:
        for d in known_topic_configs(cluster.image.broker_config).values():
            if not d.unused:
                yield _topic_control(panel, cluster, topic, d)
    for key, d in BROKER_CONFIGS.items():
        is_text = isinstance(d.default, str) and not d.choices
        if not (d.unused or is_text or key in READ_AT_START or key.startswith("group.consumer.")):
            yield _broker_control(panel, cluster, d)


# ---- by resource -----------------------------------------------------------------------------------------------------


def _group_control(panel: Executor, cluster: Cluster, group: str, d: ConfigDef) -> Control:
    def in_force() -> Any:
        config = GroupConfig.effective(cluster.image.group_configs.get(group, {}), cluster.image.broker_config)
        of_experiment = d.key.startswith("shareq.")
        name = d.key.removeprefix("shareq." if of_experiment else "share.").replace(".", "_")
        value = getattr(config.experiments if of_experiment else config, name)
        return value.name.lower() if d.key == "share.isolation.level" else value

    def check(value: Any) -> Any:
        stored = {**cluster.image.group_configs.get(group, {}), d.key: _text(_parsed(d, value))}
        validate_group_overrides(_without_none(stored), cluster.image.broker_config)
        return _parsed(d, value)

    return _control(
        panel,
        d,
        area=GROUP,
        subject=group,
        in_force=in_force,
        bounds=lambda: _bounds(d, cluster),
        check=check,
        line=lambda value: f"admin.alter_group_configs({group!r}, {{{d.key!r}: {value!r}}})",
    )


def _topic_control(panel: Executor, cluster: Cluster, topic: str, d: ConfigDef) -> Control:
    def in_force() -> Any:
        described = topic_configs(cluster.image.topics[topic].configs, cluster.image)
        return d.parse(next(entry.value for entry in described if entry.key == d.key))

    return _control(
        panel,
        d,
        area=TOPIC,
        subject=topic,
        in_force=in_force,
        bounds=lambda: (d.low, d.high),
        check=lambda value: _parsed(d, value),
        line=lambda value: f"admin.incremental_alter_configs('topic', {topic!r}, {{{d.key!r}: {value!r}}})",
    )


def _broker_control(panel: Executor, cluster: Cluster, d: ConfigDef) -> Control:
    def check(value: Any) -> Any:
        parsed, (low, high) = _parsed(d, value), _broker_bounds(d, cluster)
        if isinstance(parsed, int) and not (low or 0) <= parsed <= (LONG_MAX if high is None else high):
            raise ConfigException(f"{d.key}={value!r}: must be {low}..{high}, as the default and the bounds are now")
        cluster.image.broker_config.with_overrides({d.key: parsed})
        return parsed

    return _control(
        panel,
        d,
        area=BROKER,
        in_force=lambda: cluster.image.broker_config[d.key],
        bounds=lambda: _broker_bounds(d, cluster),
        check=check,
        line=lambda value: f"admin.incremental_alter_configs('broker', '', {{{d.key!r}: {value!r}}})",
    )


def _broker_bounds(d: ConfigDef, cluster: Cluster) -> tuple[int | None, int | None]:
    """The allowed range now: a default of groups lies within the bounds of groups, and the bounds around it."""
    broker = cluster.image.broker_config
    for of_groups in GROUP_CONFIGS.values():
        if of_groups.bounds and of_groups.broker_key:
            least, most = of_groups.bounds
            if d.key == of_groups.broker_key:
                return broker[least], broker[most]
            if d.key == least:
                return d.low, min(d.high or LONG_MAX, broker[of_groups.broker_key])
            if d.key == most:
                return max(d.low or 0, broker[of_groups.broker_key]), d.high
    return d.low, d.high


def _control(
    panel: Executor,
    d: ConfigDef,
    *,
    area: str,
    subject: str = "",
    in_force: Callable[[], Any],
    bounds: Callable[[], tuple[int | None, int | None]],
    check: Callable[[Any], Any],
    line: Callable[[Any], str],
) -> Control:
    slides = d.type not in (ConfigType.BOOLEAN, ConfigType.LIST) and not isinstance(d.default, str)
    return Control(
        panel=panel,
        name=f"{d.key} of {subject}" if subject else d.key,
        area=area,
        subject=subject,
        kind=SLIDER if slides else CHOICE,
        meaning=d.doc,
        unit=_UNITS.get(d.key.rpartition(".")[2], "") if slides else "",
        current=in_force,
        span=(lambda: useful_range(d, *bounds())) if slides else None,
        options=None if slides else lambda: _options(d),
        checked=check,
        line=line,
    )


# ---- values and ranges -----------------------------------------------------------------------------------------------


def useful_range(d: ConfigDef, low: int | None, high: int | None) -> Range:
    """The range of a slider for a key whose allowed range is low..high now; None: no bound."""
    least = -LONG_MAX if low is None else low
    most = LONG_MAX if high is None else high
    assert isinstance(d.default, (int, float)), f"{d.key} is a number"
    if d.type is ConfigType.DOUBLE:
        return Range(least, most, whole=False)
    found = next((useful for end, useful in _USEFUL.items() if d.key.endswith(end)), None)
    first, last = found or (0 if least <= 0 else int(d.default) // 10, 10 * max(int(d.default), 1))
    first, last = max(first, least), min(last, most)
    if most < INT_MAX and (low, high) != (d.low, d.high):  # what other configurations bound is narrow: show all of it
        first, last = least, most
    return Range(first, last, log=last >= 100 * max(first, 1), least=least, most=most)


def _bounds(d: ConfigDef, cluster: Cluster) -> tuple[int | None, int | None]:
    """The allowed range now, down to the number that switches the key off."""
    broker = cluster.image.broker_config
    if d.bounds:
        return broker[d.bounds[0]], broker[d.bounds[1]]
    return d.low if d.off is None or d.low is None else min(d.off, d.low), d.high


def _parsed(d: ConfigDef, value: Any) -> Number | str | None:
    return None if value is None else d.parse(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _without_none(stored: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key: value for key, value in stored.items() if value is not None}


def _options(d: ConfigDef) -> tuple[Any, ...]:
    if d.type is ConfigType.BOOLEAN:
        return (True, False)
    if d.type is ConfigType.LIST and d.high != 1:
        return (*d.choices, ",".join(d.choices))
    return tuple(choice for choice in d.choices if "<" not in choice)
