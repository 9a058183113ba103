"""The designs of durable share state: where the states of share-partitions are kept.

A cluster has one of them, by `group.share.persister.class.name`. Kafka has the state topic and the no-op persister;
KIP-932 considers and rejects the compacted topic, and has begun with control records.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from shareq.model.errors import ConfigException

PERSISTER_CLASS = "group.share.persister.class.name"

CHECKPOINT_EPOCHS = 1 << 16
"""The number of epochs of checkpoints, unlike snapshots; the one after the last is 0."""

_OF_KAFKA = "org.apache.kafka.server.share.persister"


class StateDesign(StrEnum):
    """Where the states are kept; the value is its name in `Cluster(persister=...)`."""

    STATE_TOPIC = "state-topic"
    COMPACTED_TOPIC = "compacted-topic"
    CONTROL_RECORDS = "control-records"
    NONE = "none"

    @property
    def class_name(self) -> str:
        """Its value of `group.share.persister.class.name`."""
        return next(name for name, design in DESIGNS.items() if design is self)

    @property
    def cleanup_policy(self) -> str:
        """The cleanup policy of the state topic. Without a persister nothing is written to it."""
        return "compact" if self is StateDesign.COMPACTED_TOPIC else "delete"


DESIGNS: Mapping[str, StateDesign] = {
    f"{_OF_KAFKA}.DefaultStatePersister": StateDesign.STATE_TOPIC,
    "shareq.persister.CompactedTopicPersister": StateDesign.COMPACTED_TOPIC,
    "shareq.persister.ControlRecordPersister": StateDesign.CONTROL_RECORDS,
    f"{_OF_KAFKA}.NoOpStatePersister": StateDesign.NONE,
    "": StateDesign.NONE,
}
"""The designs by the class name of their persister."""


def design_named(name: object) -> StateDesign:
    """The design with this name; ConfigException if there is none."""
    if not isinstance(name, str) or name not in list(StateDesign):
        raise ConfigException(f"persister={name!r}: must be one of {', '.join(StateDesign)}")
    return StateDesign(name)


def design_of(class_name: str) -> StateDesign:
    """The design of a persister's class; ConfigException if there is none."""
    if class_name not in DESIGNS:
        known = ", ".join(map(repr, DESIGNS))
        raise ConfigException(f"{PERSISTER_CLASS}={class_name!r}: must be one of {known}")
    return DESIGNS[class_name]
