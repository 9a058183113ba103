"""The experiments: behaviour that documents of Kafka ask for and that no release has.

They are off unless the brokers start with `shareq.experiments.enable`: then the keys below are configurations of
groups, else they are unknown. Rules: `leader/experiments/BEHAVIOUR.md`, and for assignors
`coordinator/share_group/experiments/BEHAVIOUR.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from shareq.model.config_def import INT_MAX, LONG_MAX, ConfigDef
from shareq.model.errors import ConfigException

ENABLE = "shareq.experiments.enable"

LONGEST_BACKOFF_MS = 3_600_000

BACKOFF_MS = "shareq.release.backoff.ms"
BACKOFF_MAX_MS = "shareq.release.backoff.max.ms"
KEY_ORDERING = "shareq.key.ordering"
KEY_MAX_IN_FLIGHT = "shareq.key.max.in.flight"
KEY_CUT_BATCHES = "shareq.key.cut.batches.enable"
TTL_MS = "shareq.record.ttl.ms"
TTL_DEADLETTER = "shareq.record.ttl.deadletter.enable"
DELIVERY = "shareq.delivery.enable"
PRIORITIES = "shareq.topic.priorities"
HIGHEST_PRIORITY = 100
ASSIGNOR = "shareq.assignor"
LAG_INTERVAL_MS = "shareq.assignor.lag.interval.ms"

BROKER_EXPERIMENT_CONFIGS = (
    ConfigDef(ENABLE, False, "Offer the configurations of experiments, which Apache Kafka does not have."),
)

EXPERIMENT_CONFIGS: dict[str, ConfigDef] = {
    d.key: d
    for d in (
        ConfigDef(BACKOFF_MS, 0, "A record rests for this time after its first release.", 0, LONGEST_BACKOFF_MS),
        ConfigDef(BACKOFF_MAX_MS, 60_000, "The longest rest of a released record.", 0, LONGEST_BACKOFF_MS),
        ConfigDef(KEY_ORDERING, "none", "key: the records of a key are delivered in order.", choices=("none", "key")),
        ConfigDef(KEY_MAX_IN_FLIGHT, 1, "The most records of a key that a member may hold.", 1, 1000),
        ConfigDef(KEY_CUT_BATCHES, False, "With order by key, record batches are sent with the acquired records only."),
        ConfigDef(TTL_MS, -1, "The age at which a record is archived instead of delivered.", 1000, LONG_MAX, off=-1),
        ConfigDef(TTL_DEADLETTER, False, "Expired records go to the dead-letter queue of the group."),
        ConfigDef(DELIVERY, True, "false: the group is paused, no record is acquired; all else goes on."),
        ConfigDef(PRIORITIES, "", "Fetches read topics with a higher priority first: a:10,b:1; 0 for all others."),
        ConfigDef(
            ASSIGNOR,
            "",
            "The assignor of the group; empty: that of the brokers.",
            choices=("", "simple", "all_to_all", "cut"),
        ),
        ConfigDef(LAG_INTERVAL_MS, 10_000, "The time after which cut weighs the partitions again.", 1000, INT_MAX),
    )
}
"""The configurations of groups that exist only while experiments are enabled."""


BY_GROUPS = "shareq.retention.by.groups.enable"

EXPERIMENT_TOPIC_CONFIGS: dict[str, ConfigDef] = {
    BY_GROUPS: ConfigDef(BY_GROUPS, False, "Delete the records that all groups of the topic have finished.")
}
"""The configurations of topics that exist only while experiments are enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiments:
    """The experiments of one group."""

    release_backoff_ms: int = 0
    release_backoff_max_ms: int = 60_000
    key_ordering: str = "none"
    key_max_in_flight: int = 1
    key_cut_batches_enable: bool = False
    record_ttl_ms: int = -1
    record_ttl_deadletter_enable: bool = False
    delivery_enable: bool = True
    topic_priorities: str = ""
    assignor: str = ""
    assignor_lag_interval_ms: int = 10_000

    @classmethod
    def of(cls, overrides: Mapping[str, str]) -> Experiments:
        """The values in force for a group with these overrides."""
        values: dict[str, Any] = {
            key.removeprefix("shareq.").replace(".", "_"): d.parse(overrides[key])
            for key, d in EXPERIMENT_CONFIGS.items()
            if key in overrides
        }
        return cls(**values)

    def rest_ms(self, delivery_count: int) -> int:
        """The rest of a record that is released after so many deliveries: it doubles with each one, up to a maximum."""
        return min(self.release_backoff_max_ms, self.release_backoff_ms << (delivery_count - 1))


@cache
def priorities_of(text: str) -> Mapping[str, int]:
    """The priorities by topic in a value such as "a:10,b:1". ConfigException if it is no such value."""
    found: dict[str, int] = {}
    for item in text.split(",") if text.strip() else ():
        topic, _, digits = item.strip().rpartition(":")
        legal = _TOPIC.fullmatch(topic) and topic not in found and _NUMBER.fullmatch(digits)
        if not legal or int(digits) > HIGHEST_PRIORITY:
            allowed = f"a list of topic:priority, each topic once, with priorities of 0..{HIGHEST_PRIORITY}"
            raise ConfigException(f"{PRIORITIES}={text!r}: must be {allowed}")
        found[topic] = int(digits)
    return found


_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NUMBER = re.compile(r"[0-9]{1,3}")


def check_experiments(parsed: Mapping[str, Any]) -> None:
    """Raise ConfigException if the experiments of a group contradict one another."""
    values = {key: parsed.get(key, d.default) for key, d in EXPERIMENT_CONFIGS.items()}
    first, longest = values[BACKOFF_MS], values[BACKOFF_MAX_MS]
    if longest < first:
        raise ConfigException(f"{BACKOFF_MAX_MS}={longest}: must be {first}..{LONGEST_BACKOFF_MS} ({BACKOFF_MS})")
    priorities_of(values[PRIORITIES])
