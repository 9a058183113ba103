"""The controller: it makes all changes of the cluster's metadata. Every change is a new image.

It replaces KRaft's controller quorum: it runs in this process and cannot fail. Brokers forward requests that change
metadata to it.
"""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from shareq.broker.mutation_quotas import MutationQuotas
from shareq.broker.placement import (
    NO_ERROR,
    ErrorWithMessage,
    Replicas,
    internal_topic,
    metric_name,
    placed,
    refuse_counts,
    refuse_name,
    refuse_replicas,
    striped,
)
from shareq.log.config import LogConfig
from shareq.model.acls import AclBinding
from shareq.model.authorizer_configs import authorizer_of
from shareq.model.client_quotas import QuotaChanges, altered_quotas
from shareq.model.configs import BrokerConfig, clamped_overrides, validate_group_overrides
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import (
    AclChanged,
    BrokerStarted,
    BrokerStopped,
    ConfigChanged,
    Event,
    LeaderElected,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.features import SHARE_VERSION_FEATURE
from shareq.model.ids import TopicId, random_id
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.transactions import AllocateProducerIdsResponse
from shareq.model.scram import UserChanges, altered_users

_log = logging.getLogger("shareq.broker")

PRODUCER_IDS_PER_BLOCK = 1000

Changes = Mapping[str, str | None]
"""Configurations to set, or to remove with None."""


class Controller:
    """Holds the image and creates the next one. After each change it calls `publish(image)` and `record(event)`."""

    def __init__(
        self,
        brokers: Mapping[int, BrokerImage],
        config: BrokerConfig,
        rng: random.Random,
        *,
        now_ms: Callable[[], int],
        publish: Callable[[ClusterImage], None],
        record: Callable[[Event], None],
    ) -> None:
        self._rng = rng
        self.mutation_quotas = MutationQuotas(now_ms)
        self._producer_ids = itertools.count(0, PRODUCER_IDS_PER_BLOCK)
        self._publish = publish
        self._record = record
        self._warned: set[tuple[str, str, str]] = set()
        self._topics: dict[str, TopicImage] = {}
        self._metric_names: dict[str, str] = {}
        self._group_configs: dict[str, Mapping[str, str]] = {}
        """The present topics, their names by metric name, and groups: what the next image has."""
        self._topics_changed = self._groups_changed = False
        self._together = 0
        self.image = ClusterImage(
            cluster_id=random_id(rng),
            controller_id=min(brokers),
            brokers=MappingProxyType(dict(brokers)),
            broker_config=config,
            static_configs=MappingProxyType(config.overrides),
            authorizer=authorizer_of(config),
            # With eligible leader replicas enabled, Kafka sets this for the whole cluster when it is created.
            dynamic_configs=MappingProxyType({"min.insync.replicas": str(config["min.insync.replicas"])}),
        )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Publish one image for all changes of topics and groups in the block: an image costs time that grows with the
        cluster."""
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            self._publish_changes()

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def broker_started(self, broker_id: int) -> None:
        """Mark the broker alive: it rejoins the in-sync replicas, and partitions without a leader may elect it."""
        self._set_alive(broker_id, True)
        self._record(BrokerStarted(broker_id))
        self._elect()

    def broker_stopped(self, broker_id: int, *, killed: bool) -> None:
        """Move the leadership of all partitions of the broker to their next live replicas."""
        self._set_alive(broker_id, False)
        self._record(BrokerStopped(broker_id, killed))
        self._elect()

    def elect_preferred_leaders(self) -> None:
        """Give each partition to its first live replica (Kafka: preferred leader election)."""
        self._elect(preferred=True)

    def elect_leader(self, name: str, index: int, *, preferred: bool) -> Errors:
        """Elect the preferred replica of one partition, or, if it has no leader, any live replica."""
        topic = self._topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        old = topic.partitions[index]
        wanted = old.replicas[:1] if preferred else old.replicas
        if old.leader in wanted:
            return Errors.ELECTION_NOT_NEEDED
        if not any(self.image.brokers[b].alive for b in wanted):
            return Errors.PREFERRED_LEADER_NOT_AVAILABLE if preferred else Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
        new = self._elected_partition(name, index, old, preferred=True)
        partitions = (*topic.partitions[:index], new, *topic.partitions[index + 1 :])
        self._put_topics([replace(topic, partitions=partitions)])
        return Errors.NONE

    def _set_alive(self, broker_id: int, alive: bool) -> None:
        brokers = dict(self.image.brokers)
        brokers[broker_id] = replace(brokers[broker_id], alive=alive)
        self.image = replace(self.image, brokers=MappingProxyType(brokers))

    def _elect(self, *, preferred: bool = False) -> None:
        changed = [self._elected(topic, preferred=preferred) for topic in self._topics.values()]
        self._put_topics(changed)

    def _elected(self, topic: TopicImage, *, preferred: bool) -> TopicImage:
        partitions = tuple(
            self._elected_partition(topic.name, index, old, preferred=preferred)
            for index, old in enumerate(topic.partitions)
        )
        return replace(topic, partitions=partitions)

    def _elected_partition(self, topic: str, index: int, old: PartitionImage, *, preferred: bool) -> PartitionImage:
        alive = tuple(b for b in old.replicas if self.image.brokers[b].alive)
        leader = old.leader if old.leader in alive and not preferred else next(iter(alive), NO_LEADER)
        epoch = old.leader_epoch + (leader != old.leader)
        if leader != old.leader:
            self._record(LeaderElected(topic, index, leader, epoch))
        return PartitionImage(leader=leader, leader_epoch=epoch, replicas=old.replicas, isr=alive)

    # ---- topics ------------------------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partition_count: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        assigned: Sequence[Replicas] = (),
        validate_only: bool = False,
    ) -> tuple[ErrorWithMessage, TopicImage | None]:
        """Create a topic with a leader for each partition; -1 means the broker's default.

        `assigned`: the replicas of each partition; empty if the controller chooses them.
        """
        problem = refuse_name(name, self._topics, self._metric_names)
        if not problem[0]:
            problem = self._refuse_topic_configs(configs or {})
        if not problem[0]:
            problem, assigned = self._assign(name, partition_count, replication_factor, assigned)
        if problem[0]:
            return problem, None
        topic = TopicImage(
            name=name,
            topic_id=TopicId(random_id(self._rng)),
            partitions=placed(assigned, self.image.brokers),
            configs=MappingProxyType(dict(configs or {})),
        )
        if not validate_only:
            self._record(TopicCreated(name, topic.topic_id, len(assigned)))
            self._record_leaders(topic, range(len(assigned)))
            self._put_topics([topic])
        return NO_ERROR, topic

    def _assign(
        self, name: str, count: int, factor: int, assigned: Sequence[Replicas]
    ) -> tuple[ErrorWithMessage, Sequence[Replicas]]:
        """The replicas of each partition of a new topic, or the error."""
        brokers, config = self.image.brokers, self.image.broker_config
        if assigned:
            return refuse_replicas(assigned, len(assigned[0]), brokers), assigned
        count = config["num.partitions"] if count == -1 else count
        factor = config["default.replication.factor"] if factor == -1 else factor
        problem = refuse_counts(name, count, factor, len(brokers))
        return problem, () if problem[0] else striped(brokers, len(self._topics), range(count), factor)

    def _refuse_topic_configs(self, configs: Mapping[str, str]) -> ErrorWithMessage:
        try:
            LogConfig.effective(configs, self.image.broker_config)
        except ConfigException as problem:
            return Errors.INVALID_CONFIG, str(problem)
        return NO_ERROR

    def _record_leaders(self, topic: TopicImage, indexes: Iterable[int]) -> None:
        for index in indexes:
            partition = topic.partitions[index]
            self._record(LeaderElected(topic.name, index, partition.leader, partition.leader_epoch))

    def create_partitions(
        self, name: str, count: int, assigned: Sequence[Replicas] | None = None, *, validate_only: bool = False
    ) -> ErrorWithMessage:
        """Grow a topic to `count` partitions. `assigned`: the replicas of each new one; None: chosen here."""
        topic = self._topics.get(name)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
        old, brokers = len(topic.partitions), self.image.brokers
        if count <= old:
            return Errors.INVALID_PARTITIONS, f"topic {name!r} has {old} partitions: {count} is not more"
        factor = len(topic.partitions[0].replicas)
        if assigned is None:
            start = sorted(brokers).index(topic.partitions[0].replicas[0])
            assigned = striped(brokers, start, range(old, count), factor)
        elif len(assigned) != count - old:
            why = f"topic {name!r}: {count - old} new partitions, but {len(assigned)} assignments"
            return Errors.INVALID_REPLICA_ASSIGNMENT, why
        problem = refuse_replicas(assigned, factor, brokers)
        if problem[0] or validate_only:
            return problem
        grown = replace(topic, partitions=topic.partitions + placed(assigned, brokers))
        self._record(PartitionsAdded(name, topic.topic_id, count))
        self._record_leaders(grown, range(old, count))
        self._put_topics([grown])
        return NO_ERROR

    def delete_topic(self, name: str) -> ErrorWithMessage:
        topic = self._topics.get(name)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
        self._record(TopicDeleted(name, topic.topic_id))
        del self._topics[name], self._metric_names[metric_name(name)]
        self._topics_changed = True
        self._publish_changes()
        return NO_ERROR

    def create_internal_topic(self, name: str) -> None:
        """Create a coordinators' topic, with at most as many replicas as there are brokers. Idempotent."""
        if name not in self._topics:
            count, factor, configs = internal_topic(name, self.image.broker_config)
            (error, why), _ = self.create_topic(name, count, min(factor, len(self.image.brokers)), configs)
            assert not error, why

    def allocate_producer_ids(self) -> AllocateProducerIdsResponse:
        """A block of producer ids that is not allocated again."""
        first = next(self._producer_ids)
        return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=PRODUCER_IDS_PER_BLOCK)

    def _put_topics(self, changed: Iterable[TopicImage]) -> None:
        for topic in changed:
            self._topics[topic.name] = topic
            self._metric_names[metric_name(topic.name)] = topic.name
        self._topics_changed = True
        self._publish_changes()

    # ---- configurations ----------------------------------------------------------------------------------------------

    def alter_topic_configs(self, name: str, changes: Changes, *, validate_only: bool = False) -> ErrorWithMessage:
        """Set overrides, or remove them with None. Validates the resulting set as a whole."""
        topic = self._topics.get(name)
        if topic is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
        merged = _merge(topic.configs, changes)
        problem = self._refuse_topic_configs(merged)
        if problem[0] or validate_only:
            return problem
        self._record_configs(f"topic:{name}", changes)
        self._put_topics([replace(topic, configs=MappingProxyType(merged))])
        return NO_ERROR

    def alter_group_configs(self, group_id: str, changes: Changes, *, validate_only: bool = False) -> ErrorWithMessage:
        """Set overrides of a group, which need not exist, or remove them with None."""
        if not group_id:
            return Errors.INVALID_REQUEST, "the group id is empty"
        merged = _merge(self._group_configs.get(group_id, {}), changes)
        try:
            validate_group_overrides(merged, self.image.broker_config)
        except ConfigException as problem:
            return Errors.INVALID_CONFIG, str(problem)
        if validate_only:
            return NO_ERROR
        self._record_configs(f"group:{group_id}", changes)
        if merged:
            self._group_configs[group_id] = MappingProxyType(merged)
        else:
            self._group_configs.pop(group_id, None)
        self._groups_changed = True
        self._publish_changes()
        return NO_ERROR

    def alter_broker_configs(self, changes: Changes, *, validate_only: bool = False) -> ErrorWithMessage:
        """Set cluster-wide broker configurations; None restores the value of the cluster's start."""
        dynamic = _merge(self.image.dynamic_configs, changes)
        try:
            config = BrokerConfig({**self.image.static_configs, **dynamic})
        except ConfigException as problem:
            return Errors.INVALID_REQUEST, str(problem)
        if validate_only:
            return NO_ERROR
        self._record_configs("broker", changes)
        self._change(broker_config=config, dynamic_configs=MappingProxyType(dynamic))
        self._warn_of_clamped()
        return NO_ERROR

    def update_share_version(self, level: int) -> None:
        """Set the feature share.version; the brokers apply it at once."""
        if level != self.image.share_version:
            self._record_configs("feature", {SHARE_VERSION_FEATURE: str(level)})
            self._change(share_version=level)

    def alter_users(self, changes: UserChanges) -> None:
        """Set credentials by user and mechanism, or remove them with None. The journal shows only the iterations."""
        for (name, mechanism), credential in changes.items():
            shown = None if credential is None else f"iterations={credential.iterations}"
            self._record_configs(f"user:{name}", {mechanism.sasl_name: shown})
        self._change(users=altered_users(self.image.users, changes))

    def alter_client_quotas(self, changes: QuotaChanges) -> None:
        """Set quotas by entity and key, or remove them with None."""
        for names, values in changes.items():
            whose = ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in names)
            shown = {key: None if value is None else f"{value:g}" for key, value in values.items()}
            self._record_configs(f"quota:{whose}", shown)
        self._change(client_quotas=altered_quotas(self.image.client_quotas, changes))

    def _warn_of_clamped(self) -> None:
        """Log stored group values outside the broker's new bounds, once per group, key and value."""
        for group_id, overrides in self.image.group_configs.items():
            for key, stored, effective, bounds in clamped_overrides(overrides, self.image.broker_config):
                if (group_id, key, stored) not in self._warned:
                    self._warned.add((group_id, key, stored))
                    text = "group %r: %s=%s is outside %s; the effective value is %s"
                    _log.warning(text, group_id, key, stored, bounds, effective)

    def _record_configs(self, resource: str, changes: Changes) -> None:
        for key, value in changes.items():
            self._record(ConfigChanged(resource, key, value))

    # ---- access control lists ----------------------------------------------------------------------------------------

    def change_acls(self, *, added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()) -> None:
        """Add and remove bindings, all in one image. The cluster must have an authorizer."""
        authorizer = self.image.authorizer
        assert authorizer is not None, "there is no authorizer"
        new = [binding for binding in dict.fromkeys(added) if binding not in authorizer.acls]
        gone = [binding for binding in dict.fromkeys(removed) if binding in authorizer.acls]
        for binding in gone:
            self._record(AclChanged.of(binding, added=False))
        for binding in new:
            self._record(AclChanged.of(binding, added=True))
        if new or gone:
            self._change(authorizer=authorizer.with_acls(authorizer.acls.changed(added=new, removed=gone)))

    # ---- images ------------------------------------------------------------------------------------------------------

    def _publish_changes(self) -> None:
        """Publish the changes of topics and groups, at the end of `together`."""
        if self._together or not (self._topics_changed or self._groups_changed):
            return
        changes: dict[str, Any] = {}
        if self._topics_changed:
            changes["topics"] = MappingProxyType(dict(self._topics))
            changes["topics_by_id"] = MappingProxyType({t.topic_id: t for t in self._topics.values()})
        if self._groups_changed:
            changes["group_configs"] = MappingProxyType(dict(self._group_configs))
        self._topics_changed = self._groups_changed = False
        self._change(**changes)

    def _change(self, **changes: Any) -> None:
        self.image = replace(self.image, version=self.image.version + 1, _effective={}, **changes)
        self._publish(self.image)


def _merge(old: Mapping[str, str], changes: Changes) -> dict[str, str]:
    return {key: value for key, value in {**old, **changes}.items() if value is not None}
