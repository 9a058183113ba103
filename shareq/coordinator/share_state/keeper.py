"""The keeper of one broker: serves the share-state requests from control records, in the logs that the broker leads.

It takes the place of the share coordinator. A shard is one topic-partition with the states of all its groups; it is
loaded when it is first asked for, and dropped with the leadership. Rules: BEHAVIOUR.md, "Control records".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.shard import ShardState
from shareq.coordinator.runtime.turn import BackgroundTurn, Look
from shareq.coordinator.share_state.control_shard import ControlShard
from shareq.coordinator.share_state.coordinator import ShareCoordinator
from shareq.coordinator.share_state.rules import Rpc, append_states, failed
from shareq.coordinator.share_state.state import StateShard
from shareq.model.actor import Effect, Message
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicId, TopicIdPartition, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.log_looks import LogSeen
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.workflow import Promise, Workflow

R = TypeVar("R")

NOTHING_SEEN = LogSeen(0)


class ShareStateKeeper(ShareCoordinator):
    """The actor."""

    def __init__(self, broker_id: int, *, traced: bool, time_of_day: TimeOfDay = same_time) -> None:
        super().__init__(broker_id, traced=traced, time_of_day=time_of_day)
        self._led: dict[TopicPartition, tuple[TopicId, int]] = {}
        self._seen: dict[TopicPartition, LogSeen] = {}
        self._loads: dict[TopicPartition, list[Promise[None]]] = {}

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        effects = super().handle(message, now_ms)
        for at in [at for at in self._loads if self._runtime.state(at) is not ShardState.LOADING]:
            for load in self._loads.pop(at):
                load.keep(None)
        return effects + self._runtime.take_effects()

    # ---- shards ------------------------------------------------------------------------------------------------------

    def _new_shard(self, partition: Any) -> StateShard:
        topic_id, leader_epoch = self._led[partition]
        at = TopicIdPartition(topic_id, partition.partition)
        return ControlShard(lambda: self._image, at, leader_epoch, lambda: self._seen.get(partition, NOTHING_SEEN))

    def _on_load(self, partition: Any, shard: StateShard) -> Iterable[Workflow[object]]:
        del shard
        return (self._restore_checkpoints(partition),)

    def _restore_checkpoints(self, at: TopicPartition) -> Workflow[None]:
        """Append the checkpoints again that a cut of the log has removed: a copy of the log without the index needs
        them."""
        self._seen[at] = yield Look(at)
        shard = yield BackgroundTurn(at)
        assert isinstance(shard, ControlShard)
        yield from append_states(self._runtime, shard, shard.checkpoints_anew(self._runtime.day_ms))

    def _image_changed(self, image: ClusterImage, now_ms: int) -> None:
        """Drop the shards that this broker no longer leads at the same epoch."""
        del now_ms
        self._image, self._active = image, True
        self._runtime.write_timeout_ms = image.broker_config["share.coordinator.write.timeout.ms"]
        for at, (topic_id, leader_epoch) in list(self._led.items()):
            found = image.partition(topic_id, at.partition)
            if found is None or (found.leader, found.leader_epoch) != (self.broker_id, leader_epoch):
                del self._led[at]
                self._seen.pop(at, None)
                self._runtime.resign(at)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def _partition_for(self, key: SharePartitionKey) -> Any:
        return TopicPartition(self._image.topics_by_id[key.topic_id].name, key.partition)

    def _serve_one(self, rpc: Rpc, key: SharePartitionKey, requested: Any, shape: Callable[[Any], R]) -> Workflow[R]:
        """Serve one partition when its shard is loaded, with the log as it is now."""
        found = self._image.partition(key.topic_id, key.partition)
        if found is None:
            error = Errors.INVALID_REQUEST if key.partition < 0 else Errors.UNKNOWN_TOPIC_OR_PARTITION
            return shape(failed(rpc.response.Partition, key.partition, error))
        if found.leader != self.broker_id:
            return shape(failed(rpc.response.Partition, key.partition, Errors.NOT_COORDINATOR))
        at = self._partition_for(key)
        if at not in self._led:
            self._led[at] = key.topic_id, found.leader_epoch
            self._runtime.elect(at, found.leader_epoch)
        if self._runtime.state(at) is ShardState.LOADING:
            load: Promise[None] = Promise()
            self._loads.setdefault(at, []).append(load)
            yield load
        seen = yield Look(at, _first_offset(self._runtime, at))
        if at in self._led:
            self._seen[at] = seen
        if key.topic_id not in self._image.topics_by_id:
            return shape(failed(rpc.response.Partition, key.partition, Errors.UNKNOWN_TOPIC_OR_PARTITION))
        return (yield from super()._serve_one(rpc, key, requested, shape))


def _first_offset(runtime: ShardRuntime[StateShard], at: TopicPartition) -> int:
    """The least start offset of the groups, from which on hidden offsets matter."""
    shard = runtime.shard(at)
    starts = [state.start_offset for state in shard.states.values()] if shard else []
    return max(0, min(starts, default=0))
