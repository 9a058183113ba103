"""Which leader epoch wrote which offsets, so that clients notice a log that was cut (KIP-101, KIP-320)."""

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
        """`epoch` writes from `start_offset` on; an epoch before it that wrote nothing is forgotten."""
        if epoch <= self.latest:
            return
        while self._starts and self._starts[-1] >= start_offset:
            self._starts.pop()
            self._epochs.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def at(self, offset: int) -> int:
        """The epoch that wrote `offset`, or will; -1 if unknown."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else -1

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest known epoch up to `epoch`, and where the next one began. Nothing for one yet to come.

        For an epoch whose records are all gone, it is the epoch itself and the first offset of what is left.
        """
        if epoch < 0 or epoch > self.latest:
            return EpochEndOffset()
        index = bisect_right(self._epochs, epoch)
        end = self._starts[index] if index < len(self._starts) else log_end_offset
        return EpochEndOffset(self._epochs[index - 1] if index else epoch, end)

    def log_start_moved(self, log_start_offset: int) -> None:
        """Forget the epochs that ended at or below the log's start."""
        gone = max(bisect_right(self._starts, log_start_offset) - 1, 0)
        del self._epochs[:gone], self._starts[:gone]
        if self._starts:
            self._starts[0] = max(self._starts[0], log_start_offset)
