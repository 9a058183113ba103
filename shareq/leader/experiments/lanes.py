"""Lanes: the unfinished records of a key in the window, and which of them may be acquired."""

from __future__ import annotations

from bisect import bisect_left

from shareq.model.states import RecordState

WAITING, HELD = RecordState.AVAILABLE, RecordState.ACQUIRED


class Lane:
    """The unfinished records of one key, by offset: `waiting` ones are AVAILABLE, ascending; `held` is the number of
    ACQUIRED ones. `taken`: those that the acquisition under way has acquired. `open`: the waiting ones that are in the
    window's map `available`.
    """

    __slots__ = ("held", "key", "open", "taken", "waiting")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.held = self.taken = 0
        self.waiting: list[int] = []
        self.open: list[int] = []

    def move(self, first: int, end: int, old: RecordState | None, new: RecordState) -> None:
        """Records [first, end), all of this lane, go from the state `old` to `new`."""
        at = bisect_left(self.waiting, first)
        if old is WAITING:
            del self.waiting[at : at + end - first]
        if new is WAITING:
            self.waiting[at:at] = range(first, end)
        self.held += (end - first) * ((new is HELD) - (old is HELD))

    def acquirable(self, most: int) -> list[int]:
        """The first `most` waiting records, if none is held; during an acquisition, less those that it has taken."""
        return self.waiting[: most - self.taken] if self.held == self.taken else []

    @property
    def empty(self) -> bool:
        return not self.held and not self.waiting
