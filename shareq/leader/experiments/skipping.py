"""Skipping: a leader whose empty windows pass records that are too old, without reading them. Rules: BEHAVIOUR.md,
"Time to live"."""

from __future__ import annotations

from shareq.leader.experiments.browsing import BrowsingShareLeader
from shareq.leader.experiments.errands import Errand
from shareq.leader.experiments.expiring_share_partition import ExpiringSharePartition
from shareq.leader.fetch_states import LockEvent
from shareq.leader.share_fetch import LedPartition
from shareq.model.actor import FindOffset, LogRead, OffsetFound, ReadLog
from shareq.model.time_of_day import TimeOfDay, same_time


class SkippingShareLeader(BrowsingShareLeader):
    """Has the interface of ShareLeader, with all experiments."""

    def __init__(self, broker_id: int, *, traced: bool, sole: bool = False, time_of_day: TimeOfDay = same_time) -> None:
        super().__init__(broker_id, traced=traced, sole=sole, time_of_day=time_of_day)
        self._fetches.skip = self._skip

    def _skip(self, led: LedPartition, read: LogRead) -> bool:
        """True if the read records are too old, and the start of the window is to pass all such records. Fetches wait
        until it does."""
        context, share_partition = self._context, led.share_partition
        config = context.config(led.key.group_id)
        assert isinstance(share_partition, ExpiringSharePartition)
        share_partition.set_day_ahead(context.day_ms - context.now_ms)
        if not share_partition.may_skip(read.batches, config, context.day_ms):
            return False
        led.step(LockEvent.EXHAUSTED)
        if not share_partition.skipping:
            share_partition.begin_skip()
            ttl_ms = config.experiments.record_ttl_ms if config.experiments else 0
            self._errands.begin(self._pass_expired(led, share_partition, context.day_ms - ttl_ms + 1, read))
        return True

    def _pass_expired(
        self, led: LedPartition, share_partition: ExpiringSharePartition, oldest_ms: int, read: LogRead
    ) -> Errand:
        """Find the record batch of the first record from `oldest_ms` on; it lives as long as its youngest record. If
        there is none, the window begins at the end of the log, as of the read."""
        log, offset = led.topic_partition, read.high_watermark
        found: OffsetFound = yield lambda call_id: FindOffset(call_id, log, oldest_ms)
        if found.offset >= 0:
            at: LogRead = yield lambda call_id: ReadLog(call_id, log, found.offset, 1)
            offset = at.batches[0].base_offset if at.batches else -1
        share_partition.end_skip(-1 if found.error else offset, self._context.now_ms)
        if not led.dropped:
            self._partitions.changed(led)
