"""The share coordinator of one broker: serves the share-state requests for the partitions of the state topic that the
broker leads.

Source: Kafka's ShareCoordinatorService; KIP-932, "Share coordinator".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.shard import ShardState
from shareq.coordinator.runtime.turn import Append, Turn
from shareq.coordinator.share_state.compacted import CompactedShard
from shareq.coordinator.share_state.ends import committed_update, end_at_leader, snapshot_if_due
from shareq.coordinator.share_state.housekeeping import Housekeeping, delete_state_of_deleted_topics, whole_states
from shareq.coordinator.share_state.lookup import state_partition_count
from shareq.coordinator.share_state.rules import RPCS, Rpc, events_of, failed
from shareq.coordinator.share_state.staged import EndedTransaction
from shareq.coordinator.share_state.state import StateShard
from shareq.model.actor import (
    Effect,
    ImageChanged,
    Incoming,
    Message,
    RecordsDeleted,
    Respond,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.gauges import Gauge
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId, partition_for
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Response
from shareq.model.records import CoordinatorRecord
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.workflow import Workflow

R = TypeVar("R")

MAX_KNOWN_PARTITIONS = 100_000
"""The size of the cache of keys' partitions of the state topic."""


def _joined(rpc: Rpc, results: Iterable[tuple[TopicId, Any]]) -> Response:
    """The response with the results of all partitions. For a partition that the request names twice, the later result
    counts."""
    by_topic: dict[TopicId, dict[int, Any]] = {}
    for topic_id, result in results:
        by_topic.setdefault(topic_id, {})[result.partition] = result
    topic = rpc.response.Topic
    topics = [topic(topic_id=topic_id, partitions=tuple(found.values())) for topic_id, found in by_topic.items()]
    response: Response = rpc.response(results=tuple(topics))
    return response


class ShareCoordinator:
    """The actor. It is inactive until the first ImageChanged, and answers COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, broker_id: int, *, traced: bool, time_of_day: TimeOfDay = same_time) -> None:
        self.broker_id = broker_id
        self._image = ClusterImage()
        self._active = False
        self._runtime: ShardRuntime[StateShard] = ShardRuntime(
            SHARE_STATE_TOPIC, self._new_shard, self._on_load, traced=traced, time_of_day=time_of_day
        )
        self._housekeeping = Housekeeping(self._runtime)
        self._partition_count = 1
        self._known_partitions: dict[SharePartitionKey, int] = {}

    @property
    def wake_at_ms(self) -> int | None:
        runtime, housekeeping = self._runtime.wake_at_ms, self._housekeeping.wake_at_ms
        if runtime is None or housekeeping is None:
            return runtime if housekeeping is None else housekeeping
        return min(runtime, housekeeping)

    def gauges(self) -> Counter[Gauge]:
        """The shards by state; those that are active are known from events."""
        states = Counter(self._runtime.state(partition) for partition in range(self._partition_count))
        shown = (ShardState.LOADING, ShardState.FAILED)
        return Counter({("num-partitions", (("state", state.value),)): states[state] for state in shown})

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        runtime = self._runtime
        runtime.now_ms = now_ms
        if isinstance(message, Incoming):
            self._serve_request(message)
            return runtime.take_effects()
        if isinstance(message, ImageChanged):
            self._image_changed(message.image, now_ms)
            return runtime.take_effects()
        if isinstance(message, RecordsDeleted):
            return self._housekeeping.records_deleted(message, now_ms)
        if isinstance(message, ShardElected | ShardResigned):
            self._housekeeping.leader_changed(message.partition)
        effects = runtime.handle(message, now_ms)
        if isinstance(message, Tick):
            effects += self._housekeeping.tick(now_ms)
            effects += runtime.take_effects()
        return effects

    def leader_epochs(self, partition: int) -> Mapping[SharePartitionKey, int]:
        """The highest leader epoch of each key in a loaded partition of the state topic; empty if it is not loaded."""
        shard = self._runtime.shard(partition)
        return {} if shard is None else {key: state.leader_epoch_fence for key, state in shard.states.items()}

    def snapshots(self, partition: int) -> list[CoordinatorRecord]:
        """Snapshots of all states in a loaded partition of the state topic; none if it is not loaded."""
        shard, day_ms = self._runtime.shard(partition), self._runtime.day_ms
        return [] if shard is None else [shard.encode(one) for one in whole_states(shard, day_ms)]

    def _new_shard(self, partition: int) -> StateShard:
        design = design_of(self._image.broker_config[PERSISTER_CLASS])
        if design is StateDesign.COMPACTED_TOPIC:
            return CompactedShard(lambda: self._image)
        return StateShard(lambda: self._image, partial(self._transaction_ended, partition))

    def _transaction_ended(self, partition: int, ended: EndedTransaction) -> None:
        """A marker has ended what a transaction had staged. While a shard loads this has happened before, and leaders
        that may have missed it read the state again."""
        runtime, shard = self._runtime, self._runtime.shard(partition)
        if shard is None:
            return
        if runtime.traced:
            runtime.effects += committed_update(ended, shard)
        runtime.start(end_at_leader(ended, shard))
        runtime.start(snapshot_if_due(runtime, partition, ended))

    def _on_load(self, partition: int, shard: StateShard) -> Iterable[Workflow[object]]:
        del shard
        return (delete_state_of_deleted_topics(self._runtime, partition),)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _serve_request(self, message: Incoming) -> None:
        """Answer an empty request at once; else serve each partition at its shard."""
        request: Any = message.request
        rpc = RPCS[type(request)]
        is_empty = not request.group_id or not all(t.partitions or rpc.skips_empty_topics for t in request.topics)
        parts = [(t.topic_id, requested) for t in request.topics for requested in t.partitions]
        if not parts or (is_empty and (self._active or not rpc.inactive_first)):
            self._runtime.effects.append(Respond(message.id, _joined(rpc, ())))
        else:
            self._runtime.start(self._serve(rpc, request.group_id, parts), partial(self._respond, message.id))

    def _respond(self, request_id: int, response: Response) -> None:
        self._runtime.effects.append(Respond(request_id, response))

    def _serve(self, rpc: Rpc, group_id: str, parts: list[tuple[TopicId, Any]]) -> Workflow[Response]:
        """Serve the partitions of a request concurrently. A single partition, as in a leader's write, needs no list of
        workflows."""
        if not self._active:
            unavailable = Errors.COORDINATOR_NOT_AVAILABLE
            named = rpc.response.Partition
            return _joined(rpc, [(t, failed(named, requested.partition, unavailable)) for t, requested in parts])
        if len(parts) == 1:
            topic_id, requested = parts[0]
            key = SharePartitionKey(group_id, topic_id, requested.partition)
            return (yield from self._serve_one(rpc, key, requested, lambda result: _joined(rpc, ((topic_id, result),))))
        results = yield [
            self._serve_one(rpc, SharePartitionKey(group_id, topic_id, requested.partition), requested, _itself)
            for topic_id, requested in parts
        ]
        return _joined(rpc, zip([topic_id for topic_id, _ in parts], results, strict=True))

    def _serve_one(self, rpc: Rpc, key: SharePartitionKey, requested: Any, shape: Callable[[Any], R]) -> Workflow[R]:
        """Serve one partition. `shape` converts the partition's result into the workflow's."""

        def failure(error: Errors) -> R:
            return shape(failed(rpc.response.Partition, key.partition, error))

        runtime = self._runtime
        shard = yield Turn(self._partition_for(key), failure)
        ruling = rpc.compute(key, requested, shard, runtime.day_ms)
        if ruling.records:
            error = yield Append([shard.encode(record) for record in ruling.records], *ruling.producer)
            if error:
                return failure(error)
            if runtime.traced:
                runtime.effects += events_of(ruling.records, type(shard))
        return shape(ruling.response)

    def _partition_for(self, key: SharePartitionKey) -> int:
        """The partition of the state topic that holds the key."""
        partition = self._known_partitions.get(key)
        if partition is None:
            if len(self._known_partitions) >= MAX_KNOWN_PARTITIONS:
                self._known_partitions.clear()
            partition = self._known_partitions[key] = partition_for(str(key), self._partition_count)
        return partition

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def _image_changed(self, image: ClusterImage, now_ms: int) -> None:
        """Delete the state of deleted topics. A shard that is loading does so when it is loaded."""
        gone = self._image.topics_by_id.keys() - image.topics_by_id.keys()
        self._image, self._active = image, True
        self._runtime.write_timeout_ms = image.broker_config["share.coordinator.write.timeout.ms"]
        if (count := state_partition_count(image)) != self._partition_count:
            self._partition_count = count
            self._known_partitions.clear()
        self._housekeeping.image_changed(image, now_ms)
        if gone:
            for partition, _ in self._runtime.active():
                self._runtime.start(delete_state_of_deleted_topics(self._runtime, partition))


def _itself(result: R) -> R:
    return result
