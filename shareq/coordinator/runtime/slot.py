"""A shard with its queue of turns, and the replay of its log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic

from shareq.coordinator.runtime.shard import (
    TRANSITIONS,
    Shard,
    ShardEvent,
    ShardState,
    ShardT,
    TransactionalShard,
    UnreadableRecordError,
)
from shareq.coordinator.runtime.turn import Append, Turn
from shareq.model.actor import EndMarker, Failed, MarkerWritten, RecordsRead
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.records import NO_PRODUCER_ID
from shareq.model.workflow import Task, Workflow, Workflows


class ShardTask(Task[Any]):
    """A workflow of a coordinator. `slot` and `turn`: those of its present turn, or of the last one."""

    __slots__ = ("has_turn", "slot", "turn")

    has_turn: bool
    slot: Slot[Any]
    turn: Turn

    def __init__(self, workflows: Workflows, steps: Workflow[Any], on_result: Callable[[Any], object]) -> None:
        self.workflows = workflows  # the lines of `Task.__init__`: each request creates a task, and a call costs time
        self.steps = steps
        self.on_result = on_result
        self.answered = self.done = self.has_turn = False
        self.joint = None

    def finish(self, result: Any) -> None:
        self.done = True
        if not self.answered:
            self.answered = True
            self.on_result(result)
        if not self.has_turn:
            return
        slot = self.slot
        if not slot.queue:  # `end_turn` inlined for the common case that no turn follows
            self.has_turn, self.turn.is_over, slot.holder = False, True, None
            self.turn.task = None  # breaks the reference cycle of task and turn
        else:
            self.workflows.end_turn(self)  # type: ignore[attr-defined]    # only a ShardRuntime creates such tasks

    def fail(self, failure: Exception) -> None:
        """A defect of one workflow: it is reported, its request fails, and the shard goes on with the next turn.

        Before its first turn a workflow has no shard and no failure to answer with: the exception is raised.
        """
        self.done = True
        turn: Turn | None = getattr(self, "turn", None)
        if turn is None:
            raise failure
        runtime: Any = self.workflows  # only a ShardRuntime creates such tasks
        runtime.effects.append(Failed(failure))
        self.answer(turn.failure(Errors.UNKNOWN_SERVER_ERROR))
        if self.has_turn:
            self.slot.appending = None
            runtime.end_turn(self)


class Slot(Generic[ShardT]):
    """A shard with its lifecycle state, the workflow whose turn it is (`holder`) and the queued turns.

    `at`: its log. `waits_for`: the id of the read or append under way. `epoch`: the leader epoch. `late_markers`: those
    that are to be replayed after the append under way, which precedes them in the log.
    """

    __slots__ = (
        "appending",
        "at",
        "epoch",
        "holder",
        "is_draining",
        "late_markers",
        "partition",
        "queue",
        "record_count",
        "shard",
        "state",
        "waits_for",
    )

    def __init__(self, partition: Any, at: TopicPartition, epoch: int, shard: ShardT) -> None:
        self.partition = partition
        self.at = at
        self.epoch = epoch
        self.shard = shard
        self.state = ShardState.CLOSED
        self.waits_for = -1
        self.holder: ShardTask | None = None
        self.appending: Append | None = None
        self.queue: deque[Turn] = deque()
        self.is_draining = False
        self.late_markers: list[MarkerWritten] = []
        self.record_count = 0

    def step(self, event: ShardEvent) -> None:
        self.state = TRANSITIONS[self.state, event]

    def marker_written(self, marker: MarkerWritten, now_ms: int) -> None:
        """Replay a marker, after the append under way: its result may be late, and its records precede the marker in
        the log. They may be of the same transaction, or a snapshot without it."""
        if self.appending is not None:
            self.late_markers.append(marker)
        else:
            replay_marker(self.shard, marker, now_ms)

    def replay_late_markers(self, now_ms: int) -> None:
        """The append under way has ended."""
        markers, self.late_markers = self.late_markers, []
        for marker in markers:
            replay_marker(self.shard, marker, now_ms)

    def replay_chunk(self, message: RecordsRead, now_ms: int) -> bool:
        """Replay a chunk of the log, records and markers in the order of offsets. False if a record is invalid."""
        shard, producer_ids = self.shard, message.producer_ids
        markers = deque(message.markers)
        try:
            for record in message.records:
                offset = record[0]
                while markers and markers[0].offset < offset:
                    replay_marker(shard, markers.popleft(), now_ms)
                replay(shard, record, producer_ids.get(offset, NO_PRODUCER_ID), now_ms)
            for marker in markers:
                replay_marker(shard, marker, now_ms)
        except UnreadableRecordError:
            return False
        self.record_count += len(message.records)
        return True


def replay(shard: Shard, record: tuple[int, bytes, bytes | None], producer_id: int, now_ms: int) -> None:
    """Replay one record; `producer_id` is NO_PRODUCER_ID outside of transactions."""
    if producer_id == NO_PRODUCER_ID:
        shard.replay(*record, now_ms)
    else:
        assert isinstance(shard, TransactionalShard), "only such shards append records of transactions"
        shard.replay_transactional(*record, producer_id, now_ms)


def replay_marker(shard: Shard, marker: EndMarker | MarkerWritten, now_ms: int) -> None:
    """Replay the marker of a producer's transaction."""
    assert isinstance(shard, TransactionalShard), "only such shards append records of transactions"
    shard.replay_marker(marker.producer_id, marker.committed, now_ms)
