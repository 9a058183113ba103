"""Leader epochs of a log and their first offsets, with which clients detect truncation (KIP-101, KIP-320)."""

from __future__ import annotations

from bisect import bisect_right

from shareq.log.results import EpochEndOffset


class LeaderEpochs:
    """Leader epochs and their first offsets, both strictly growing."""

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else -1

    def begin(self, epoch: int, start_offset: int) -> None:
        """Start `epoch` at `start_offset`; an epoch that wrote no record is removed."""
        if epoch <= self.latest:
            return
        while self._starts and self._starts[-1] >= start_offset:
            self._starts.pop()
            self._epochs.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def at(self, offset: int) -> int:
        """The epoch at which `offset` was or will be written; -1 if unknown."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else -1

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest known epoch up to `epoch`, and the first offset of the next one; all -1 above the current epoch.

        If all records of `epoch` are gone: `epoch` and the log's first offset.
        """
        if epoch < 0 or epoch > self.latest:
            return EpochEndOffset()
        index = bisect_right(self._epochs, epoch)
        end = self._starts[index] if index < len(self._starts) else log_end_offset
        return EpochEndOffset(self._epochs[index - 1] if index else epoch, end)

    def log_start_moved(self, log_start_offset: int) -> None:
        """Remove the epochs that ended at or below the log start."""
        gone = max(bisect_right(self._starts, log_start_offset) - 1, 0)
        del self._epochs[:gone], self._starts[:gone]
        if self._starts:
            self._starts[0] = max(self._starts[0], log_start_offset)
