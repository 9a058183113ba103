"""The cluster's metadata as one immutable image: topics, leaders, brokers and configurations.

A change creates a new image (`dataclasses.replace`) with a higher `version`. Source: KRaft's MetadataImage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shareq.model.authorizer import Authorizer
from shareq.model.client_quotas import Quotas
from shareq.model.configs import SHARE_VERSION, BrokerConfig, GroupConfig
from shareq.model.ids import TopicId, partition_for
from shareq.model.scram import Users

NO_LEADER = -1

Addresses = Mapping[int, tuple[str, int]]
"""Host and port of each broker by its id."""

SPARE_SESSION_PARTITIONS = 1000
"""So many partitions that do not exist may be in a session: a topic can be deleted while clients still know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    broker_id: int
    host: str
    port: int
    rack: str | None = None
    alive: bool = True
    listeners: Mapping[str, tuple[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    """Hosts and ports by the names of listeners, if there are several."""


def listeners_of(broker_id: int, listeners: Mapping[str, Addresses]) -> Mapping[str, tuple[str, int]]:
    """The listeners that a broker has, of those of all brokers."""
    return MappingProxyType({name: one[broker_id] for name, one in listeners.items() if broker_id in one})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """`leader` is NO_LEADER while no replica is alive; `leader_epoch` starts at 0 and grows with every election."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    name: str
    topic_id: TopicId
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """`group_configs` holds the overrides as strings; `group_config(id)` returns the values in force.

    `broker_config` is the configuration in force: `static_configs`, set at start, overridden by `dynamic_configs`, set
    since then. `authorizer`: None while everything is allowed.
    """

    version: int = 0
    cluster_id: str = ""
    controller_id: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicImage] = field(default_factory=lambda: MappingProxyType({}))
    topics_by_id: Mapping[TopicId, TopicImage] = field(default_factory=lambda: MappingProxyType({}))
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    broker_config: BrokerConfig = field(default_factory=BrokerConfig)
    static_configs: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    dynamic_configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    share_version: int = SHARE_VERSION
    authorizer: Authorizer | None = None
    users: Users = field(default_factory=lambda: MappingProxyType({}))
    client_quotas: Quotas = field(default_factory=lambda: MappingProxyType({}))
    _effective: dict[str, GroupConfig] = field(default_factory=dict, repr=False, compare=False)

    def group_config(self, group_id: str) -> GroupConfig:
        """The configuration in force for a group: its overrides, clamped to the broker's bounds, else the broker's
        values."""
        found = self._effective.get(group_id)
        if found is None:
            found = GroupConfig.effective(self.group_configs.get(group_id, {}), self.broker_config, self.share_version)
            self._effective[group_id] = found
        return found

    def partition(self, topic_id: TopicId, index: int) -> PartitionImage | None:
        """The partition, or None if the topic or the index is unknown."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def can_be_meant(self, partitions: int) -> bool:
        """True if a session may hold so many different partitions: those that exist, and a few that no longer do."""
        spare = partitions - SPARE_SESSION_PARTITIONS
        return spare <= 0 or spare <= sum(len(topic.partitions) for topic in self.topics.values())

    def coordinator(self, topic: str, key: str) -> BrokerImage | None:
        """The broker that leads the partition of `key` in a coordinator's topic; None if there is no live leader."""
        found = self.topics.get(topic)
        if found is None:
            return None
        broker = self.brokers.get(found.partitions[partition_for(key, len(found.partitions))].leader)
        return broker if broker and broker.alive else None
