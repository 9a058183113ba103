"""The coordinators of share groups and of their durable state: once in a process, for the shards that it leads.

BEHAVIOUR.md, section 3.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.led_shards import Kept, LedShard, write_again
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.restoration import OF_RECORDS, OF_STATES, Cleanup
from shareq.broker.backend.shard_log import ShardLog
from shareq.broker.backend.shard_reads import RETRY_MS
from shareq.broker.host import Host, gauges_of
from shareq.broker.loop import EventLoop
from shareq.coordinator.group_coordinator import GroupCoordinator
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
from shareq.model.gauges import Gauge
from shareq.model.ids import (
    GROUP_METADATA_TOPIC,
    SHARE_STATE_TOPIC,
    ZERO_TOPIC_ID,
    SharePartitionKey,
    TopicId,
    TopicPartition,
)
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of

_log = logging.getLogger("shareq.backend")

FENCES = {
    GROUP_METADATA_TOPIC: CoordinatorRecord(RecordType.METADATA.to_bytes(2, "big") + b"\0\0", None),
    SHARE_STATE_TOPIC: CoordinatorRecord(encode_key(SharePartitionKey("", ZERO_TOPIC_ID, 0), SNAPSHOT), None),
}
"""The record that a new writer begins with: a tombstone of a group without a name, which has no effect."""

Carriers = dict[type, Callable[[Host, Any], None]]


class Coordinators:
    """Runs the actors, opens the logs of the shards that this process leads, and carries out their effects on them.

    `leads(shard)` is asked with each image. `carriers`: those of all other effects. `when_held(call)` calls while no
    other process can lead. `require_term(term)` is called when stored leader epochs need a fleet with this term.
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
        leads: Callable[[str, int], bool],
        when_held: Callable[[Callable[[], object]], object],
        require_term: Callable[[int], object],
    ) -> None:
        self._mirror = mirror
        self._require_term = require_term
        self._leads = leads
        self._when_held = when_held
        self._client = client
        self._loop = loop
        self._led: dict[TopicPartition, LedShard] = {}
        self._kept: dict[TopicPartition, Kept] = {}
        """Of shards that this process has led last: what they had."""
        self._ended = False
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

        common: dict[str, Any] = {"traced": traced, "time_of_day": loop.time_of_day}
        self.groups = host("group-coordinator", GroupCoordinator(0, rng, **common))
        self._states = ShareCoordinator(0, **common)
        self.states = host("share-coordinator", self._states)
        self._hosts = {GROUP_METADATA_TOPIC: self.groups, SHARE_STATE_TOPIC: self.states}

    def gauges(self) -> Counter[Gauge]:
        """Those of both coordinators."""
        return gauges_of(self._hosts.values())

    @property
    def ready(self) -> bool:
        """True if the logs of all shards that this process leads are open."""
        elected = {shard: led.topic_id for shard, led in self._led.items() if led.elected}
        return all(name in self._mirror.image.topics for name in self._hosts) and self._wanted() == elected

    def _wanted(self) -> dict[TopicPartition, TopicId]:
        """The shards that this process shall lead, with the ids of their topics."""
        topics = self._mirror.image.topics
        return {
            TopicPartition(name, index): topics[name].topic_id
            for name in self._hosts
            if name in topics
            for index in range(len(topics[name].partitions))
            if self._leads(name, index)
        }

    def image_changed(self, image: ClusterImage) -> None:
        """Deliver the image, resign from the shards that another process leads or whose topic is gone, and open the
        logs of new ones."""
        if self._ended:
            return
        for host in self._hosts.values():
            host.deliver(ImageChanged(image))
        wanted = self._wanted()
        for shard in sorted(self._led):
            if wanted.get(shard) != self._led[shard].topic_id:
                self._resign(shard)
        for shard in [shard for shard in self._kept if not self._leads(*shard)]:
            del self._kept[shard]
        for shard in sorted(wanted.keys() - self._led.keys()):
            self._lead(shard, wanted[shard])

    def _lead(self, shard: TopicPartition, topic_id: TopicId) -> None:
        """Open the log of a shard; when it is open, the coordinator loads the shard. It deletes the states of topics
        that do not exist, so the metadata must be newer than those that former writers had."""
        log = ShardLog(
            shard,
            FENCES[shard.topic],
            self._client,
            self._loop,
            self._mirror,
            cleanup=self._cleanup(shard.topic),
        )
        led = self._led[shard] = LedShard(log, topic_id)
        self._epoch += 1
        epoch = self._epoch

        def opened(error: Errors) -> None:
            if error is Errors.NOT_COORDINATOR:
                self._fenced(led)
            elif error:
                _log.error("%s cannot be written: %s", shard, error.name)
            else:
                self._mirror.refresh(restore)

        def restore() -> None:
            kept = self._kept.get(shard)
            if self._led.get(shard) is not led:
                return
            if kept is None or kept.topic_id == topic_id:
                load(Errors.NONE)
            else:
                write_again(log, kept.records, load)

        def load(error: Errors) -> None:
            if error is Errors.NOT_COORDINATOR:
                self._fenced(led)
                return
            if error:
                _log.error("%s: what it had cannot be written again: %s", shard, error.name)
            led.elected = True
            self._hosts[shard.topic].deliver(ShardElected(shard.partition, epoch))

        log.open(opened, lambda: self._fenced(led))

    def _cleanup(self, topic: str) -> Cleanup | None:
        if topic == GROUP_METADATA_TOPIC:
            return OF_RECORDS
        design = design_of(self._mirror.image.broker_config[PERSISTER_CLASS])
        return OF_STATES if design is StateDesign.COMPACTED_TOPIC else None

    def _resign(self, shard: TopicPartition) -> None:
        led = self._led.pop(shard)
        led.log.close()
        if led.loaded and self._leads(*shard):
            self._kept[shard] = Kept(led.topic_id, self._contents(shard, led))
        if led.elected:
            self._hosts[shard.topic].deliver(ShardResigned(shard.partition))

    def _contents(self, shard: TopicPartition, led: LedShard) -> list[CoordinatorRecord]:
        """The records that make a log what the log of a loaded shard is."""
        return self._states.snapshots(shard.partition) if shard.topic == SHARE_STATE_TOPIC else led.newest_records

    def _fenced(self, led: LedShard) -> None:
        """Another process has become the writer of a shard. If this one still leads it, that was a former leader: begin
        anew."""
        shard = led.log.shard
        if self._led.get(shard) is led:
            self._resign(shard)
            again = lambda: self._when_held(lambda: self.image_changed(self._mirror.image))  # noqa: E731
            self._loop.at(self._loop.time_ms() + RETRY_MS, again)

    def die(self) -> None:
        """End the actors and their writers."""
        self._ended = True
        for led in self._led.values():
            led.log.close()
        for host in self._hosts.values():
            host.die()

    # ---- effects -----------------------------------------------------------------------------------------------------

    def _append(self, host: Host, effect: AppendRecords) -> None:
        led = self._led.get(effect.topic_partition)
        if led is None:  # resigned from while the coordinator was at work
            return

        def done(appended: Appended) -> None:
            if host is self.groups and not appended.error:
                led.take(effect.records)
            host.deliver(appended)
            if appended.error is Errors.NOT_COORDINATOR:
                self._fenced(led)

        led.log.append(effect, done)

    def _read(self, host: Host, effect: ReadRecords) -> None:
        led = self._led.get(effect.topic_partition)
        if led is None:
            return

        def done(read: RecordsRead) -> None:
            if host is self.groups:
                led.take(record[1:] for record in read.records)
            host.deliver(read)
            if read.done:
                led.loaded = True
                self._kept.pop(effect.topic_partition, None)
                if host is self.states:
                    self._compare_epochs(effect.topic_partition.partition)

        led.log.read(effect, done)

    def _compare_epochs(self, partition: int) -> None:
        """Stored epochs of leaders that are above those of the present fleet show that terms have begun again: its
        leaders would be refused until they reach them."""
        image, fleet = self._mirror.image, self._mirror.fleet
        stored = ((image.partition(*key[1:]), epoch) for key, epoch in self._states.leader_epochs(partition).items())
        terms = [epoch - found.leader_epoch for found, epoch in stored if found is not None]
        if fleet is not None and terms and max(terms) > fleet.term:
            _log.warning("terms have begun again: the states have %s, the fleet %s", max(terms), fleet.term)
            self._require_term(max(terms) + 1)

    def _delete_before(self, host: Host, effect: DeleteRecordsBefore) -> None:
        def done(error: Errors) -> None:
            host.deliver(RecordsDeleted(effect.id, error))

        if effect.topic_partition in self._led:
            self._led[effect.topic_partition].log.delete_before(effect.offset, done)
