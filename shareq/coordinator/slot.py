"""A shard's place on this broker, and how what stands in its log reaches it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic

from shareq.coordinator.shard import (
    TRANSITIONS,
    Shard,
    ShardEvent,
    ShardState,
    ShardT,
    TransactionalShard,
    UnreadableRecordError,
)
from shareq.coordinator.turn import Append, Turn
from shareq.model.actor import EndMarker, MarkerWritten, RecordsRead
from shareq.model.records import NO_PRODUCER_ID
from shareq.model.workflow import Task, Workflow, Workflows


class ShardTask(Task[Any]):
    """A workflow of a coordinator, with the shard and the turn that it has or had last."""

    __slots__ = ("has_turn", "slot", "turn")

    has_turn: bool
    slot: Slot[Any]
    turn: Turn

    def __init__(self, workflows: Workflows, steps: Workflow[Any], on_result: Callable[[Any], object]) -> None:
        self.workflows = workflows  # as in `Task`, without a second call: each request makes a task
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
        if not slot.queue:  # as `end_turn` does, for the common case that no turn follows
            self.has_turn, self.turn.is_over, slot.holder = False, True, None
            self.turn.task = None  # no circle for the garbage collector
        else:
            self.workflows.end_turn(self)  # type: ignore[attr-defined]    # only a runtime makes such tasks


class Slot(Generic[ShardT]):
    """A shard with its state of life, the read or append that it waits for, the workflow whose turn it is (`holder`),
    and the turns that follow."""

    __slots__ = (
        "appending",
        "epoch",
        "holder",
        "is_draining",
        "partition",
        "queue",
        "record_count",
        "shard",
        "state",
        "waits_for",
    )

    def __init__(self, partition: int, epoch: int, shard: ShardT) -> None:
        self.partition = partition
        self.epoch = epoch
        self.shard = shard
        self.state = ShardState.CLOSED
        self.waits_for = -1
        self.holder: ShardTask | None = None
        self.appending: Append | None = None
        self.queue: deque[Turn] = deque()
        self.is_draining = False
        self.record_count = 0

    def step(self, event: ShardEvent) -> None:
        self.state = TRANSITIONS[self.state, event]

    def replay_chunk(self, message: RecordsRead, now_ms: int) -> bool:
        """Replay a chunk of the log, markers between the records; False where a record cannot be read."""
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
    """Take in one record, of a transaction or not."""
    if producer_id == NO_PRODUCER_ID:
        shard.replay(*record, now_ms)
    else:
        assert isinstance(shard, TransactionalShard), "only what such a shard writes belongs to transactions"
        shard.replay_transactional(*record, producer_id, now_ms)


def replay_marker(shard: Shard, marker: EndMarker | MarkerWritten, now_ms: int) -> None:
    """Take in the end of a producer's transaction."""
    assert isinstance(shard, TransactionalShard), "transactions reach no other shard"
    shard.replay_marker(marker.producer_id, marker.committed, now_ms)
