"""The runtime of the coordinators: one shard for each partition of the coordinator's topic that this broker leads, and
workflows that take turns at the shards.

A shard is loaded from its log. Then workflows get it one at a time, in the order of their requests:

    shard = yield Turn(partition, failure)    # the committed state, read-only
    error = yield Append(records)             # appends all records or none

The records of an append are replayed into the state when they are committed; then the workflow resumes. The turn ends
when the workflow waits for another step than an append, or ends. If the append fails, the state is unchanged, and the
result of the step is the error. Kafka changes the state at once and rolls it back if the append fails; clients observe
the same, because Kafka, too, answers a request only after all earlier writes are committed.

A turn has a deadline. If it passes in the queue, `failure(error)` is the result of the workflow; if it passes in the
append, that result is reported at once, and the workflow resumes when the append ends. A `BackgroundTurn` has none;
`Retry` repeats it, until the workflow succeeds or the shard is resigned. Source: Kafka's CoordinatorRuntime and Timer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Generic

from shareq.coordinator.runtime.shard import REFUSAL, ShardEvent, ShardState, ShardT, coordinator_error
from shareq.coordinator.runtime.slot import ShardTask, Slot, replay
from shareq.coordinator.runtime.turn import NO_PARTITION, Append, BackgroundTurn, Look, Retry, Turn
from shareq.model.actor import (
    Answer,
    Appended,
    AppendRecords,
    Call,
    Effect,
    MarkerWritten,
    Message,
    Persist,
    ReadRecords,
    RecordsRead,
    Respond,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.events import CoordinatorLoaded
from shareq.model.ids import TopicPartition
from shareq.model.log_looks import LogSeen, LookAtLog
from shareq.model.messages.base import Response
from shareq.model.time_of_day import TimeOfDay, same_time
from shareq.model.workflow import (
    LATER,
    Pause,
    Pauses,
    Reply,
    Send,
    SendToPersister,
    Waiter,
    Workflow,
    Workflows,
)

RETRY_MS = 500
"""The backoff before a background turn is taken again after a failure. Source: Kafka's CoordinatorRuntime."""


class ShardRuntime(Workflows, Generic[ShardT]):
    """The shards of one topic on this broker, and the workflows of their coordinator.

    The coordinator passes to `handle` every message that it does not handle itself, runs requests with `serve`, sends a
    Tick at `wake_at_ms`, and may set `write_timeout_ms` at any time. In workflows, `now_ms` is the time of the message
    that is being handled, and `effects` collects their events.
    `on_load(partition, shard)` returns the workflows to run first after a shard is loaded.
    """

    task_type = ShardTask

    def __init__(
        self,
        topic: str,
        make_shard: Callable[[int], ShardT],
        on_load: Callable[[int, ShardT], Iterable[Workflow[object]]] = lambda partition, shard: (),  # noqa: ARG005
        *,
        traced: bool,
        retry_ms: int = RETRY_MS,
        time_of_day: TimeOfDay = same_time,
    ) -> None:
        super().__init__(
            {
                Append: self._begin_append,
                Retry: self._begin_retry,
                Send: self._asking(lambda call_id, step: Call(call_id, step.node, step.request)),
                SendToPersister: self._asking(lambda call_id, step: Persist(call_id, step.request)),
                Look: self._asking(lambda call_id, step: LookAtLog(call_id, step.at, step.first)),
                Pause: self._begin_pause,
            }
        )
        self.topic = topic
        self.now_ms = 0
        self._time_of_day = time_of_day
        self.effects: list[Effect] = []
        self.write_timeout_ms = 5000
        self.traced = traced
        self._retry_ms = retry_ms
        self._make_shard = make_shard
        self._on_load = on_load
        self._slots: dict[Any, Slot[ShardT]] = {}
        self._waiting: dict[int, Slot[ShardT]] = {}
        self._calls: dict[int, Waiter] = {}
        self._pauses = Pauses()
        self._deadlines: list[tuple[int, int, Turn]] = []
        self._repeats: deque[tuple[int, Turn]] = deque()
        self._last_id = 0

    # ---- properties --------------------------------------------------------------------------------------------------

    @property
    def day_ms(self) -> int:
        """The time of day: for times in records, and what is compared with them, as another process may go on."""
        return self._time_of_day(self.now_ms)

    @property
    def wake_at_ms(self) -> int | None:
        """The first time at which a turn times out, a background turn is repeated, or a pause ends."""
        wake_ms = self._next_deadline_ms()
        if self._repeats and (wake_ms is None or self._repeats[0][0] < wake_ms):
            wake_ms = self._repeats[0][0]
        pause_ms = self._pauses.wake_at_ms
        return pause_ms if wake_ms is None or (pause_ms is not None and pause_ms < wake_ms) else wake_ms

    def _next_deadline_ms(self) -> int | None:
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].is_over:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def next_id(self) -> int:
        """A new id for an effect; unique among all effects of the coordinator."""
        self._last_id += 1
        return self._last_id

    def state(self, partition: Any) -> ShardState:
        """The state of the shard; CLOSED if this broker does not lead it."""
        slot = self._slots.get(partition)
        return slot.state if slot else ShardState.CLOSED

    def refusal(self, partition: Any) -> Errors:
        """The error of requests to the shard: COORDINATOR_LOAD_IN_PROGRESS while loading, COORDINATOR_NOT_AVAILABLE
        without a topic, NOT_COORDINATOR if closed or failed; NONE if active."""
        return Errors.COORDINATOR_NOT_AVAILABLE if partition == NO_PARTITION else REFUSAL[self.state(partition)]

    def shard(self, partition: Any) -> ShardT | None:
        """The committed state of the shard, read-only; None if the shard is not active."""
        slot = self._slots.get(partition)
        return slot.shard if slot and slot.state is ShardState.ACTIVE else None

    def active(self) -> Iterator[tuple[int, ShardT]]:
        """All active shards with their partitions."""
        return ((p, slot.shard) for p, slot in list(self._slots.items()) if slot.state is ShardState.ACTIVE)

    def take_effects(self) -> list[Effect]:
        """The effects since the last call."""
        effects, self.effects = self.effects, []
        return effects

    # ---- requests ----------------------------------------------------------------------------------------------------

    def serve(self, request_id: int, steps: Workflow[Response], now_ms: int) -> list[Effect]:
        """Run the workflow of a request, and answer the request with its result."""
        self.now_ms = now_ms
        self.start(steps, lambda response: self.effects.append(Respond(request_id, response)))
        return self.take_effects()

    # ---- turns -------------------------------------------------------------------------------------------------------

    def begin(self, step: Any, waiter: Any) -> Any:
        """Begin a step. Any step but an append ends the workflow's turn."""
        kind = type(step)
        if kind is Turn or kind is BackgroundTurn:
            if waiter.has_turn:
                self.end_turn(waiter)
            return self._begin_turn(step, waiter)
        result = self._perform[kind](step, waiter)
        if kind is not Append and type(waiter) is ShardTask and waiter.has_turn:
            self.end_turn(waiter)
        return result

    def _begin_turn(self, turn: Turn, task: ShardTask) -> Any:
        """Return the shard if it is free, else queue the turn. If the shard is not active, end the workflow."""
        slot = self._slots.get(turn.partition)
        if slot is None or slot.state is not ShardState.ACTIVE:
            task.end(turn.failure(self.refusal(turn.partition)))
            return LATER
        task.turn, task.slot = turn, slot
        turn.task, turn.deadline_ms = task, self.now_ms + (turn.timeout_ms or self.write_timeout_ms)
        if slot.holder is None and not slot.queue:
            slot.holder = task
            task.has_turn = True
            return slot.shard
        slot.queue.append(turn)
        self._watch(turn)
        return LATER

    def _watch(self, turn: Turn) -> None:
        if not (turn.in_background or turn.is_watched):
            turn.is_watched = True
            heappush(self._deadlines, (turn.deadline_ms, self.next_id(), turn))

    def end_turn(self, task: ShardTask) -> None:
        """End the task's turn, and give the shard to the next turns in the queue."""
        task.has_turn = False
        task.turn.is_over = True
        slot = task.slot
        slot.holder = None
        if slot.queue and not slot.is_draining:
            self._drain(slot)

    def _drain(self, slot: Slot[ShardT]) -> None:
        """Give the shard to queued turns until one waits for its append."""
        queue = slot.queue
        slot.is_draining = True
        while queue and slot.holder is None:
            turn = queue.popleft()
            if not turn.is_over:
                task = slot.holder = turn.task
                task.has_turn = True
                task.resume(slot.shard)
        slot.is_draining = False

    def _begin_append(self, append: Append, task: ShardTask) -> Any:
        assert task.has_turn, "records are appended during a turn"
        if not append.records:
            return Errors.NONE
        slot = task.slot
        assert slot.appending is None, "a turn has one append"
        slot.appending = append
        self._watch(task.turn)
        self.effects.append(AppendRecords(self._wait(slot), slot.at, tuple(append.records), *append[1:]))
        return LATER

    def _begin_retry(self, retry: Retry, task: ShardTask) -> Any:
        del retry
        turn = task.turn
        assert turn.in_background, "only a turn without a deadline is taken again"
        if self._slots.get(turn.partition) is not task.slot:
            task.end(turn.failure(Errors.NOT_COORDINATOR))
            return LATER
        again = BackgroundTurn(turn.partition, turn.failure)
        again.task = task
        self._repeats.append((self.now_ms + self._retry_ms, again))
        return LATER

    def _wait(self, slot: Slot[ShardT]) -> int:
        slot.waits_for = self.next_id()
        self._waiting[slot.waits_for] = slot
        return slot.waits_for

    # ---- requests to other actors, pauses ----------------------------------------------------------------------------

    def _asking(self, effect: Callable[[int, Any], Effect]) -> Callable[[Any, Waiter], Any]:
        """The begin of a step that waits for the result of an effect."""

        def begin(step: Any, waiter: Waiter) -> Any:
            self.effects.append(effect(self._expect(waiter), step))
            return LATER

        return begin

    def _expect(self, waiter: Waiter) -> int:
        call_id = self.next_id()
        self._calls[call_id] = waiter
        return call_id

    def _begin_pause(self, pause: Pause, waiter: Waiter) -> Any:
        return self._pauses.begin(self.now_ms + pause.ms, waiter)

    def end_pauses(self) -> None:
        """Resume all paused workflows."""
        self._pauses.end_all()

    # ---- messages from the broker ------------------------------------------------------------------------------------

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        """Handle a message about shards, appends, calls or time; other messages are ignored."""
        self.now_ms = now_ms
        if isinstance(message, Appended):
            self._appended(message)
        elif isinstance(message, Answer):
            self._answered(message)
        elif isinstance(message, Tick):
            self._expire()
            self._run_repeats()
            self._pauses.end_due(self.now_ms)
        elif isinstance(message, RecordsRead):
            self._records_read(message)
        elif isinstance(message, ShardElected):
            self.elect(*message)
        elif isinstance(message, ShardResigned):
            self.resign(message.partition)
        elif isinstance(message, LogSeen):
            self._calls.pop(message.id).resume(message)
        elif isinstance(message, MarkerWritten):
            self._marker_written(message)
        return self.take_effects()

    def _answered(self, answer: Answer) -> None:
        """Resume the caller with the answer; a second answer to the same call is ignored."""
        if (waiter := self._calls.pop(answer.id, None)) is not None:
            waiter.resume(Reply(answer.response, answer.error, answer.reason))

    def _appended(self, message: Appended) -> None:
        """Replay the records of a committed append and resume its workflow, which gets the error of a failed one.

        Appends of an earlier leader epoch are ignored.
        """
        slot = self._waiting.pop(message.id, None)
        if slot is None:
            return
        task, append, slot.appending = slot.holder, slot.appending, None
        assert task is not None
        assert append is not None
        if not message.error:
            for offset, (key, value) in enumerate(append.records, message.base_offset):
                replay(slot.shard, (offset, key, value), append.producer_id, self.now_ms)
        if slot.late_markers:
            slot.replay_late_markers(self.now_ms)
        task.turn.is_over = True
        task.resume(coordinator_error(message.error))

    def _marker_written(self, message: MarkerWritten) -> None:
        """Replay the marker in an active shard; a shard that is loading reads it from its log."""
        slot = self._slots.get(message.partition)
        if slot is not None and slot.state is ShardState.ACTIVE:
            slot.marker_written(message, self.now_ms)

    def _expire(self) -> None:
        """Report COORDINATOR_NOT_AVAILABLE for turns past their deadline. A workflow in its append is not closed."""
        while (deadline_ms := self._next_deadline_ms()) is not None and deadline_ms <= self.now_ms:
            turn = heappop(self._deadlines)[2]
            result = turn.failure(Errors.COORDINATOR_NOT_AVAILABLE)
            if turn.task.has_turn:
                turn.task.answer(result)
            else:
                turn.is_over = True
                turn.task.end(result)

    def _run_repeats(self) -> None:
        """Begin the background turns whose backoff is over."""
        while self._repeats and self._repeats[0][0] <= self.now_ms:
            _, turn = self._repeats.popleft()
            turn.task.resume(self._begin_turn(turn, turn.task))

    # ---- leadership and loading --------------------------------------------------------------------------------------

    def elect(self, partition: Any, leader_epoch: int) -> None:
        """Drop any former shard of the partition, and load a new one from the start of its log. `partition`: an index
        of the coordinator's topic; a TopicPartition if each log has a shard."""
        former = self._slots.get(partition)
        if former and former.epoch >= leader_epoch:
            return
        self.resign(partition)
        at = partition if isinstance(partition, TopicPartition) else TopicPartition(self.topic, partition)
        slot = Slot(partition, at, leader_epoch, self._make_shard(partition))
        slot.step(ShardEvent.ELECTED)
        self._slots[partition] = slot
        self.effects.append(ReadRecords(self._wait(slot), at, 0))

    def resign(self, partition: Any) -> None:
        """Drop the shard, and end all its turns with NOT_COORDINATOR, including those in the background."""
        if (slot := self._slots.pop(partition, None)) is None:
            return
        slot.step(ShardEvent.RESIGNED)
        self._waiting.pop(slot.waits_for, None)
        queue, slot.queue = slot.queue, deque()
        repeated = [turn for _, turn in self._repeats if turn.task.slot is slot]
        self._repeats = deque(entry for entry in self._repeats if entry[1].task.slot is not slot)
        if slot.holder is not None:
            slot.appending = None
            slot.holder.turn.is_over = True
            slot.holder.resume(Errors.NOT_COORDINATOR)
        for turn in (*queue, *repeated):
            if not turn.is_over:
                turn.is_over = True
                turn.task.end(turn.failure(Errors.NOT_COORDINATOR))

    def _records_read(self, message: RecordsRead) -> None:
        """Replay a chunk of the log; request the next one, or activate the shard at the end of the log."""
        if (slot := self._waiting.pop(message.id, None)) is None:
            return
        if message.error or not slot.replay_chunk(message, self.now_ms):
            slot.step(ShardEvent.LOAD_FAILED)
            return
        if not message.done:
            self.effects.append(ReadRecords(self._wait(slot), slot.at, message.next_offset))
            return
        slot.step(ShardEvent.LOADED)
        if self.traced:
            self.effects.append(CoordinatorLoaded(*slot.at, slot.record_count))
        for steps in self._on_load(slot.partition, slot.shard):
            self.start(steps)
