"""Fetches, and how they wait: for records, for room in the window, for another fetch to be done with a share-partition.

A fetch tries its share-partitions in turn. It takes the fetch lock of each that has something to offer and reads from
exactly the next fetch offset; when what it has been offered meets its minimum, it acquires and is done, else it lets go
and waits. Share-partitions are read in growing waves, so that a session of a thousand costs no more than it needs.
Source: KIP-932, "Fetching"; Kafka's DelayedShareFetch.

What waits is tried again when something happens to one of its share-partitions, and only then. Such an event is offered
to one waiter after the other until one takes it, so that its cost does not grow with the number that wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from shareq.leader.group_fetch_queues import GroupFetchQueues
from shareq.leader.leader_context import LeaderContext
from shareq.leader.led_partition import LedPartition
from shareq.leader.led_partitions import DROPPING, LedPartitions
from shareq.leader.share_fetch import PartitionRead, ShareFetch
from shareq.leader.share_requests import FetchedPartition
from shareq.model.actor import MAX_OFFSET, LogRead, ReadLog
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.records import RecordBatch
from shareq.model.states import IsolationLevel


class FetchScheduler:
    """The fetches under way on this broker. `ended(fetch)` is called when one has got all that it will get."""

    def __init__(self, context: LeaderContext, ended: Callable[[ShareFetch], None]) -> None:
        self.partitions: LedPartitions  # set by whoever puts the two together
        self._context = context
        self._ended = ended
        self._reads: dict[int, PartitionRead] = {}
        self._woken: deque[LedPartition] = deque()
        self._queues = GroupFetchQueues()
        self._zero_minimum: dict[ShareFetch, None] = {}  # those that wait with a minimum of 0 bytes

    # ---- a fetch's life ----------------------------------------------------------------------------------------------

    def start(self, fetch: ShareFetch) -> None:
        """Begin, and end at once where there is nothing to fetch or no room for it."""
        fetch.take_session_partitions()
        if fetch.leds and fetch.limits.max_records > 0 and fetch.max_bytes > 0:
            self._attempt(fetch)
        else:
            self._end(fetch)

    def max_wait_passed(self, fetch: ShareFetch) -> None:
        """MaxWaitMs are over: a last try without a minimum, unless one is under way and becomes the last."""
        fetch.final = True
        if not fetch.reads:
            self._attempt(fetch)

    def abort(self, fetch: ShareFetch) -> None:
        """Its session is gone: end without records, so that nothing is acquired for nobody."""
        fetch.fetched.clear()
        if fetch.fetching:
            self._end(fetch)

    def _end(self, fetch: ShareFetch) -> None:
        self._unlock(fetch)
        fetch.fetching = False
        if fetch.waiting:
            for led in fetch.leds:
                led.leave(fetch)
            self._context.deadlines.cancel(fetch)
            self._zero_minimum.pop(fetch, None)
        self._ended(fetch)

    def _wait(self, fetch: ShareFetch) -> None:
        """Stand in the queue of every share-partition; what the fetch has just seen in vain it need not see again."""
        fetch.waiting = True
        if fetch.min_bytes <= 0:
            self._zero_minimum[fetch] = None
        self._context.deadlines.set(fetch, self._context.now_ms + fetch.limits.max_wait_ms)
        for led in fetch.leds:
            if led.owner is fetch and led.fresh:
                led.tried[fetch] = None
            else:
                led.untried[fetch] = None
                if led.dropped:
                    fetch.fetched[led.at] = FetchedPartition(led.dropped)
                    fetch.final = True
                elif led.owner is None and not led.idle:
                    self._woken.append(led)

    # ---- events ------------------------------------------------------------------------------------------------------

    def wake(self, led: LedPartition) -> None:
        """Something has happened to a share-partition: everybody who waits for it may try once more."""
        led.idle = False
        led.fresh = False
        for fetch in reversed(led.tried):  # who has tried was there before who has not
            led.untried[fetch] = None
            led.untried.move_to_end(fetch, last=False)
        led.tried.clear()
        if led.untried:
            self._woken.append(led)

    def lost(self, led: LedPartition) -> None:
        """A share-partition has been dropped: whoever waits for it is told at once."""
        for fetch in [*led.untried, *led.tried]:
            fetch.fetched[led.at] = FetchedPartition(led.dropped)
            fetch.final = True
            if not fetch.reads:
                self._end(fetch)

    def offer(self) -> None:
        """Let fetches that wait try what has happened while the message was handled."""
        advanced_groups = self._queues.advanced_groups
        while self._woken or advanced_groups:
            if advanced_groups:
                self._attempt_first(advanced_groups.popleft())
                continue
            led = self._woken.popleft()
            max_locks = self._context.config(led.key.group_id).partition_max_record_locks
            while led.untried and led.owner is None and led.ready(max_locks):
                fetch, _ = led.untried.popitem(last=False)
                led.tried[fetch] = None
                if fetch.reads:
                    fetch.again = True
                else:
                    self._attempt(fetch)
            if self._zero_minimum and led.owner is None and led.acquirable(max_locks):
                self._end_zero_minimum(led)

    def _end_zero_minimum(self, led: LedPartition) -> None:
        """Room for a record is all that a minimum of 0 bytes asks for."""
        for fetch in [fetch for fetch in self._zero_minimum if led in fetch.leds and not fetch.reads]:
            fetch.final = True
            self._attempt(fetch)

    def _attempt_first(self, group_id: str) -> None:
        """The fetch that tried alone is done: the next one of its group may try."""
        fetch = self._queues.first(group_id)
        if fetch is not None and not fetch.reads:
            self._attempt(fetch)

    # ---- an attempt --------------------------------------------------------------------------------------------------

    def _attempt(self, fetch: ShareFetch) -> None:
        """Try all share-partitions of a fetch, at once or when it is this fetch's turn."""
        if fetch.min_bytes > 1 and not fetch.final and not self._queues.enter(fetch):
            if not fetch.waiting:
                self._wait(fetch)
            return
        fetch.start_over()
        self._next_wave(fetch)

    def _next_wave(self, fetch: ShareFetch) -> None:
        """Lock and read the next share-partitions that have something to offer, twice as many as the time before.

        Each may use an equal part of the bytes that are left. Kafka divides once, the remainder goes to random ones;
        here what one cannot use goes to those after it, and turns see to fairness.
        """
        config = self._context.config(fetch.group_id)
        leds, count = fetch.leds, len(fetch.leds)
        while fetch.unread < fetch.wave and fetch.position < count and fetch.bytes_left > 0:
            led = leds[fetch.position]
            fetch.position += 1
            if led.dropped:
                fetch.fetched[led.at] = FetchedPartition(led.dropped)
            elif led.owner is None and led.ready(config.partition_max_record_locks):
                self._read(fetch, led, max(1, fetch.bytes_left // (count - fetch.position + 1)), config)
        fetch.wave *= 2
        if not fetch.unread:
            self._finish_attempt(fetch)

    def _read(self, fetch: ShareFetch, led: LedPartition, max_bytes: int, config: GroupConfig) -> None:
        """Read from the next fetch offset.

        What begins beyond the largest window cannot be acquired now, and is read only where the minimum may need it.
        What comes back inside a window that has grown larger than allowed can be acquired.
        """
        share_partition, end_offset = led.share_partition, MAX_OFFSET
        if fetch.min_bytes <= 1:
            end_offset = max(share_partition.spso + config.partition_max_record_locks, share_partition.speo)
        led.owner = fetch
        led.fresh = True
        read = PartitionRead(fetch, led, share_partition.next_fetch_offset, max_bytes)
        fetch.reads.append(read)
        fetch.unread += 1
        fetch.bytes_left -= max_bytes
        call_id = self._context.next_id()
        self._reads[call_id] = read
        at, isolation = led.topic_partition, config.isolation_level
        self._context.effects.append(ReadLog(call_id, at, read.offset, max_bytes, isolation, end_offset))

    def log_read(self, answer: LogRead) -> None:
        """The log has answered. When it has answered all of a wave: acquire, read on, or wait."""
        read = self._reads.pop(answer.id)
        fetch, led = read.fetch, read.led
        if led.owner is not fetch:
            return  # the fetch has ended since, and let go of its locks
        if answer.error is Errors.OFFSET_OUT_OF_RANGE and read.offset > answer.log_start_offset:
            answer = answer._replace(error=Errors.NONE)  # beyond the log's end: what is asked for may still come
        committed = self._context.config(fetch.group_id).isolation_level is IsolationLevel.READ_COMMITTED
        end = answer.last_stable_offset if committed else answer.high_watermark
        read.answered(answer, end)
        if not answer.error:
            self._note_log_end(read, answer, end)
        fetch.unread -= 1
        fetch.bytes_left += read.max_bytes - read.size
        if fetch.unread:
            return
        fetch.final = fetch.final or self._satisfied(fetch)
        if fetch.final:
            self._take(fetch)
        if fetch.position < len(fetch.leds) and fetch.records_left > 0:
            self._next_wave(fetch)
        else:
            self._finish_attempt(fetch)

    def _note_log_end(self, read: PartitionRead, answer: LogRead, end: int) -> None:
        """What an answer says of offsets without records: where the log ends, and what it has lost."""
        led = read.led
        if led.fresh:
            led.log_end = end
        empty = not answer.batches and not led.dropped
        if empty and led.share_partition.note_missing(read.offset, end, self._context.now_ms):
            self.partitions.changed(led)

    def _satisfied(self, fetch: ShareFetch) -> bool:
        """Whether the minimum is met. An error is worth telling at once."""
        counted_bytes = 0
        for read in fetch.reads:
            counted_bytes += read.counted_bytes
            if read.answer is not None and read.answer.error:
                return True
        return counted_bytes >= fetch.min_bytes

    def _finish_attempt(self, fetch: ShareFetch) -> None:
        """The attempt has seen every share-partition that it could: end, or wait for more."""
        if not fetch.final and fetch.min_bytes <= 0:
            max_locks = self._context.config(fetch.group_id).partition_max_record_locks
            fetch.final = any(led.owner in (None, fetch) and led.acquirable(max_locks) for led in fetch.leds)
        if not fetch.final and not fetch.waiting:
            self._wait(fetch)
        if fetch.final:
            self._end(fetch)
            return
        self._unlock(fetch)
        if fetch.again:
            self._attempt(fetch)

    def _unlock(self, fetch: ShareFetch) -> None:
        """Let go of what the fetch holds; fetches that have not tried may do so now."""
        self._queues.leave(fetch)
        for read in fetch.reads:
            led = read.led
            assert led.owner is fetch
            led.owner = None
            if led.untried:
                self._woken.append(led)
        fetch.reads.clear()

    # ---- taking ------------------------------------------------------------------------------------------------------

    def _take(self, fetch: ShareFetch) -> None:
        """Acquire from what was read, in the order of turns, and let go of each share-partition."""
        for read in fetch.reads:
            led, answer = read.led, read.answer
            assert answer is not None
            if led.dropped:
                fetch.fetched[led.at] = FetchedPartition(led.dropped)
            elif answer.error is Errors.OFFSET_OUT_OF_RANGE:
                led.share_partition.advance_log_start(answer.log_start_offset)
                self.partitions.changed(led)
            elif answer.error:
                fetch.fetched[led.at] = FetchedPartition(answer.error)
                if answer.error in DROPPING:
                    self.partitions.drop(led, answer.error, f"the log could not be read: {answer.error.name}")
            elif answer.batches and fetch.records_left > 0:
                self._acquire(fetch, read, answer)
        self._unlock(fetch)

    def _acquire(self, fetch: ShareFetch, read: PartitionRead, answer: LogRead) -> None:
        led, context = read.led, self._context
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
            now_ms=context.now_ms,
        )
        self.partitions.changed(led)
        if acquired:
            fetch.fetched[led.at] = FetchedPartition(Errors.NONE, tuple(records), tuple(acquired))
            fetch.records_left -= sum([run.last_offset - run.first_offset + 1 for run in acquired])


def _within(batches: tuple[RecordBatch, ...], max_bytes: int) -> tuple[RecordBatch, ...]:
    """The whole batches that fit: only the first partition with records may exceed its share, by one batch."""
    for count, batch in enumerate(batches):
        max_bytes -= len(batch.data)
        if max_bytes < 0:
            return batches[:count]
    return batches
