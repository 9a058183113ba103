"""A share-partition with experiments: what its group has configured beyond Kafka. Rules: BEHAVIOUR.md."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.leader.acquisition_locks import AcquisitionLocks
from shareq.leader.experiments.resting_window import Delay, RestingWindow, RestRule
from shareq.leader.experiments.staging_share_partition import StagingSharePartition
from shareq.leader.share_partition import PreparedWrite
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_fetch import RULE_DELAY, AcknowledgementBatch
from shareq.model.states import AcknowledgeType


class RestingSharePartition(StagingSharePartition):
    """Has the interface of SharePartition. Its released records may rest: `_rests` has the ends of the rests, `_delays`
    the rests that clients requested, by write."""

    __slots__ = ("_delays", "_resting", "_rests")

    def __init__(self, key: SharePartitionKey, topic: str, *, leader_epoch: int, traced: bool) -> None:
        super().__init__(key, topic, leader_epoch=leader_epoch, traced=traced)
        self._rests = AcquisitionLocks()
        self._delays: dict[int, list[Delay]] = {}

    def _new_window(self) -> Window:
        self._resting = RestingWindow(self._recorder)
        return self._resting

    @property
    def next_deadline_ms(self) -> int | None:
        deadlines = super().next_deadline_ms, self._rests.next_ms(self.spso)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Errors | PreparedWrite | None:
        """As for a plain share-partition; a delay above the group's longest rest is an invalid request."""
        delayed = [batch for batch in batches if batch.release_delay_ms != RULE_DELAY]
        longest_ms = (config.experiments or Experiments()).release_backoff_max_ms
        if any(not 0 <= batch.release_delay_ms <= longest_ms for batch in delayed):
            return self._refused(member_id, Errors.INVALID_REQUEST)
        outcome = super().acknowledge(member_id, batches, config, now_ms)
        if delayed and isinstance(outcome, PreparedWrite):
            self._delays[outcome.write_id] = [delay for batch in delayed for delay in _delays(batch)]
        return outcome

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> bool:
        window, delays = self._resting, self._delays.pop(write_id, ())
        window.rule = RestRule(now_ms, config.experiments or Experiments(), delays)
        moved = super().settle(write_id, error, config, now_ms)
        for until_ms, first, end in window.rests:
            self._rests.add(until_ms, first, end)
        window.rests.clear()
        return moved

    def expire(self, now_ms: int, config: GroupConfig) -> PreparedWrite | None:
        """End rests, too: they need no state write."""
        for first, end in self._rests.pop_due(now_ms):
            self._resting.end_rests(first, end, now_ms)
        return super().expire(now_ms, config)


def _delays(batch: AcknowledgementBatch) -> list[Delay]:
    """The rests that one batch requests: of its released records only."""
    first, end, delay_ms = batch.first_offset, batch.last_offset + 1, batch.release_delay_ms
    types = batch.acknowledge_types
    if len(types) == 1:
        return [(first, end, delay_ms)] if types[0] == AcknowledgeType.RELEASE else []
    return [(first + n, first + n + 1, delay_ms) for n, kind in enumerate(types) if kind == AcknowledgeType.RELEASE]
