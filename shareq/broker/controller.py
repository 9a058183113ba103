"""The controller: the one place where the cluster's metadata changes. Every change is a new image.

It is KRaft's controller without the quorum: in this process it cannot be lost. Requests that change metadata come here
from whichever broker received them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from shareq.log.config import LogConfig
from shareq.model.configs import BrokerConfig, validate_group_overrides
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import (
    BrokerStarted,
    BrokerStopped,
    ConfigChanged,
    Event,
    LeaderElected,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TopicId, random_id
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage

Outcome = tuple[Errors, str | None]
DONE: Outcome = (Errors.NONE, None)

_LEGAL_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Controller:
    """Holds the image and makes the next one. After each change `publish(image)`; `record(event)` tells why."""

    def __init__(
        self,
        brokers: Mapping[int, BrokerImage],
        config: BrokerConfig,
        rng: random.Random,
        *,
        publish: Callable[[ClusterImage], None],
        record: Callable[[Event], None],
    ) -> None:
        self._rng = rng
        self._publish = publish
        self._record = record
        self.image = ClusterImage(
            cluster_id=random_id(rng),
            controller_id=min(brokers),
            brokers=MappingProxyType(dict(brokers)),
            broker_config=config,
        )

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def broker_started(self, broker_id: int) -> None:
        """The broker is back: partitions without a leader get one, and it rejoins the in-sync replicas."""
        self._set_alive(broker_id, True)
        self._record(BrokerStarted(broker_id))
        self._elect()

    def broker_stopped(self, broker_id: int, *, killed: bool) -> None:
        """The broker is gone: every partition that it led moves to the next replica that is alive."""
        self._set_alive(broker_id, False)
        self._record(BrokerStopped(broker_id, killed))
        self._elect()

    def elect_preferred_leaders(self) -> None:
        """Give each partition back to the first of its replicas that is alive (Kafka: preferred leader election)."""
        self._elect(preferred=True)

    def _set_alive(self, broker_id: int, alive: bool) -> None:
        brokers = dict(self.image.brokers)
        brokers[broker_id] = replace(brokers[broker_id], alive=alive)
        self.image = replace(self.image, brokers=MappingProxyType(brokers))

    def _elect(self, *, preferred: bool = False) -> None:
        changed = [self._elected(topic, preferred=preferred) for topic in self.image.topics.values()]
        self._put_topics(changed)

    def _elected(self, topic: TopicImage, *, preferred: bool) -> TopicImage:
        partitions = []
        for index, old in enumerate(topic.partitions):
            alive = tuple(b for b in old.replicas if self.image.brokers[b].alive)
            leader = old.leader if old.leader in alive and not preferred else next(iter(alive), NO_LEADER)
            epoch = old.leader_epoch + (leader != old.leader)
            if leader != old.leader:
                self._record(LeaderElected(topic.name, index, leader, epoch))
            partitions.append(PartitionImage(leader=leader, leader_epoch=epoch, replicas=old.replicas, isr=alive))
        return replace(topic, partitions=tuple(partitions))

    # ---- topics ------------------------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partition_count: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> tuple[Outcome, TopicImage | None]:
        """A new topic with a leader for each partition; -1 asks for the broker's defaults."""
        config = self.image.broker_config
        count = config["num.partitions"] if partition_count == -1 else partition_count
        factor = config["default.replication.factor"] if replication_factor == -1 else replication_factor
        problem = self._refuse_topic(name, count, factor, configs or {})
        if problem[0]:
            return problem, None
        topic = TopicImage(
            name=name,
            topic_id=TopicId(random_id(self._rng)),
            partitions=self._place(len(self.image.topics), range(count), factor),
            configs=MappingProxyType(dict(configs or {})),
        )
        if not validate_only:
            self._record(TopicCreated(name, topic.topic_id, count))
            self._tell_leaders(topic, range(count))
            self._put_topics([topic])
        return DONE, topic

    def _refuse_topic(self, name: str, count: int, factor: int, configs: Mapping[str, str]) -> Outcome:
        brokers = len(self.image.brokers)
        if not _LEGAL_TOPIC.fullmatch(name) or name in (".", ".."):
            legal = "1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-'"
            return Errors.INVALID_TOPIC_EXCEPTION, f"topic {name!r}: a name has {legal}, and is not '.' or '..'"
        clash = next((t for t in self.image.topics if t.replace(".", "_") == name.replace(".", "_")), None)
        if clash == name:
            return Errors.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists"
        if clash is not None:
            return Errors.INVALID_TOPIC_EXCEPTION, f"topic {name!r} collides with {clash!r}: '.' and '_' count as one"
        if count < 1:
            return Errors.INVALID_PARTITIONS, f"topic {name!r}: {count} partitions: must be 1 or more"
        if not 1 <= factor <= brokers:
            return (
                Errors.INVALID_REPLICATION_FACTOR,
                f"topic {name!r}: replication factor {factor}: must be 1..{brokers}, there are {brokers} brokers",
            )
        try:
            LogConfig.from_overrides(configs)
        except ConfigException as problem:
            return Errors.INVALID_CONFIG, str(problem)
        return DONE

    def _place(self, start: int, indexes: Iterable[int], factor: int) -> tuple[PartitionImage, ...]:
        """Replicas round robin over all brokers; the first one alive leads."""
        ids = sorted(self.image.brokers)
        placed = []
        for index in indexes:
            replicas = tuple(ids[(start + index + k) % len(ids)] for k in range(factor))
            alive = tuple(b for b in replicas if self.image.brokers[b].alive)
            leader = next(iter(alive), NO_LEADER)
            placed.append(PartitionImage(leader=leader, leader_epoch=0, replicas=replicas, isr=alive))
        return tuple(placed)

    def _tell_leaders(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        for index in indexes:
            partition = topic.partitions[index]
            self._record(LeaderElected(topic.name, index, partition.leader, partition.leader_epoch))

    def create_partitions(self, name: str, count: int, *, validate_only: bool = False) -> Outcome:
        """Grow a topic to `count` partitions in all."""
        topic = self.image.topics.get(name)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
        old = len(topic.partitions)
        if count <= old:
            return Errors.INVALID_PARTITIONS, f"topic {name!r} has {old} partitions: {count} is not larger"
        if validate_only:
            return DONE
        factor = len(topic.partitions[0].replicas)
        start = sorted(self.image.brokers).index(topic.partitions[0].replicas[0])
        grown = replace(topic, partitions=topic.partitions + self._place(start, range(old, count), factor))
        self._record(PartitionsAdded(name, topic.topic_id, count))
        self._tell_leaders(grown, range(old, count))
        self._put_topics([grown])
        return DONE

    def delete_topic(self, name: str) -> Outcome:
        topic = self.image.topics.get(name)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
        self._record(TopicDeleted(name, topic.topic_id))
        topics = {n: t for n, t in self.image.topics.items() if n != name}
        self._replace_topics(topics)
        return DONE

    def create_internal_topic(self, name: str) -> None:
        """The coordinators' own topics, with as many replicas as the brokers permit. Repeatable."""
        if name in self.image.topics:
            return
        config = self.image.broker_config
        if name == SHARE_STATE_TOPIC:
            prefix = "share.coordinator.state.topic."
            factor = config[prefix + "replication.factor"]
            configs = {
                "cleanup.policy": "delete",
                "retention.ms": "-1",
                "segment.bytes": str(config[prefix + "segment.bytes"]),
                "min.insync.replicas": str(config[prefix + "min.isr"]),
            }
            count = config[prefix + "num.partitions"]
        else:
            assert name == GROUP_METADATA_TOPIC
            factor, count, configs = 3, config["offsets.topic.num.partitions"], {"cleanup.policy": "compact"}
        (error, why), _ = self.create_topic(name, count, min(factor, len(self.image.brokers)), configs)
        assert not error, why

    def _put_topics(self, changed: Iterable[TopicImage]) -> None:
        self._replace_topics({**self.image.topics, **{t.name: t for t in changed}})

    def _replace_topics(self, topics: Mapping[str, TopicImage]) -> None:
        self._change(
            topics=MappingProxyType(dict(topics)),
            topics_by_id=MappingProxyType({t.topic_id: t for t in topics.values()}),
        )

    # ---- configurations ----------------------------------------------------------------------------------------------

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> Outcome:
        """Set overrides, or remove them with None. The whole resulting set is validated."""
        topic = self.image.topics.get(name)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
        merged = _merge(topic.configs, changes)
        try:
            LogConfig.from_overrides(merged)
        except ConfigException as problem:
            return Errors.INVALID_CONFIG, str(problem)
        self._tell_configs(f"topic:{name}", changes)
        self._put_topics([replace(topic, configs=MappingProxyType(merged))])
        return DONE

    def alter_group_configs(self, group_id: str, changes: Mapping[str, str | None]) -> Outcome:
        """Set overrides of a group (which need not exist), or remove them with None."""
        if not group_id:
            return Errors.INVALID_REQUEST, "the group id is empty"
        merged = _merge(self.image.group_configs.get(group_id, {}), changes)
        try:
            validate_group_overrides(merged, self.image.broker_config)
        except ConfigException as problem:
            return Errors.INVALID_CONFIG, str(problem)
        self._tell_configs(f"group:{group_id}", changes)
        configs = {**self.image.group_configs, group_id: MappingProxyType(merged)}
        self._change(group_configs=MappingProxyType(configs))
        return DONE

    def alter_broker_configs(self, changes: Mapping[str, str | None]) -> Outcome:
        """Cluster-wide broker configurations."""
        try:
            config = self.image.broker_config.with_overrides(changes)
        except ConfigException as problem:
            return Errors.INVALID_CONFIG, str(problem)
        self._tell_configs("broker", changes)
        self._change(broker_config=config)
        return DONE

    def _tell_configs(self, resource: str, changes: Mapping[str, str | None]) -> None:
        for key, value in changes.items():
            self._record(ConfigChanged(resource, key, value))

    def _change(self, **changes: Any) -> None:
        self.image = replace(self.image, version=self.image.version + 1, _effective={}, **changes)
        self._publish(self.image)


def _merge(old: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**old, **changes}.items() if value is not None}
