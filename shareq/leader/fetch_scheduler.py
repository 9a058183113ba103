"""Runs fetches. A fetch may wait for records, for room in the window, or for the fetch lock of a share-partition.

A fetch visits its share-partitions in turn. It takes the fetch lock of each one that can offer records and reads its
log from exactly the next fetch offset. If the bytes offered meet the fetch's minimum, it acquires and ends; else it
releases its locks and waits. Share-partitions are read in growing waves, so a session with a thousand partitions reads
only as many as it needs. Source: KIP-932, "Fetching"; Kafka's DelayedShareFetch.

A waiting fetch is attempted again only after an event on one of its share-partitions. The event is offered to one
waiting fetch after the other until one of them uses it, so its cost does not grow with the number of waiting fetches.
Rules: BEHAVIOUR.md, "Fetching".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.leader.fetch_states import FetchEvent, FetchState, LockEvent, LockState
from shareq.leader.group_fetch_queues import GroupFetchQueues
from shareq.leader.leader_context import LeaderContext
from shareq.leader.led_partitions import DROPPING, LedPartitions
from shareq.leader.share_fetch import LedPartition, PartitionRead, ShareFetch
from shareq.leader.share_requests import FetchedPartition
from shareq.model.actor import MAX_OFFSET, Failed, LogRead, ReadLog
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.experiments import priorities_of
from shareq.model.records import RecordBatch
from shareq.model.states import IsolationLevel
from shareq.model.waits import Wait

# Bound once: Python 3.11 runs a function for each access to a member of an enumeration.
_FREE, _HELD, _DROPPED = LockState.FREE, LockState.HELD, LockState.DROPPED
_TAKEN, _RELEASED = LockEvent.TAKEN, LockEvent.RELEASED
_AGAIN, _LAST, _ENDED = FetchState.AGAIN, FetchState.LAST, FetchState.ENDED
_CHANGED, _DECIDED, _ENDED_EVENT = FetchEvent.CHANGED, FetchEvent.DECIDED, FetchEvent.ENDED


class FetchScheduler:
    """The fetches of this broker. One that has ended is in the context's `done`."""

    def __init__(self, context: LeaderContext, partitions: LedPartitions) -> None:
        self.skip: Callable[[LedPartition, LogRead], bool] | None = None
        """Of the experiments: called with what was read; True if nothing of it is to be acquired."""
        self._context = context
        self._partitions = partitions
        self._reads: dict[int, PartitionRead] = {}
        self._queues = GroupFetchQueues()
        self._zero_minimum: dict[ShareFetch, None] = {}  # waiting fetches with a minimum of 0 bytes

    # ---- start and end of a fetch ------------------------------------------------------------------------------------

    def start(self, fetch: ShareFetch) -> None:
        """Start a fetch. It ends at once if there is nothing to fetch or its limits are 0."""
        fetch.take_session_partitions()
        experiments = self._context.config(fetch.group_id).experiments
        if experiments is not None and experiments.topic_priorities:
            fetch.line_up(priorities_of(experiments.topic_priorities))
        if fetch.leds and fetch.limits.max_records > 0 and fetch.max_bytes > 0:
            self._attempt(fetch)
        else:
            self._end(fetch)

    def max_wait_passed(self, fetch: ShareFetch) -> None:
        """MaxWaitMs have passed: make a last attempt without a minimum, or make the attempt under way the last."""
        fetch.step(_DECIDED)
        if not fetch.reads:
            self._attempt(fetch)

    def abort(self, fetch: ShareFetch) -> None:
        """The session has ended: end the fetch without records, so that it acquires nothing."""
        fetch.fetched.clear()
        if fetch.state is not _ENDED:
            self._end(fetch)

    def _end(self, fetch: ShareFetch) -> None:
        self._unlock(fetch)
        fetch.step(_ENDED_EVENT)
        if fetch.waiting:
            for led in fetch.leds:
                led.leave(fetch)
            self._context.deadlines.cancel(fetch)
            self._zero_minimum.pop(fetch, None)
        self._context.done[fetch] = None

    def _wait(self, fetch: ShareFetch) -> None:
        """Queue at every share-partition. The fetch does not retry those that have not changed since its last read."""
        fetch.waiting = True
        if fetch.min_bytes <= 0:
            self._zero_minimum[fetch] = None
        self._context.deadlines.set(fetch, self._context.now_ms + fetch.limits.max_wait_ms)
        for led in fetch.leds:
            if led.lock is _HELD and led.owner is fetch:
                led.tried[fetch] = None
                continue
            led.untried[fetch] = None
            if led.lock is _DROPPED:
                fetch.fetched[led.at] = FetchedPartition(led.dropped)
                fetch.step(_DECIDED)
            elif led.lock is _FREE:
                self._context.woken.append(led)

    @staticmethod
    def is_waiting(fetch: ShareFetch) -> bool:
        """True if the first attempt has not ended the fetch, nor has another one since."""
        return fetch.waiting and fetch.state is not _ENDED

    def waits_for(self, fetch: ShareFetch) -> frozenset[Wait]:
        """What a fetch waits for, at each of its share-partitions; nothing if it can be answered."""
        if fetch.state is _ENDED:
            return frozenset([Wait.STATE_WRITES] if fetch.writes else ())
        if fetch.reads:
            return frozenset([Wait.READS])
        if self._queues.holds(fetch):
            return frozenset([Wait.TURN])
        config = self._context.config(fetch.group_id)
        return frozenset([led.waits_for(config) or Wait.MIN_BYTES for led in fetch.leds])

    # ---- events ------------------------------------------------------------------------------------------------------

    def _end_lost(self, led: LedPartition) -> None:
        """A share-partition was dropped: end each fetch that waits for it with the error."""
        for fetch in [*led.untried, *led.tried]:
            fetch.fetched[led.at] = FetchedPartition(led.dropped)
            fetch.step(_DECIDED)
            if not fetch.reads:
                self._end(fetch)

    def offer(self) -> None:
        """End and attempt waiting fetches after the changes that the current message has caused."""
        woken, lost, advanced_groups = self._context.woken, self._context.lost, self._queues.advanced_groups
        while woken or lost or advanced_groups:
            if lost:
                self._end_lost(lost.popleft())
                continue
            if advanced_groups:
                self._attempt_first(advanced_groups.popleft())
                continue
            led = woken.popleft()
            config = self._context.config(led.key.group_id)
            while led.untried and led.ready(config):
                fetch, _ = led.untried.popitem(last=False)
                led.tried[fetch] = None
                if fetch.reads:
                    fetch.step(_CHANGED)
                else:
                    self._attempt(fetch)
            if self._zero_minimum and led.owner is None and led.blocked_by(config) is None:
                self._end_zero_minimum(led)

    def _end_zero_minimum(self, led: LedPartition) -> None:
        """End the fetches with a minimum of 0 bytes: an acquirable share-partition meets it."""
        for fetch in [fetch for fetch in self._zero_minimum if led in fetch.leds and not fetch.reads]:
            fetch.step(_DECIDED)
            self._attempt(fetch)

    def _attempt_first(self, group_id: str) -> None:
        """Attempt the fetch that is now first in the group's queue."""
        fetch = self._queues.first(group_id)
        if fetch is not None and not fetch.reads:
            self._attempt(fetch)

    # ---- an attempt --------------------------------------------------------------------------------------------------

    def _attempt(self, fetch: ShareFetch) -> None:
        self._guarded(fetch, self._try, fetch)

    def _guarded(self, fetch: ShareFetch, step: Callable[..., object], *args: Any) -> None:
        """Run a step of a fetch. If it raises, this fetch ends, with an error where it has acquired nothing, and its
        locks are free for the others."""
        try:
            step(*args)
        except Exception as defect:
            self._context.effects.append(Failed(defect))
            for led in fetch.leds:
                fetch.fetched.setdefault(led.at, FetchedPartition(Errors.UNKNOWN_SERVER_ERROR))
            if fetch.state is not _ENDED:
                fetch.step(_DECIDED)
                self._end(fetch)

    def _try(self, fetch: ShareFetch) -> None:
        """Try all share-partitions of a fetch, now or when the fetch is first in its group's queue."""
        if fetch.min_bytes > 1 and fetch.state is not _LAST and not self._queues.enter(fetch):
            if not fetch.waiting:
                self._wait(fetch)
            return
        fetch.start_over()
        self._next_wave(fetch)

    def _next_wave(self, fetch: ShareFetch) -> None:
        """Lock and read the next share-partitions that can offer records, twice as many as in the previous wave.

        Each may use an equal part of the bytes that are left. Kafka divides once and gives the remainder to random
        partitions; here bytes that one partition leaves go to the next ones, and the order of turns is fair.
        """
        config = self._context.config(fetch.group_id)
        leds, count = fetch.leds, len(fetch.leds)
        while fetch.unread < fetch.wave and fetch.position < count and fetch.bytes_left > 0:
            led = leds[fetch.position]
            fetch.position += 1
            if led.dropped:
                fetch.fetched[led.at] = FetchedPartition(led.dropped)
            elif led.ready(config):
                self._read(fetch, led, max(1, fetch.bytes_left // (count - fetch.position + 1)), config)
        fetch.wave *= 2
        if not fetch.unread:
            self._finish_attempt(fetch)

    def _read(self, fetch: ShareFetch, led: LedPartition, max_bytes: int, config: GroupConfig) -> None:
        """Read from the next fetch offset.

        Records above the largest window cannot be acquired now and are read only if the minimum may need them. Records
        released inside a window that has grown beyond the limit can be acquired.
        """
        share_partition, end_offset = led.share_partition, MAX_OFFSET
        if fetch.min_bytes <= 1:
            end_offset = max(share_partition.spso + config.partition_max_record_locks, share_partition.window_end)
        led.owner = fetch
        led.step(_TAKEN)
        read = PartitionRead(fetch, led, share_partition.next_fetch_offset, max_bytes)
        fetch.reads.append(read)
        fetch.unread += 1
        fetch.bytes_left -= max_bytes
        call_id = self._context.next_id()
        self._reads[call_id] = read
        at, isolation = led.topic_partition, config.isolation_level
        keys = share_partition.needs_keys
        self._context.effects.append(ReadLog(call_id, at, read.offset, max_bytes, isolation, end_offset, keys))

    def log_read(self, answer: LogRead) -> None:
        """The log has answered one read. After the last read of a wave: acquire, read the next wave, or wait."""
        read = self._reads.pop(answer.id)
        fetch, led = read.fetch, read.led
        if led.owner is fetch:  # else the fetch has ended and released its locks
            self._guarded(fetch, self._take_read, read, answer)

    def _take_read(self, read: PartitionRead, answer: LogRead) -> None:
        fetch = read.fetch
        if answer.error is Errors.OFFSET_OUT_OF_RANGE and read.offset > answer.log_start_offset:
            answer = answer._replace(error=Errors.NONE)  # above the log's end: the offset may still be written
        if self._context.sole and answer.error in DROPPING:  # the image shows whether this broker leads
            answer = LogRead(answer.id, Errors.NONE, (), read.offset, -1, read.offset)
        committed = self._context.config(fetch.group_id).isolation_level is IsolationLevel.READ_COMMITTED
        end = answer.last_stable_offset if committed else answer.high_watermark
        read.answered(answer, end)
        if not answer.error:
            self._note_log_end(read, answer, end)
        fetch.unread -= 1
        fetch.bytes_left += read.max_bytes - read.size
        if fetch.unread:
            return
        if fetch.state is not _LAST and self._satisfied(fetch):
            fetch.step(_DECIDED)
        if fetch.state is _LAST:
            self._take(fetch)
        if fetch.position < len(fetch.leds) and fetch.records_left > 0:
            self._next_wave(fetch)
        else:
            self._finish_attempt(fetch)

    def _note_log_end(self, read: PartitionRead, answer: LogRead, end: int) -> None:
        """Use a read's answer about offsets without records: the log's end, and records that the log has lost."""
        led = read.led
        if led.lock is _HELD:
            led.log_end = end
        empty = not answer.batches and not led.dropped
        if empty and led.share_partition.note_missing(read.offset, end, self._context.now_ms):
            self._partitions.changed(led)

    def _satisfied(self, fetch: ShareFetch) -> bool:
        """True if the minimum is met. A read error ends the fetch at once, too."""
        counted_bytes = 0
        for read in fetch.reads:
            counted_bytes += read.counted_bytes
            if read.answer is not None and read.answer.error:
                return True
        return counted_bytes >= fetch.min_bytes

    def _finish_attempt(self, fetch: ShareFetch) -> None:
        """The attempt has visited every share-partition: end the fetch, or let it wait."""
        if fetch.state is not _LAST and fetch.min_bytes <= 0:
            config = self._context.config(fetch.group_id)
            if any(led.owner in (None, fetch) and led.blocked_by(config) is None for led in fetch.leds):
                fetch.step(_DECIDED)
        if fetch.state is not _LAST and not fetch.waiting:
            self._wait(fetch)
        if fetch.state is _LAST:
            self._end(fetch)
            return
        self._unlock(fetch)
        if fetch.state is _AGAIN:
            self._attempt(fetch)

    def _unlock(self, fetch: ShareFetch) -> None:
        """Release the locks of the fetch; fetches that have not tried these share-partitions may do so now."""
        self._queues.leave(fetch)
        for read in fetch.reads:
            led = read.led
            assert led.owner is fetch
            led.owner = None
            led.step(_RELEASED)
            if led.untried:
                self._context.woken.append(led)
        fetch.reads.clear()

    # ---- taking ------------------------------------------------------------------------------------------------------

    def _take(self, fetch: ShareFetch) -> None:
        """Acquire from the reads in the order of turns, and release the locks."""
        for read in fetch.reads:
            led, answer = read.led, read.answer
            assert answer is not None
            if led.dropped:
                fetch.fetched[led.at] = FetchedPartition(led.dropped)
            elif answer.error is Errors.OFFSET_OUT_OF_RANGE:
                led.share_partition.advance_log_start(answer.log_start_offset)
                self._partitions.changed(led)
            elif answer.error:
                fetch.fetched[led.at] = FetchedPartition(answer.error)
                if answer.error in DROPPING:
                    self._partitions.drop(led, answer.error, f"the log could not be read: {answer.error.name}")
            elif answer.batches and fetch.records_left > 0:
                self._acquire(fetch, read, answer)
        self._unlock(fetch)

    def _acquire(self, fetch: ShareFetch, read: PartitionRead, answer: LogRead) -> None:
        led, context = read.led, self._context
        if self.skip is not None and self.skip(led, answer):
            return
        first = fetch.records_left == fetch.limits.max_records
        batches = answer.batches if first else _within(answer.batches, read.max_bytes)
        acquired, records = led.share_partition.acquire(
            batches,
            read.offset,
            member_id=fetch.member_id,
            max_records=fetch.records_left,
            batch_size=fetch.limits.batch_size,
            mode=fetch.mode,
            config=context.config(fetch.group_id),
            aborted=answer.aborted,
            keys=answer.keys,
            now_ms=context.now_ms,
        )
        self._partitions.changed(led)
        if acquired:
            fetch.fetched[led.at] = FetchedPartition(Errors.NONE, tuple(records), tuple(acquired))
            fetch.records_left -= sum([run.last_offset - run.first_offset + 1 for run in acquired])


def _within(batches: tuple[RecordBatch, ...], max_bytes: int) -> tuple[RecordBatch, ...]:
    """The whole batches that fit in `max_bytes`. Only the first partition with records may exceed its share, by one
    batch."""
    for count, batch in enumerate(batches):
        max_bytes -= len(batch.data)
        if max_bytes < 0:
            return batches[:count]
    return batches
