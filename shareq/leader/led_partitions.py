"""The share-partitions that this broker leads: loading, durable state, dropping.

Only this module exchanges messages with the persister. Source: KIP-932, "Share-partition leader", "Persister". Rules:
BEHAVIOUR.md, "Loading", "State writes" and "Dropping".
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.leader.experiments.kinds import kind_of_share_partition
from shareq.leader.fetch_states import LockEvent
from shareq.leader.leader_context import LeaderContext
from shareq.leader.share_fetch import LedPartition, PendingRequest
from shareq.leader.share_partition import PreparedWrite
from shareq.leader.share_requests import acknowledge_result
from shareq.leader.share_sessions import ShareSessionCache
from shareq.leader.state_reads import UNKNOWN_START_OFFSET, read_request, reset_timestamp, state_in
from shareq.model.actor import (
    Answer,
    DeadLettersEnded,
    FindOffset,
    OffsetFound,
    Persist,
    SendDeadLetters,
    StopDeadLetters,
)
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionDropped
from shareq.model.ids import SharePartitionKey, TopicPartition
from shareq.model.messages.share_state import (
    NO_PRODUCER,
    Producer,
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from shareq.model.states import LoadEvent, PartitionLoadState

DROPPING = frozenset({Errors.GROUP_ID_NOT_FOUND, Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.NOT_LEADER_OR_FOLLOWER})
"""After these errors the state in memory may be stale: the share-partition is dropped, and loaded again when needed."""

_CLIENT_ERRORS = {
    Errors.NONE: Errors.NONE,
    Errors.COORDINATOR_LOAD_IN_PROGRESS: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.COORDINATOR_NOT_AVAILABLE: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.GROUP_ID_NOT_FOUND: Errors.GROUP_ID_NOT_FOUND,
    Errors.UNKNOWN_TOPIC_OR_PARTITION: Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.FENCED_LEADER_EPOCH: Errors.NOT_LEADER_OR_FOLLOWER,
    Errors.FENCED_STATE_EPOCH: Errors.NOT_LEADER_OR_FOLLOWER,
}


def client_error(error: Errors) -> Errors:
    """The error for the client after `error` of the persister."""
    return _CLIENT_ERRORS.get(error, Errors.UNKNOWN_SERVER_ERROR)


class _Write(NamedTuple):
    """A state write under way. `pending` is the request that waits for it; None for an expired lock or a closed
    session."""

    led: LedPartition
    write_id: int
    pending: PendingRequest | None
    timeout: bool


class _Lookup(NamedTuple):
    led: LedPartition
    state: ReadShareGroupStateResponse.Partition


class LedPartitions:
    """All share-partitions led here, by key.

    `generation` grows when partitions that sessions have resolved may be stale.
    """

    def __init__(self, context: LeaderContext, sessions: ShareSessionCache) -> None:
        self.generation = 0
        self._context = context
        self._sessions = sessions
        self._leds: dict[SharePartitionKey, LedPartition] = {}
        self._by_log: dict[TopicPartition, list[LedPartition]] = {}
        self._draining: dict[SharePartitionKey, LedPartition] = {}
        self._loads: dict[int, LedPartition] = {}
        self._lookups: dict[int, _Lookup] = {}
        self._writes: dict[int, _Write] = {}
        self._mailed: dict[int, LedPartition] = {}

    def get(self, key: SharePartitionKey) -> LedPartition | None:
        """The share-partition in memory, loaded or not."""
        return self._leds.get(key)

    def of_log(self, log: TopicPartition) -> list[LedPartition]:
        """The share-partitions of all groups on one log."""
        return self._by_log.get(log, [])

    def all(self) -> list[LedPartition]:
        """All share-partitions in memory."""
        return list(self._leds.values())

    def of_group(self, group_id: str) -> list[LedPartition]:
        """The share-partitions of one group."""
        return [led for key, led in self._leds.items() if key.group_id == group_id]

    # ---- loading -----------------------------------------------------------------------------------------------------

    def lead(self, key: SharePartitionKey, topic: str, leader_epoch: int) -> LedPartition:
        """The share-partition of the key. The first call starts its load."""
        led = self._leds.get(key)
        if led is None:
            kind = kind_of_share_partition(self._context.config(key.group_id).experiments)
            led = LedPartition(key, topic, leader_epoch, traced=self._context.traced, kind=kind)
            self._leds[key] = led
            self._by_log.setdefault(led.topic_partition, []).append(led)
            former = self._draining.get(key)
            if former is None:
                self._read_state(led)
            else:
                self._stop_letters(former)
        return led

    def _read_state(self, led: LedPartition) -> None:
        call_id = self._context.next_id()
        self._loads[call_id] = led
        self._context.effects.append(Persist(call_id, read_request(led.key, led.leader_epoch)))

    def _state_read(self, led: LedPartition, answer: Answer) -> None:
        if led.dropped:
            return
        state = state_in(answer, led.key)
        if state is None:
            self.drop(led, Errors.UNKNOWN_SERVER_ERROR, f"its state could not be read: {answer.error.name}")
            return
        if state.error_code:
            reason = f"its state could not be read: {state.error_code.name}"
            self.drop(led, client_error(state.error_code), reason)
        elif state.start_offset == UNKNOWN_START_OFFSET:
            call_id = self._context.next_id()
            self._lookups[call_id] = _Lookup(led, state)
            timestamp = reset_timestamp(self._context.config(led.key.group_id), self._context.day_ms)
            self._context.effects.append(FindOffset(call_id, led.topic_partition, timestamp))
        else:
            self._load(led, state, state.start_offset)

    def offset_found(self, message: OffsetFound) -> None:
        """The start offset of a share-partition without durable state was looked up."""
        led, state = self._lookups.pop(message.id)
        if led.dropped:
            return
        error = message.error or (Errors.OFFSET_NOT_AVAILABLE if message.offset < 0 else Errors.NONE)
        if error:
            self.drop(led, error, f"its start offset could not be found: {error.name}")
        else:
            self._load(led, state, message.offset)

    def _load(self, led: LedPartition, state: ReadShareGroupStateResponse.Partition, start_offset: int) -> None:
        context = self._context
        config = context.config(led.key.group_id)
        batches, staged = state.state_batches, state.staged_batches
        loaded = led.share_partition.load(state.state_epoch, start_offset, batches, config=config, staged=staged)
        if loaded:
            self.changed(led)
            self._send_letters(led)
            self.drop_unused(led.key.group_id)
        else:
            self.drop(led, Errors.UNKNOWN_SERVER_ERROR, "its durable state is invalid")

    # ---- dropping ----------------------------------------------------------------------------------------------------

    def drop(self, led: LedPartition, error: Errors, reason: str, *, leads: bool = False) -> None:
        """Remove a share-partition from memory. Fetches that wait for it end with `error`.

        `leads`: this broker is its leader still, so that dead letters go on until there is a successor, those of the
        writes under way included.

        Its locks end: unlike in Kafka, no timer of a dropped share-partition writes state after its successor has
        loaded. The state is read again only after the writes under way have settled.
        """
        del self._leds[led.key]
        neighbours = self._by_log[led.topic_partition]
        neighbours.remove(led)
        if not neighbours:
            del self._by_log[led.topic_partition]
        led.dropped = error
        led.step(LockEvent.DROPPED)
        led.share_partition.step(LoadEvent.FENCED)
        self._context.deadlines.cancel(led)
        self.generation += 1
        under_way = led.writes or led.letters_out
        if under_way:
            self._draining[led.key] = led
        if not (leads and under_way):
            self._stop_letters(led)
        if self._context.traced:
            dropped = SharePartitionDropped(led.key.group_id, *led.topic_partition, reason)
            self._context.effects.append(dropped)
        self._context.lost.append(led)

    def drop_unused(self, group_id: str) -> None:
        """Drop the share-partitions of a group that has no session here; those that load, when they are loaded."""
        if not self._sessions.has_group(group_id):
            for led in self.of_group(group_id):
                if led.share_partition.status is not PartitionLoadState.INITIALIZING:
                    reason = "no member of the group is connected"
                    self.drop(led, Errors.UNKNOWN_TOPIC_OR_PARTITION, reason, leads=True)

    def image_changed(self) -> None:
        """Drop the share-partitions that this broker no longer leads at the same epoch (a sole leader: at any epoch);
        wake the others, whose configuration may have changed."""
        context = self._context
        self.generation += 1
        for led in list(self._leds.values()):
            partition = context.image.partition(led.key.topic_id, led.key.partition)
            if context.image.share_version < 1:
                self.drop(led, Errors.UNSUPPORTED_VERSION, "share groups were switched off")
            elif partition is None:
                self.drop(led, Errors.UNKNOWN_TOPIC_OR_PARTITION, "the topic is gone")
            elif partition.leader != context.broker_id or not (
                context.sole or partition.leader_epoch == led.leader_epoch
            ):
                self.drop(led, Errors.NOT_LEADER_OR_FOLLOWER, "another broker leads the partition")
            else:
                led.leader_epoch = partition.leader_epoch
                led.log_end = None
                self.changed(led)

    # ---- durable state -----------------------------------------------------------------------------------------------

    def write(
        self, led: LedPartition, write: PreparedWrite, pending: PendingRequest | None = None, *, timeout: bool = False
    ) -> None:
        """Send a prepared write to the persister. `timeout`: an expired lock caused it, and no request waits for it."""
        call_id = self._context.next_id()
        self._writes[call_id] = _Write(led, write.write_id, pending, timeout)
        if pending is not None:
            pending.writes += 1
        self._context.effects.append(self.persist(call_id, led, write))

    def persist(self, call_id: int, led: LedPartition, write: PreparedWrite, by: Producer = NO_PRODUCER) -> Persist:
        """The effect of a prepared write, by a producer in its transaction. The answer is to be given to `settle`."""
        led.writes += 1
        part = WriteShareGroupStateRequest.Partition(
            partition=led.key.partition,
            state_epoch=led.share_partition.state_epoch,
            leader_epoch=led.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=write.state_batches,
            producer_id=by.id,
            producer_epoch=by.epoch,
        )
        topic = WriteShareGroupStateRequest.Topic(topic_id=led.key.topic_id, partitions=(part,))
        return Persist(call_id, WriteShareGroupStateRequest(group_id=led.key.group_id, topics=(topic,)))

    def answered(self, answer: Answer) -> None:
        """The persister's answer to a read or a write; answers may arrive in any order."""
        led = self._loads.pop(answer.id, None)
        if led is not None:
            self._state_read(led, answer)
        else:
            self._written(self._writes.pop(answer.id), answer)

    def _written(self, write: _Write, answer: Answer) -> None:
        error = self.settle(write.led, write.write_id, answer, timeout=write.timeout)
        if write.pending is not None:
            write.pending.writes -= 1
            write.pending.acks[write.led.at] = acknowledge_result(client_error(error))
            self._context.done[write.pending] = None

    def settle(self, led: LedPartition, write_id: int, answer: Answer, *, timeout: bool = False) -> Errors:
        """Settle a write with the persister's answer; its error."""
        context, error = self._context, _write_error(led, answer)
        client_code = client_error(error)
        led.writes -= 1
        if not led.letters_stopped:
            led.share_partition.settle(write_id, error, context.config(led.key.group_id), context.now_ms)
            self._send_letters(led)
        if led.dropped:
            self._drained(led)
        else:
            self.changed(led)
            if client_code in DROPPING and not timeout:
                self.drop(led, client_code, f"a state write failed: {error.name}")
        return error

    def _drained(self, led: LedPartition) -> None:
        """After the last write and letter of a dropped share-partition, read the state for its successor."""
        if led.writes or led.letters_out:
            return
        self._stop_letters(led)
        if self._draining.pop(led.key, None) is not None:
            successor = self._leds.get(led.key)
            if successor is not None:
                self._read_state(successor)

    # ---- the dead-letter queue ---------------------------------------------------------------------------------------

    def finished(self, led: LedPartition) -> None:
        """Records have reached their states without a write of this leader: send the letters, wake fetches."""
        self._send_letters(led)
        self.changed(led)

    def _send_letters(self, led: LedPartition) -> None:
        """Send the records that are durable as ARCHIVING to the dead-letter queue."""
        letters = led.share_partition.take_letters()
        if not letters:
            return
        if led.letters_id is None:
            led.letters_id = self._context.next_id()
            self._mailed[led.letters_id] = led
        led.letters_out += sum(letter.end - letter.first for letter in letters)
        sent = SendDeadLetters(led.letters_id, led.key, led.topic_partition.topic, led.leader_epoch, tuple(letters))
        self._context.effects.append(sent)

    def dead_letters_ended(self, ended: DeadLettersEnded) -> None:
        """Archive records whose way to the dead-letter queue has ended. The successor of a dropped share-partition
        reads the state after that, so that it does not send them again."""
        led = self._mailed[ended.id]
        if ended.fenced:
            self._letters_fenced(led)
            return
        led.letters_out -= sum(end - first for first, end in ended.ranges)
        write = led.share_partition.dead_lettered(ended.ranges, self._context.now_ms) if ended.ranges else None
        if not led.dropped:
            self.changed(led)
        if write is not None:
            self.write(led, write, timeout=True)
        if ended.stopped:
            del self._mailed[ended.id]
            led.letters_out = 0
        if led.dropped:
            self._drained(led)

    def _letters_fenced(self, led: LedPartition) -> None:
        """A later leader writes the letters: this one leads no more, even if its metadata do not show it."""
        if led.dropped:
            self._stop_letters(led)
        else:
            self.drop(led, Errors.NOT_LEADER_OR_FOLLOWER, "a later leader has read its state")

    def _stop_letters(self, led: LedPartition) -> None:
        """Send no more letters of a dropped share-partition; the writer then reports when none is under way."""
        if led.letters_id is not None and not led.letters_stopped:
            self._context.effects.append(StopDeadLetters(led.letters_id))
        led.letters_stopped = True

    # ---- time --------------------------------------------------------------------------------------------------------

    def changed(self, led: LedPartition) -> None:
        """Emit the events of a changed share-partition, set its deadline, and wake waiting fetches."""
        context = self._context
        led.share_partition.unblock(context.config(led.key.group_id), context.now_ms)
        self.watch(led)
        self.wake(led)

    def wake(self, led: LedPartition) -> None:
        """More records may be available to waiting fetches."""
        led.change()
        if led.untried:
            self._context.woken.append(led)

    def watch(self, led: LedPartition) -> None:
        """Emit the share-partition's events, and set the deadline for its next lock."""
        if self._context.traced:
            self._context.effects.extend(led.share_partition.take_events())
        deadline_ms = led.share_partition.next_deadline_ms
        if deadline_ms is not None:
            self._context.deadlines.bring_forward(led, deadline_ms)

    def expire(self, led: LedPartition) -> None:
        """The deadline has passed: release expired locks. If none has expired, only set the next deadline."""
        context = self._context
        deadline_ms = led.share_partition.next_deadline_ms
        if deadline_ms is not None and deadline_ms <= context.now_ms:
            write = led.share_partition.expire(context.now_ms, context.config(led.key.group_id))
            self.changed(led)
            if write is not None:
                self.write(led, write, timeout=True)
        else:
            self.watch(led)


def _write_error(led: LedPartition, answer: Answer) -> Errors:
    """The persister's error code for this partition; UNKNOWN_SERVER_ERROR if the answer lacks the partition."""
    if isinstance(answer.response, WriteShareGroupStateResponse):
        for topic in answer.response.results:
            for part in topic.partitions:
                if part.partition == led.key.partition and topic.topic_id == led.key.topic_id:
                    return part.error_code
    return answer.error or Errors.UNKNOWN_SERVER_ERROR
