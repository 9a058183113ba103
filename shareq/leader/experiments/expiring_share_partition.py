"""A share-partition whose records have a time to live. Rules: BEHAVIOUR.md, "Time to live"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from shareq.leader.acquire import Acquisition
from shareq.leader.experiments.expiring_acquisition import ExpiringAcquisition, expired_ranges
from shareq.leader.experiments.resting_share_partition import RestingSharePartition
from shareq.model.configs import GroupConfig
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_fetch import AcquiredRecords
from shareq.model.records import AbortedTransaction, KeyRun, RecordBatch
from shareq.model.states import PartitionLoadState
from shareq.model.waits import Wait


class ExpiringSharePartition(RestingSharePartition):
    """Has the interface of SharePartition. The start of an empty window may skip records that are too old: `skipping`
    while the first offset that is not is looked up, `_looked_up` is the last SPSO for which that was done."""

    __slots__ = ("_looked_up", "skipping")

    _acquisition: ClassVar[type[Acquisition]] = ExpiringAcquisition

    def __init__(self, key: SharePartitionKey, topic: str, *, leader_epoch: int, traced: bool) -> None:
        super().__init__(key, topic, leader_epoch=leader_epoch, traced=traced)
        self.skipping = False
        self._looked_up = -1

    def acquire(
        self,
        batches: Sequence[RecordBatch],
        fetch_offset: int,
        *,
        config: GroupConfig,
        aborted: Sequence[AbortedTransaction],
        keys: Sequence[KeyRun] = (),
        **limits: Any,
    ) -> tuple[list[AcquiredRecords], list[RecordBatch]]:
        """Records that are too old are archived, or begin their way to the dead-letter queue, and are not acquired.
        While the group is paused no record is acquired or judged, even if its read began before."""
        if _paused(config):
            return [], []
        self._writes.dead_letters |= config.dead_letter_queue
        return super().acquire(batches, fetch_offset, config=config, aborted=aborted, keys=keys, **limits)

    def waits_for(self, *, full: bool, at_log_end: bool) -> Wait | None:
        return Wait.EXPIRED if self.skipping else super().waits_for(full=full, at_log_end=at_log_end)

    def set_day_ahead(self, ms: int) -> None:
        """Set by how much the time of day, which the timestamps have, is ahead of the actor's time."""
        self._window.day_ahead_ms = ms

    def may_skip(self, batches: Sequence[RecordBatch], config: GroupConfig, day_ms: int) -> bool:
        """True if the window is empty and the next of the read `batches` is too old, unless its records are to go to
        the dead-letter queue, or a look-up has found nothing to skip."""
        experiments, spso = config.experiments, self.spso
        if experiments is None or experiments.record_ttl_ms < 0 or _paused(config):
            return False
        if self.status is not PartitionLoadState.ACTIVE:
            return False
        queue = config.dead_letter_queue and experiments.record_ttl_deadletter_enable
        if queue or self.window_end != spso or (self._looked_up == spso and not self.skipping):
            return False
        expired = expired_ranges(batches[:1], experiments.record_ttl_ms, day_ms)
        return bool(expired) and batches[0].last_offset >= spso

    def begin_skip(self) -> None:
        """The first offset that is not too old is looked up."""
        self.skipping, self._looked_up = True, self.spso

    def end_skip(self, offset: int, now_ms: int) -> None:
        """All records below `offset` are too old: the window begins there, and the next state write says so. If records
        have entered the window meanwhile, or there is nothing to skip, fetches read them."""
        self.skipping = False
        window, spso = self._window, self.spso
        if self.status is not PartitionLoadState.ACTIVE or not self._looked_up == spso == self.window_end < offset:
            return
        if self._recorder is not None:
            self._recorder.skipped(spso, offset)
        window.raise_log_start(offset)
        self._writes.note_unwritten([(spso, offset)], now_ms)
        self._record_window()


def _paused(config: GroupConfig) -> bool:
    return config.experiments is not None and not config.experiments.delivery_enable
