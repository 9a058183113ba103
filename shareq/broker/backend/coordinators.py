"""The coordinators of share groups and of their durable state, and the persister: once in a process, for all shards.

BEHAVIOUR.md, section 3.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.host import Host
from shareq.broker.loop import EventLoop
from shareq.coordinator.groups.coordinator import GroupCoordinator
from shareq.coordinator.share_group.records import RecordType
from shareq.coordinator.share_state import ShareCoordinator
from shareq.coordinator.share_state.records import SNAPSHOT, encode_key
from shareq.model.actor import (
    Actor,
    Appended,
    AppendRecords,
    CreateInternalTopic,
    DeleteRecordsBefore,
    ImageChanged,
    ReadRecords,
    RecordsDeleted,
    RecordsRead,
    ShardElected,
    ShardResigned,
)
from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, ZERO_TOPIC_ID, SharePartitionKey, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord

_log = logging.getLogger("shareq.backend")

FENCES = {
    GROUP_METADATA_TOPIC: CoordinatorRecord(RecordType.METADATA.to_bytes(2, "big") + b"\0\0", None),
    SHARE_STATE_TOPIC: CoordinatorRecord(encode_key(SharePartitionKey("", ZERO_TOPIC_ID, 0), SNAPSHOT), None),
}
"""The record that a new writer begins with: a tombstone of a group without a name, which has no effect."""

Carriers = dict[type, Callable[[Host, Any], None]]


class Coordinators:
    """Runs the actors, opens the logs of their shards, and carries out their effects on these logs.

    `carriers`: those of all other effects. `superseded` is called when another process has become a shard's writer.
    """

    def __init__(
        self,
        mirror: MetadataMirror,
        client: BackendClient,
        loop: EventLoop,
        rng: random.Random,
        *,
        carriers: Carriers,
        record: Callable[[Event], None],
        traced: bool,
        superseded: Callable[[], object],
    ) -> None:
        self._mirror = mirror
        self._superseded = superseded
        self._client = client
        self._loop = loop
        self._logs: dict[TopicPartition, ShardLog] = {}
        self._led: set[TopicPartition] = set()
        self._epoch = 0
        own: Carriers = {
            **carriers,
            AppendRecords: self._append,
            ReadRecords: self._read,
            DeleteRecordsBefore: self._delete_before,
            CreateInternalTopic: lambda _, effect: mirror.create(effect.topic),
        }

        def host(name: str, actor: Actor) -> Host:
            return Host(name, actor, loop, own, record)

        self.groups = host("group-coordinator", GroupCoordinator(0, rng, traced=traced))
        self.states = host("share-coordinator", ShareCoordinator(0, traced=traced))
        self._hosts = {GROUP_METADATA_TOPIC: self.groups, SHARE_STATE_TOPIC: self.states}

    @property
    def ready(self) -> bool:
        """True if the logs of all shards are open."""
        topics = self._mirror.image.topics
        return all(
            name in topics and all(TopicPartition(name, p) in self._led for p in range(len(topics[name].partitions)))
            for name in self._hosts
        )

    def image_changed(self, image: ClusterImage) -> None:
        """Deliver the image, and open the logs of new shards."""
        for name, host in self._hosts.items():
            host.deliver(ImageChanged(image))
            topic = image.topics.get(name)
            for index in range(len(topic.partitions) if topic else 0):
                shard = TopicPartition(name, index)
                if shard not in self._logs:
                    self._lead(shard)

    def _lead(self, shard: TopicPartition) -> None:
        """Open the log of a shard; when it is open, the coordinator loads the shard."""
        log = ShardLog(shard, FENCES[shard.topic], self._client, self._loop, self._mirror)
        self._logs[shard] = log
        self._epoch += 1
        epoch = self._epoch

        def opened(error: Errors) -> None:
            if error:
                _log.error("%s cannot be written: %s", shard, error.name)
            else:
                self._led.add(shard)
                self._hosts[shard.topic].deliver(ShardElected(shard.partition, epoch))

        log.open(opened)

    def resign(self) -> None:
        """Resign from all shards: another process writes them now."""
        for shard in sorted(self._led):
            self._logs[shard].close()
            self._hosts[shard.topic].deliver(ShardResigned(shard.partition))
        self._led.clear()

    def die(self) -> None:
        """End the actors and their writers."""
        for log in self._logs.values():
            log.close()
        for host in self._hosts.values():
            host.die()

    # ---- effects -----------------------------------------------------------------------------------------------------

    def _append(self, host: Host, effect: AppendRecords) -> None:
        def done(appended: Appended) -> None:
            host.deliver(appended)
            if appended.error is Errors.NOT_COORDINATOR and effect.topic_partition in self._led:
                self._superseded()

        self._logs[effect.topic_partition].append(effect, done)

    def _read(self, host: Host, effect: ReadRecords) -> None:
        def done(read: RecordsRead) -> None:
            host.deliver(read)

        self._logs[effect.topic_partition].read(effect, done)

    def _delete_before(self, host: Host, effect: DeleteRecordsBefore) -> None:
        def done(error: Errors) -> None:
            host.deliver(RecordsDeleted(effect.id, error))

        self._logs[effect.topic_partition].delete_before(effect.offset, done)
