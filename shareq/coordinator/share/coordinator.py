"""The share coordinator of one broker: it answers the share-state requests for the partitions of the state topic that
the broker leads.

Source: Kafka's ShareCoordinatorService; KIP-932, "Share coordinator".
"""

from __future__ import annotations

from functools import partial
from typing import Any

from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.shard import Operation
from shareq.coordinator.share.housekeeping import Housekeeping, forgetting
from shareq.coordinator.share.lookup import state_partition_count
from shareq.coordinator.share.rules import RPCS, Rpc, failed
from shareq.coordinator.share.state import StateShard
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
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId, partition_for
from shareq.model.image import ClusterImage

MAX_KNOWN_PARTITIONS = 100_000
"""So many keys are remembered with their partition of the state topic, which spares hashing them again."""


class JointAnswer:
    """The answer to one request, which waits for all partitions named in it. A partition that is named twice is done
    twice, and the later result is told."""

    __slots__ = ("_id", "_open", "_results", "_rpc")

    def __init__(self, request_id: int, rpc: Rpc, count: int) -> None:
        self._id = request_id
        self._rpc = rpc
        self._open = count
        self._results: dict[TopicId, dict[int, Any]] = {}

    def put(self, topic_id: TopicId, result: Any, now_ms: int) -> tuple[Respond] | tuple[()]:
        """Take one partition's result; the last one completes the answer."""
        del now_ms
        self._results.setdefault(topic_id, {})[result.partition] = result
        self._open -= 1
        return () if self._open else (self.respond(),)

    def respond(self) -> Respond:
        """The answer as it stands."""
        response = self._rpc.response
        results = tuple(
            [
                response.Topic(topic_id=topic_id, partitions=tuple(partitions.values()))
                for topic_id, partitions in self._results.items()
            ]
        )
        return Respond(self._id, response(results=results))


class ShareCoordinator:
    """The actor. Until it knows the cluster's metadata it is inactive and answers COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, broker_id: int, *, traced: bool) -> None:
        self.broker_id = broker_id
        self._image = ClusterImage()
        self._active = False
        self._runtime = ShardRuntime(
            SHARE_STATE_TOPIC,
            lambda _: StateShard(lambda: self._image, lambda: (forgetting(),), traced=traced),
            traced=traced,
        )
        self._housekeeping = Housekeeping(self._runtime, traced=traced)
        self._partition_count = 1
        self._known_partitions: dict[SharePartitionKey, int] = {}

    @property
    def wake_at_ms(self) -> int | None:
        runtime, housekeeping = self._runtime.wake_at_ms, self._housekeeping.wake_at_ms
        if runtime is None or housekeeping is None:
            return runtime if housekeeping is None else housekeeping
        return min(runtime, housekeeping)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        if isinstance(message, Incoming):
            return self._requested(message, now_ms)
        if isinstance(message, ImageChanged):
            return self._image_changed(message.image, now_ms)
        if isinstance(message, RecordsDeleted):
            return self._housekeeping.records_deleted(message, now_ms)
        if isinstance(message, ShardElected | ShardResigned):
            self._housekeeping.leader_changed(message.partition)
        effects = self._runtime.handle(message, now_ms)
        if isinstance(message, Tick):
            effects += self._housekeeping.tick(now_ms)
        return effects

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _requested(self, message: Incoming, now_ms: int) -> list[Effect]:
        """Answer what can be answered without looking at a shard, else run one operation for each partition."""
        request: Any = message.request
        rpc = RPCS[type(request)]
        asks_nothing = not request.group_id or not all(t.partitions or rpc.skips_empty_topics for t in request.topics)
        parts = [(t.topic_id, wanted) for t in request.topics for wanted in t.partitions]
        joint = JointAnswer(message.id, rpc, len(parts))
        if not parts or (asks_nothing and (self._active or not rpc.inactive_first)):
            return [joint.respond()]
        effects: list[Effect] = []
        for topic_id, wanted in parts:
            key = SharePartitionKey(request.group_id, topic_id, wanted.partition)
            failure = partial(failed, rpc.response.Partition, wanted.partition)
            answer = partial(joint.put, topic_id)
            if self._active:
                operation: Operation[StateShard, Any] = Operation(partial(rpc.compute, key, wanted), failure, answer)
                effects += self._runtime.schedule(self._partition_for(key), operation, now_ms)
            else:
                effects += answer(failure(Errors.COORDINATOR_NOT_AVAILABLE), now_ms)
        return effects

    def _partition_for(self, key: SharePartitionKey) -> int:
        """The partition of the state topic that holds the key."""
        partition = self._known_partitions.get(key)
        if partition is None:
            if len(self._known_partitions) >= MAX_KNOWN_PARTITIONS:
                self._known_partitions.clear()
            partition = self._known_partitions[key] = partition_for(str(key), self._partition_count)
        return partition

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def _image_changed(self, image: ClusterImage, now_ms: int) -> list[Effect]:
        """Forget the state of deleted topics. A shard that is still loading does so when it is loaded."""
        gone = self._image.topics_by_id.keys() - image.topics_by_id.keys()
        self._image, self._active = image, True
        self._runtime.write_timeout_ms = image.broker_config["share.coordinator.write.timeout.ms"]
        if (count := state_partition_count(image)) != self._partition_count:
            self._partition_count = count
            self._known_partitions.clear()
        self._housekeeping.image_changed(image, now_ms)
        effects: list[Effect] = []
        if gone:
            for partition, _ in self._runtime.active():
                effects += self._runtime.schedule(partition, forgetting(), now_ms)
        return effects
