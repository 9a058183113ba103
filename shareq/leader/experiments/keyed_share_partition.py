"""A share-partition whose records are delivered in order by key. Rules: BEHAVIOUR.md, "Order by key"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from shareq.leader.aborted_transactions import aborted_ranges, outside
from shareq.leader.acquire import Acquisition
from shareq.leader.experiments.cut_batches import acquired_only
from shareq.leader.experiments.expiring_share_partition import ExpiringSharePartition
from shareq.leader.experiments.keyed_acquisition import KeyedAcquisition
from shareq.leader.experiments.keyed_window import KeyedWindow
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.experiments import Experiments
from shareq.model.messages.share_fetch import AcquiredRecords
from shareq.model.messages.share_state import StagedBatch, StateBatch
from shareq.model.records import AbortedTransaction, KeyRun, RecordBatch
from shareq.model.states import IsolationLevel
from shareq.model.waits import Wait


class KeyedSharePartition(ExpiringSharePartition):
    """Has the interface of SharePartition, and needs the keys of what it acquires."""

    __slots__ = ("_keyed",)

    needs_keys = True
    _acquisition: ClassVar[type[Acquisition]] = KeyedAcquisition

    def _new_window(self) -> Window:
        self._resting = self._keyed = KeyedWindow(self._recorder)
        return self._keyed

    def load(
        self,
        state_epoch: int,
        start_offset: int,
        state_batches: Sequence[StateBatch],
        *,
        config: GroupConfig,
        staged: Sequence[StagedBatch] = (),
    ) -> bool:
        """The number of records of a key in flight is read now: a change holds after the next load."""
        self._keyed.most = (config.experiments or Experiments()).key_max_in_flight
        return super().load(state_epoch, start_offset, state_batches, config=config, staged=staged)

    def can_acquire(self, max_record_locks: int) -> bool:
        """Nothing, until the transactions have ended that were open at the load: the keys of what they have staged are
        not known, and no later record of these keys may overtake it."""
        return not self.staged_at_load and super().can_acquire(max_record_locks)

    def waits_for(self, *, full: bool, at_log_end: bool) -> Wait | None:
        return Wait.UNKNOWN_KEYS if self.staged_at_load else super().waits_for(full=full, at_log_end=at_log_end)

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
        """Records of aborted transactions, which are archived, wait for no other record of their key. If the group cuts
        batches, they have the acquired records only."""
        if not batches or self.staged_at_load:
            return [], []
        if aborted and config.isolation_level is IsolationLevel.READ_COMMITTED:
            keys = outside(keys, aborted_ranges(batches, aborted))
        self._keyed.begin(keys, batches[0].base_offset, batches[-1].last_offset + 1)
        acquired, records = super().acquire(batches, fetch_offset, config=config, aborted=aborted, **limits)
        self._keyed.end()
        cuts = config.experiments is not None and config.experiments.key_cut_batches_enable
        return acquired, acquired_only(records, acquired) if cuts else records
