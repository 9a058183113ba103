"""The share-partitions that this broker leads: loading, durable state, dropping.

Only this module exchanges messages with the persister. Source: KIP-932, "Share-partition leader", "Persister". Rules:
BEHAVIOUR.md, "Loading", "State writes" and "Dropping".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shareq.leader.leader_context import LeaderContext
from shareq.leader.led_partition import LedPartition
from shareq.leader.share_partition import PreparedWrite
from shareq.leader.share_sessions import PendingRequest
from shareq.model.actor import Answer, FindOffset, OffsetFound, Persist
from shareq.model.configs import parse_by_duration
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionDropped
from shareq.model.ids import SharePartitionKey, TopicIdPartition, TopicPartition
from shareq.model.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from shareq.model.states import PartitionLoadState

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
UNKNOWN_START_OFFSET = -1

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

    `wake(led)` is called when more records may be available to waiting fetches, `lost(led)` when it has been dropped,
    `acknowledged(pending, led, error)` when a request's write has settled. `generation` grows when partitions that
    sessions have resolved may be stale.
    """

    def __init__(
        self,
        context: LeaderContext,
        *,
        wake: Callable[[LedPartition], None],
        lost: Callable[[LedPartition], None],
        acknowledged: Callable[[PendingRequest, LedPartition, Errors], None],
    ) -> None:
        self.generation = 0
        self._context = context
        self._wake = wake
        self._lost = lost
        self._acknowledged = acknowledged
        self._leds: dict[SharePartitionKey, LedPartition] = {}
        self._by_log: dict[TopicPartition, list[LedPartition]] = {}
        self._draining: dict[SharePartitionKey, LedPartition] = {}
        self._loads: dict[int, LedPartition] = {}
        self._lookups: dict[int, _Lookup] = {}
        self._writes: dict[int, _Write] = {}

    def get(self, key: SharePartitionKey) -> LedPartition | None:
        """The share-partition in memory, loaded or not."""
        return self._leds.get(key)

    def of_log(self, log: TopicPartition) -> list[LedPartition]:
        """The share-partitions of all groups on one log."""
        return self._by_log.get(log, [])

    def of_group(self, group_id: str) -> list[LedPartition]:
        """The share-partitions of one group."""
        return [led for key, led in self._leds.items() if key.group_id == group_id]

    # ---- loading -----------------------------------------------------------------------------------------------------

    def lead(self, key: SharePartitionKey, topic: str, leader_epoch: int) -> LedPartition:
        """The share-partition of the key. The first call starts its load."""
        led = self._leds.get(key)
        if led is None:
            led = self._leds[key] = LedPartition(key, topic, leader_epoch, traced=self._context.traced)
            self._by_log.setdefault(led.topic_partition, []).append(led)
            if key not in self._draining:
                self._read_state(led)
        return led

    def _read_state(self, led: LedPartition) -> None:
        call_id = self._context.next_id()
        self._loads[call_id] = led
        part = ReadShareGroupStateRequest.Partition(partition=led.key.partition, leader_epoch=led.leader_epoch)
        topic = ReadShareGroupStateRequest.Topic(topic_id=led.key.topic_id, partitions=(part,))
        request = ReadShareGroupStateRequest(group_id=led.key.group_id, topics=(topic,))
        self._context.effects.append(Persist(call_id, request))

    def _state_read(self, led: LedPartition, answer: Answer) -> None:
        if led.dropped:
            return
        response = answer.response
        if not isinstance(response, ReadShareGroupStateResponse) or _partitions_in(response) != [led.at]:
            self.drop(led, Errors.UNKNOWN_SERVER_ERROR, f"its state could not be read: {answer.error.name}")
            return
        state = response.results[0].partitions[0]
        if state.error_code:
            reason = f"its state could not be read: {state.error_code.name}"
            self.drop(led, client_error(state.error_code), reason)
        elif state.start_offset == UNKNOWN_START_OFFSET:
            call_id = self._context.next_id()
            self._lookups[call_id] = _Lookup(led, state)
            self._context.effects.append(FindOffset(call_id, led.topic_partition, self._reset_timestamp(led)))
        else:
            self._load(led, state, state.start_offset)

    def _reset_timestamp(self, led: LedPartition) -> int:
        """`share.auto.offset.reset` as a timestamp for ListOffsets; latest is the high watermark, for read_committed
        too."""
        reset = self._context.config(led.key.group_id).auto_offset_reset
        duration_ms = parse_by_duration(reset)
        if duration_ms is not None:
            return max(0, self._context.now_ms - duration_ms)
        return EARLIEST_TIMESTAMP if reset == "earliest" else LATEST_TIMESTAMP

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
        loaded = led.share_partition.load(state.state_epoch, start_offset, state.state_batches, config=config)
        if loaded:
            self.changed(led)
        else:
            self.drop(led, Errors.UNKNOWN_SERVER_ERROR, "its durable state is invalid")

    # ---- dropping ----------------------------------------------------------------------------------------------------

    def drop(self, led: LedPartition, error: Errors, reason: str) -> None:
        """Remove a share-partition from memory. Fetches that wait for it end with `error`.

        Its locks end: unlike in Kafka, no timer of a dropped share-partition writes state after its successor has
        loaded. The state is read again only after the writes under way have settled.
        """
        del self._leds[led.key]
        neighbours = self._by_log[led.topic_partition]
        neighbours.remove(led)
        if not neighbours:
            del self._by_log[led.topic_partition]
        led.dropped = error
        led.idle = True
        led.share_partition.status = PartitionLoadState.FENCED
        self._context.deadlines.cancel(led)
        self.generation += 1
        if led.writes:
            self._draining[led.key] = led
        if self._context.traced:
            dropped = SharePartitionDropped(led.key.group_id, *led.topic_partition, reason)
            self._context.effects.append(dropped)
        self._lost(led)

    def image_changed(self) -> None:
        """Drop the share-partitions that this broker no longer leads at the same epoch; wake the others, whose
        configuration may have changed."""
        context = self._context
        self.generation += 1
        for led in list(self._leds.values()):
            partition = context.image.partition(led.key.topic_id, led.key.partition)
            if context.image.share_version < 1:
                self.drop(led, Errors.UNSUPPORTED_VERSION, "share groups were switched off")
            elif partition is None:
                self.drop(led, Errors.UNKNOWN_TOPIC_OR_PARTITION, "the topic is gone")
            elif (partition.leader, partition.leader_epoch) != (context.broker_id, led.leader_epoch):
                self.drop(led, Errors.NOT_LEADER_OR_FOLLOWER, "another broker leads the partition")
            else:
                led.log_end = None
                self.changed(led)

    # ---- durable state -----------------------------------------------------------------------------------------------

    def write(
        self, led: LedPartition, write: PreparedWrite, pending: PendingRequest | None = None, *, timeout: bool = False
    ) -> None:
        """Send a prepared write to the persister. `timeout`: an expired lock caused it, and no request waits for it."""
        call_id = self._context.next_id()
        self._writes[call_id] = _Write(led, write.write_id, pending, timeout)
        led.writes += 1
        if pending is not None:
            pending.writes += 1
        part = WriteShareGroupStateRequest.Partition(
            partition=led.key.partition,
            state_epoch=led.share_partition.state_epoch,
            leader_epoch=led.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=write.state_batches,
        )
        topic = WriteShareGroupStateRequest.Topic(topic_id=led.key.topic_id, partitions=(part,))
        request = WriteShareGroupStateRequest(group_id=led.key.group_id, topics=(topic,))
        self._context.effects.append(Persist(call_id, request))

    def answered(self, answer: Answer) -> None:
        """The persister's answer to a read or a write; answers may arrive in any order."""
        led = self._loads.pop(answer.id, None)
        if led is not None:
            self._state_read(led, answer)
        else:
            self._written(self._writes.pop(answer.id), answer)

    def _written(self, write: _Write, answer: Answer) -> None:
        led, context = write.led, self._context
        error = _write_error(led, answer)
        client_code = client_error(error)
        led.writes -= 1
        if led.dropped:
            self._drained(led)
        else:
            led.share_partition.settle(write.write_id, error, context.config(led.key.group_id), context.now_ms)
            self.changed(led)
            if client_code in DROPPING and not write.timeout:
                self.drop(led, client_code, f"a state write failed: {error.name}")
        if write.pending is not None:
            write.pending.writes -= 1
            self._acknowledged(write.pending, led, client_code)

    def _drained(self, led: LedPartition) -> None:
        """After the last write of a dropped share-partition has settled, read the state for its successor."""
        if not led.writes and self._draining.pop(led.key, None) is not None:
            successor = self._leds.get(led.key)
            if successor is not None:
                self._read_state(successor)

    # ---- time --------------------------------------------------------------------------------------------------------

    def changed(self, led: LedPartition) -> None:
        """Emit the events of a changed share-partition, set its deadline, and wake waiting fetches."""
        context = self._context
        led.share_partition.unblock(context.config(led.key.group_id), context.now_ms)
        self.watch(led)
        self._wake(led)

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


def _partitions_in(response: ReadShareGroupStateResponse) -> list[TopicIdPartition]:
    return [TopicIdPartition(topic.topic_id, part.partition) for topic in response.results for part in topic.partitions]


def _write_error(led: LedPartition, answer: Answer) -> Errors:
    """The persister's error code for this partition; UNKNOWN_SERVER_ERROR if the answer lacks the partition."""
    if isinstance(answer.response, WriteShareGroupStateResponse):
        for topic in answer.response.results:
            for part in topic.partitions:
                if part.partition == led.key.partition and topic.topic_id == led.key.topic_id:
                    return part.error_code
    return answer.error or Errors.UNKNOWN_SERVER_ERROR
