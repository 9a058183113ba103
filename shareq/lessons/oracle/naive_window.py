"""The records of the naive model, by offset, and the bounds of their window."""

from __future__ import annotations

from dataclasses import dataclass

from shareq.model.configs import GroupConfig
from shareq.model.states import RecordState

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = (
    RecordState.AVAILABLE,
    RecordState.ACQUIRED,
    RecordState.ACKNOWLEDGED,
    RecordState.ARCHIVING,
    RecordState.ARCHIVED,
)
TERMINAL = (ACKNOWLEDGED, ARCHIVED)


@dataclass(slots=True)
class Rec:
    """One record. `batch`: the range that entered the window together; `write`: id of its write in flight, to `to`.
    `rejected`, `expired`: the reason of an archiving record; `sent`: it is on its way to the dead-letter queue.
    `delay`: the write is a release, with this rest (-1: the rule of the group). An available record with a deadline
    rests until then."""

    batch: tuple[int, int]
    state: RecordState
    count: int
    member: str | None = None
    deadline: int | None = None
    write: int | None = None
    to: RecordState | None = None
    rejected: bool = False
    expired: bool = False
    sent: bool = False
    delay: int | None = None
    key: bytes | None = None

    @property
    def takeable(self) -> bool:
        """True if a fetch may acquire the record: it is available, and does not rest until a deadline."""
        return self.state is AVAILABLE and self.deadline is None

    @property
    def target(self) -> RecordState:
        return self.state if self.to is None else self.to

    def set_state(self, state: RecordState) -> None:
        self.state, self.member, self.deadline, self.write, self.to, self.delay = state, None, None, None, None, None

    def after_release(self, config: GroupConfig, *, below: bool) -> RecordState:
        if below:
            return ARCHIVED
        if self.count >= config.delivery_count_limit:
            return ARCHIVING if config.dead_letter_queue else ARCHIVED
        return AVAILABLE

    def release(self, config: GroupConfig, *, below: bool) -> None:
        self.set_state(self.after_release(config, below=below))


class NaiveWindow:
    """Records from the start offset on; those below may still be held after the log's start has moved.

    `holes`: offsets in the window that were never stored and can be in the log. `unwritten`: offsets whose state has
    changed without a state write.
    """

    def __init__(self) -> None:
        self.recs: dict[int, Rec] = {}
        self.most: int | None = None  # with order by key: the records of a key in flight
        self.taking: set[int] = set()  # offsets that the acquisition under way has taken
        self.unlearned: set[int] = set()
        self.spso = self.window_end = 0
        self.holes: set[int] = set()
        self.unwritten: set[int] = set()

    def batches(self) -> list[tuple[int, int]]:
        return sorted({rec.batch for rec in self.recs.values()})

    @property
    def delivery_complete_count(self) -> int:
        return sum(rec.target in TERMINAL for offset, rec in self.recs.items() if offset >= self.spso)

    @property
    def next_fetch_offset(self) -> int:
        waiting = [o for o in range(self.spso, self.window_end) if o in self.holes or self.takeable(o)]
        return min(waiting, default=self.window_end)

    def takeable(self, offset: int) -> bool:
        rec = self.recs.get(offset)
        if rec is None or not rec.takeable:
            return False
        if self.most is None or rec.key is None:
            return True
        lane = [o for o, other in self.recs.items() if other.key == rec.key]
        taken = [o for o in lane if o in self.taking and self.recs[o].state is ACQUIRED]
        held = [o for o in lane if self.recs[o].state is ACQUIRED]
        waiting = sorted(o for o in lane if self.recs[o].state is AVAILABLE)
        return held == taken and waiting.index(offset) < self.most - len(taken)

    def can_acquire(self, max_locks: int) -> bool:
        return self.window_end - self.spso < max_locks or self.next_fetch_offset != self.window_end

    @property
    def first_unfinished(self) -> int:
        return min(
            [*self.holes, *(o for o, rec in self.recs.items() if rec.state not in TERMINAL)], default=self.window_end
        )

    def skip_gaps(self, offset: int) -> None:
        self.holes = {hole for hole in self.holes if hole >= offset}

    def note_missing(self, first: int, end: int) -> bool:
        """Handle a read from `first` that returned no record below `end`; True if a record or hole was dropped."""
        lost = [o for o in range(first, end) if o in self.recs and self.recs[o].target is AVAILABLE]
        for offset in lost:
            self.recs[offset].set_state(ARCHIVED)
            self.unwritten.add(offset)
        passed = bool(self.holes) and first <= min(self.holes) < end
        if passed:
            self.skip_gaps(end)
        return bool(lost) or passed
