"""Solutions of the lab "write your own share-partition leader": each step adds to the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shareq.lessons.own_leader import Record


class Acquires:
    def __init__(self, lock_ms: int, limit: int, locks: int) -> None:
        self.lock_ms, self.limit, self.locks = lock_ms, limit, locks
        self.records: dict[int, Record] = {}
        self.spso = self.end = 0

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        again = [offset for offset, record in sorted(self.records.items()) if record.state == "available"][:most]
        room = min(most - len(again), self.spso + self.locks - self.end, log_end - self.end)
        new = range(self.end, self.end + max(0, room))
        self.records |= {offset: Record() for offset in new}
        self.end += len(new)
        for offset in (*again, *new):
            record = self.records[offset]
            record.state, record.count = "acquired", record.count + 1
            record.member, record.deadline_ms = member, now_ms + self.lock_ms
        return [(offset, self.records[offset].count) for offset in (*again, *new)]


class Acknowledges(Acquires):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        named = [self.records[offset] for offset in offsets if offset >= self.spso]
        if any(record.member != member for record in named):
            return "INVALID_RECORD_STATE"
        for record in named:
            if kind == "renew":
                record.deadline_ms = now_ms + self.lock_ms
            else:
                self.end_lock(record, {"accept": "acknowledged", "reject": "archived"}.get(kind, "available"))
        self.advance()
        return "ok"

    def end_lock(self, record: Record, state: str) -> None:
        record.state, record.member, record.deadline_ms = state, None, None

    def advance(self) -> None:
        while self.spso < self.end and self.records[self.spso].state in ("acknowledged", "archived"):
            del self.records[self.spso]
            self.spso += 1


class Expires(Acknowledges):
    def expire(self, now_ms: int) -> None:
        for record in self.records.values():
            if record.deadline_ms is not None and record.deadline_ms <= now_ms:
                self.end_lock(record, "available")
        self.advance()


class OwnLeader(Expires):
    def end_lock(self, record: Record, state: str) -> None:
        used_up = state == "available" and record.count >= self.limit
        super().end_lock(record, "archived" if used_up else state)


SOLUTIONS: Final = {
    "16.1": Acquires,
    "16.2": Acknowledges,
    "16.3": Expires,
    "16.4": OwnLeader,
    "16.5": OwnLeader,
}
