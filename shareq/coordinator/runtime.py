"""What both coordinators stand on: shards, one for each partition of the coordinator's topic that this broker leads.

A shard is loaded from its log, then it runs operations one at a time and in order. An operation is *prepared, then
settled*: it computes records and a response from committed state without changing it; the records go out as one atomic
append; once they are committed they are replayed into the state and the response is released. When the append fails,
nothing has changed. Kafka changes the state at once and rolls it back when the append fails; what can be observed is
the same, because there, too, nothing is answered before everything written earlier is committed.

An operation of a client has a deadline: when that passes in the queue, the operation is answered and never begins. A
background operation has none, and is repeated until it has succeeded or the shard is resigned.
Source: Kafka's CoordinatorRuntime; its CoordinatorTimer for the retries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from shareq.coordinator.shard import (
    REFUSAL,
    Operation,
    Outcome,
    ShardEvent,
    ShardState,
    ShardT,
    coordinator_error,
)
from shareq.coordinator.slot import Slot, replay, replay_marker
from shareq.model.actor import (
    Appended,
    AppendRecords,
    Effect,
    MarkerWritten,
    Message,
    ReadRecords,
    RecordsRead,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.events import CoordinatorLoaded
from shareq.model.ids import TopicPartition

R = TypeVar("R")


RETRY_MS = 500
"""How long after a failure a background operation is repeated. Source: Kafka's CoordinatorRuntime."""


class ShardRuntime(Generic[ShardT]):
    """The shards of one topic on this broker.

    The coordinator hands every message on that is not its own (see `handle`), wakes the runtime at `wake_at_ms`, and
    may set `write_timeout_ms` at any time.
    """

    def __init__(
        self, topic: str, make_shard: Callable[[int], ShardT], *, traced: bool, retry_ms: int = RETRY_MS
    ) -> None:
        self.topic = topic
        self.write_timeout_ms = 5000
        self._retry_ms = retry_ms
        self._make_shard = make_shard
        self._traced = traced
        self._slots: dict[int, Slot[ShardT]] = {}
        self._waiting: dict[int, Slot[ShardT]] = {}
        self._deadlines: deque[Operation[ShardT, Any]] = deque()
        self._repeats: deque[tuple[int, Slot[ShardT], Operation[ShardT, Any]]] = deque()
        self._last_id = 0

    # ---- questions ---------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        """When the oldest unanswered operation times out, or a background operation is due to be repeated."""
        deadline_ms = self._next_deadline_ms()
        if not self._repeats:
            return deadline_ms
        repeat_ms = self._repeats[0][0]
        return repeat_ms if deadline_ms is None else min(deadline_ms, repeat_ms)

    def _next_deadline_ms(self) -> int | None:
        deadlines = self._deadlines
        while deadlines and deadlines[0].answered:
            deadlines.popleft()
        return deadlines[0].deadline_ms if deadlines else None

    def next_id(self) -> int:
        """An id for an effect of the coordinator; unique among all ids of its effects."""
        self._last_id += 1
        return self._last_id

    def state(self, partition: int) -> ShardState:
        """Where the shard stands; CLOSED where this broker does not lead it."""
        slot = self._slots.get(partition)
        return slot.state if slot else ShardState.CLOSED

    def refusal(self, partition: int) -> Errors:
        """Why the shard runs no operations now: 14 while loading, 16 while closed or failed; NONE where it does."""
        return REFUSAL[self.state(partition)]

    def shard(self, partition: int) -> ShardT | None:
        """The active shard's committed state, to be looked at only."""
        slot = self._slots.get(partition)
        return slot.shard if slot and slot.state is ShardState.ACTIVE else None

    def active(self) -> Iterator[tuple[int, ShardT]]:
        """All active shards with their partitions."""
        return ((p, slot.shard) for p, slot in list(self._slots.items()) if slot.state is ShardState.ACTIVE)

    # ---- operations --------------------------------------------------------------------------------------------------

    def schedule(self, partition: int, operation: Operation[ShardT, Any], now_ms: int) -> list[Effect]:
        """Run the operation when those before it are settled, or refuse it at once."""
        effects: list[Effect] = []
        slot = self._slots.get(partition)
        if slot is None or slot.state is not ShardState.ACTIVE:
            self._answer(operation, operation.failure(self.refusal(partition)), now_ms, effects)
            return effects
        operation.deadline_ms = now_ms + self.write_timeout_ms
        slot.queue.append(operation)
        self._run(slot, now_ms, effects)
        if not (operation.answered or operation.is_background):
            self._deadlines.append(operation)
        return effects

    def _run(self, slot: Slot[ShardT], now_ms: int, effects: list[Effect]) -> None:
        """Run queued operations until one has to wait for its append."""
        queue = slot.queue
        while queue and slot.appending is None:
            operation = queue.popleft()
            if operation.answered:  # it timed out before it began, so it never begins
                continue
            outcome = operation.compute(slot.shard, now_ms)
            if outcome.records:
                slot.appending = operation, outcome
                append_id = self._wait(slot)
                at = TopicPartition(self.topic, slot.partition)
                producer = outcome.producer_id, outcome.producer_epoch
                effects.append(AppendRecords(append_id, at, tuple(outcome.records), *producer))
            else:
                self._settle(slot, operation, outcome, now_ms, effects)

    def _settle(
        self,
        slot: Slot[ShardT],
        operation: Operation[ShardT, R],
        outcome: Outcome[R],
        now_ms: int,
        effects: list[Effect],
    ) -> None:
        effects.extend(outcome.after(now_ms))
        if operation.is_background and outcome.response:
            self._repeat(slot, operation, now_ms)
        else:
            self._answer(operation, outcome.response, now_ms, effects)

    def _fail(
        self, slot: Slot[ShardT], operation: Operation[ShardT, Any], error: Errors, now_ms: int, effects: list[Effect]
    ) -> None:
        """The operation's records could not be appended."""
        if operation.is_background:
            self._repeat(slot, operation, now_ms)
        else:
            self._answer(operation, operation.failure(coordinator_error(error)), now_ms, effects)

    def _repeat(self, slot: Slot[ShardT], operation: Operation[ShardT, Any], now_ms: int) -> None:
        self._repeats.append((now_ms + self._retry_ms, slot, operation))

    def _answer(self, operation: Operation[ShardT, R], response: R, now_ms: int, effects: list[Effect]) -> None:
        if not operation.answered:
            operation.answered = True
            effects.extend(operation.answer(response, now_ms))

    def _wait(self, slot: Slot[ShardT]) -> int:
        slot.waits_for = self.next_id()
        self._waiting[slot.waits_for] = slot
        return slot.waits_for

    # ---- what the broker hands back ----------------------------------------------------------------------------------

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Take in what concerns shards; all other messages are none of the runtime's business."""
        if isinstance(message, Appended):
            return self._appended(message, now_ms)
        if isinstance(message, Tick):
            return self._expire(now_ms) + self._run_repeats(now_ms)
        if isinstance(message, RecordsRead):
            return self._records_read(message, now_ms)
        if isinstance(message, ShardElected):
            return self._elected(message, now_ms)
        if isinstance(message, ShardResigned):
            return self._resigned(message.partition, now_ms)
        if isinstance(message, MarkerWritten):
            self._marker_written(message, now_ms)
        return []

    def _appended(self, message: Appended, now_ms: int) -> list[Effect]:
        """An append is committed, or failed; what an earlier term of office had asked for is ignored."""
        effects: list[Effect] = []
        slot = self._waiting.pop(message.id, None)
        if slot is None:
            return effects
        assert slot.appending is not None
        operation, outcome = slot.appending
        slot.appending = None
        if message.error:
            self._fail(slot, operation, message.error, now_ms, effects)
        else:
            for offset, (key, value) in enumerate(outcome.records, message.base_offset):
                replay(slot.shard, (offset, key, value), outcome.producer_id, now_ms)
            self._settle(slot, operation, outcome, now_ms, effects)
        self._run(slot, now_ms, effects)
        return effects

    def _marker_written(self, message: MarkerWritten, now_ms: int) -> None:
        """A shard that is still loading meets the marker in its log."""
        shard = self.shard(message.partition)
        if shard is not None:
            replay_marker(shard, message, now_ms)

    def _expire(self, now_ms: int) -> list[Effect]:
        """Answer COORDINATOR_NOT_AVAILABLE to operations past their time. One under way is still settled later."""
        effects: list[Effect] = []
        while (deadline_ms := self._next_deadline_ms()) is not None and deadline_ms <= now_ms:
            operation = self._deadlines.popleft()
            self._answer(operation, operation.failure(Errors.COORDINATOR_NOT_AVAILABLE), now_ms, effects)
        return effects

    def _run_repeats(self, now_ms: int) -> list[Effect]:
        """Queue the background operations that are due again."""
        effects: list[Effect] = []
        while self._repeats and self._repeats[0][0] <= now_ms:
            _, slot, operation = self._repeats.popleft()
            slot.queue.append(operation)
            self._run(slot, now_ms, effects)
        return effects

    # ---- leadership and loading --------------------------------------------------------------------------------------

    def _elected(self, message: ShardElected, now_ms: int) -> list[Effect]:
        """This broker leads the partition now: forget what was, load the log from its start."""
        partition, leader_epoch = message
        former = self._slots.get(partition)
        if former and former.epoch >= leader_epoch:
            return []
        effects = self._resigned(partition, now_ms)
        slot = Slot(partition, leader_epoch, self._make_shard(partition))
        slot.step(ShardEvent.ELECTED)
        self._slots[partition] = slot
        effects.append(ReadRecords(self._wait(slot), TopicPartition(self.topic, partition), 0))
        return effects

    def _resigned(self, partition: int, now_ms: int) -> list[Effect]:
        """This broker leads the partition no more: its operations are answered so, background operations included."""
        effects: list[Effect] = []
        slot = self._slots.pop(partition, None)
        if slot is None:
            return effects
        slot.step(ShardEvent.RESIGNED)
        self._waiting.pop(slot.waits_for, None)
        pending = [slot.appending[0]] if slot.appending else []
        repeated = [operation for _, its_slot, operation in self._repeats if its_slot is slot]
        self._repeats = deque(entry for entry in self._repeats if entry[1] is not slot)
        for operation in (*pending, *slot.queue, *repeated):
            self._answer(operation, operation.failure(Errors.NOT_COORDINATOR), now_ms, effects)
        return effects

    def _records_read(self, message: RecordsRead, now_ms: int) -> list[Effect]:
        """Replay a chunk of the log and ask for the next one, until the shard is active."""
        slot = self._waiting.pop(message.id, None)
        if slot is None:
            return []
        if message.error or not slot.replay_chunk(message, now_ms):
            slot.step(ShardEvent.LOAD_FAILED)
            return []
        if not message.done:
            at = TopicPartition(self.topic, slot.partition)
            return [ReadRecords(self._wait(slot), at, message.next_offset)]
        slot.step(ShardEvent.LOADED)
        effects: list[Effect] = []
        if self._traced:
            effects.append(CoordinatorLoaded(self.topic, slot.partition, slot.record_count))
        for operation in slot.shard.loaded(now_ms):
            effects += self.schedule(slot.partition, operation, now_ms)
        return effects
