"""The background jobs of the share coordinator: prune its log, renew cold snapshots, delete the state of deleted
topics.

Pruning and snapshots run in rounds while share groups are enabled; a round begins one interval after the end of the
last. Source: Kafka's ShareCoordinatorService (record pruning, cold partition snapshots) and ShareCoordinatorShard.
"""

from __future__ import annotations

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import BackgroundTurn, Retry, Turn, no_result
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot
from shareq.coordinator.share_state.rules import append_states
from shareq.coordinator.share_state.state import StateChange, StateShard
from shareq.model.actor import DeleteRecordsBefore, Effect, RecordsDeleted
from shareq.model.errors import Errors
from shareq.model.events import StateLogPruned
from shareq.model.ids import TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of
from shareq.model.workflow import Workflow

PRUNE_TIMEOUT_MS = 30000

# ---- workflows -------------------------------------------------------------------------------------------------------


def delete_state_of_deleted_topics(runtime: ShardRuntime[StateShard], partition: int) -> Workflow[None]:
    """Write tombstones for all keys of one shard whose topic was deleted; repeat until the append succeeds."""
    shard = yield BackgroundTurn(partition)
    while True:
        topics = shard.image().topics_by_id
        gone = [record for key in shard.states if key.topic_id not in topics for record in shard.deletion(key)]
        if not (yield from append_states(runtime, shard, gone)):
            return
        shard = yield Retry()


def renew_cold_snapshots(runtime: ShardRuntime[StateShard], partition: int, interval_ms: int) -> Workflow[None]:
    """Write new snapshots of cold keys. A failed append is repeated in the next round."""
    shard = yield Turn(partition, no_result)
    yield from append_states(runtime, shard, renewed_snapshots(shard, interval_ms, runtime.day_ms))


def renewed_snapshots(shard: StateShard, interval_ms: int, now_ms: int) -> list[StateRecord]:
    """A new snapshot, with the former create time, for each key whose snapshot is older than the interval, so that an
    idle key does not hold back pruning. Empty if all keys have been renewed so already: then pruning would gain
    nothing."""
    states = shard.states.items()
    if all(state.create_timestamp != state.write_timestamp for _, state in states):
        return []
    return [
        StateSnapshot(
            key=key,
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            create_timestamp=state.create_timestamp,
            write_timestamp=now_ms,
            state_batches=state.state_batches,
            delivery_complete_count=state.delivery_complete_count,
        )
        for key, state in states
        if now_ms - state.write_timestamp >= interval_ms
    ]


def whole_states(shard: StateShard, now_ms: int) -> list[StateRecord]:
    """A new snapshot of each key: records from which another log begins."""
    return [
        shard.snapshot(
            key, StateChange(state.leader_epoch, state.start_offset, state.delivery_complete_count, ()), now_ms
        )
        for key, state in shard.states.items()
    ]


# ---- rounds ----------------------------------------------------------------------------------------------------------


class Round:
    """The rounds of one job. `due_ms`: when the next round begins; None during a round, which has `open` parts left."""

    __slots__ = ("due_ms", "interval_ms", "open")

    def __init__(self, interval_ms: int, now_ms: int) -> None:
        self.interval_ms = interval_ms
        self.open = 0
        self.due_ms: int | None = now_ms + interval_ms

    def begin(self, parts: int, now_ms: int) -> None:
        """Begin a round of `parts` parts; without parts it is over at once."""
        self.open = parts
        self.due_ms = None if parts else now_ms + self.interval_ms

    def part_done(self, now_ms: int) -> None:
        """One part has succeeded or failed; after the last one the next round is scheduled."""
        self.open -= 1
        if self.open == 0:
            self.due_ms = now_ms + self.interval_ms


class Housekeeping:
    """Both jobs of one coordinator. They run while `share_version` is at least 1; stopping drops their state."""

    def __init__(self, runtime: ShardRuntime[StateShard]) -> None:
        self._runtime = runtime
        self._cold: Round | None = None
        self._prune: Round | None = None
        self._pruning: dict[int, tuple[int, int]] = {}
        self._prune_deadline_ms = 0
        self._pruned: dict[int, int] = {}

    @property
    def wake_at_ms(self) -> int | None:
        """The first time at which a round is due, or the deletions of a pruning round time out."""
        times = [job.due_ms for job in (self._cold, self._prune) if job and job.due_ms is not None]
        if self._pruning:
            times.append(self._prune_deadline_ms)
        return min(times, default=None)

    def image_changed(self, image: ClusterImage, now_ms: int) -> None:
        """Start or stop the jobs with the feature share.version. A compacted topic needs neither job."""
        if image.share_version < 1 or design_of(image.broker_config[PERSISTER_CLASS]) is StateDesign.COMPACTED_TOPIC:
            self._cold = self._prune = None
            self._pruning.clear()
        elif self._cold is None:
            config = image.broker_config
            self._cold = Round(config["share.coordinator.cold.partition.snapshot.interval.ms"], now_ms)
            self._prune = Round(config["share.coordinator.state.topic.prune.interval.ms"], now_ms)

    def leader_changed(self, partition: int) -> None:
        """Forget the offset of the last pruning: another leader may have changed the log."""
        self._pruned.pop(partition, None)

    def tick(self, now_ms: int) -> list[Effect]:
        """Begin the rounds that are due, and fail deletions without answer after PRUNE_TIMEOUT_MS."""
        if self._pruning and self._prune_deadline_ms <= now_ms:
            for id_ in list(self._pruning):
                self.records_deleted(RecordsDeleted(id_, Errors.REQUEST_TIMED_OUT), now_ms)
        effects: list[Effect] = []
        if self._prune and self._prune.due_ms is not None and self._prune.due_ms <= now_ms:
            effects += self._begin_pruning(self._prune, now_ms)
        if self._cold and self._cold.due_ms is not None and self._cold.due_ms <= now_ms:
            self._begin_renewing(self._cold, now_ms)
        return effects

    # ---- pruning -----------------------------------------------------------------------------------------------------

    def _begin_pruning(self, job: Round, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for partition, shard in self._runtime.active():
            offset = shard.redundant_before
            if offset > 0 and offset != self._pruned.get(partition):
                id_ = self._runtime.next_id()
                self._pruning[id_] = partition, offset
                effects.append(DeleteRecordsBefore(id_, TopicPartition(self._runtime.topic, partition), offset))
        self._prune_deadline_ms = now_ms + PRUNE_TIMEOUT_MS
        job.begin(len(effects), now_ms)
        return effects

    def records_deleted(self, message: RecordsDeleted, now_ms: int) -> list[Effect]:
        """One partition is pruned; if that failed, the next round repeats it."""
        partition, offset = self._pruning.pop(message.id, (-1, -1))
        if partition == -1 or self._prune is None:
            return []
        self._prune.part_done(now_ms)
        if message.error or self._runtime.shard(partition) is None:
            return []
        self._pruned[partition] = offset
        return [StateLogPruned(partition, offset)] if self._runtime.traced else []

    # ---- cold snapshots ----------------------------------------------------------------------------------------------

    def _begin_renewing(self, job: Round, now_ms: int) -> None:
        runtime = self._runtime

        def over(result: None) -> None:
            del result
            job.part_done(runtime.now_ms)

        partitions = [partition for partition, _ in runtime.active()]
        job.begin(len(partitions), now_ms)
        for partition in partitions:
            runtime.start(renew_cold_snapshots(runtime, partition, job.interval_ms), over)
