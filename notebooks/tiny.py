"""A share group on one screen: one partition, its records in flight, and the rules by which they change hands.

`python notebooks/tiny.py` runs a crew of three against it. It imports nothing of shareq. ARCHITECTURE.md leads from
each of its lines to the file that does the same for all of Kafka's cases.
"""

from dataclasses import dataclass

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "available", "acquired", "acknowledged", "archived"
TERMINAL = (ACKNOWLEDGED, ARCHIVED)

# What can happen to a record in flight. A pair that is not here is refused.
NEXT_STATE = {
    (AVAILABLE, "acquire"): ACQUIRED,
    (ACQUIRED, "accept"): ACKNOWLEDGED,
    (ACQUIRED, "release"): AVAILABLE,
    (ACQUIRED, "reject"): ARCHIVED,
    (ACQUIRED, "renew"): ACQUIRED,
    (ACQUIRED, "time-out"): AVAILABLE,
    (ACQUIRED, "leave"): AVAILABLE,
}


@dataclass
class Record:
    """A record in flight. `deadline_ms` is the end of the lock of the member that holds it."""

    state: str = AVAILABLE
    delivery_count: int = 0
    member: str | None = None
    deadline_ms: int | None = None

    def __str__(self) -> str:
        mark = {AVAILABLE: "·", ACKNOWLEDGED: "✓", ARCHIVED: "✗"}.get(self.state, self.member)
        return f"{mark}{self.delivery_count}"


class SharePartition:
    """The window of a share group on one partition, as its leader keeps it in memory.

    `window` has the record of each offset from the SPSO (share-partition start offset) to the SPEO (end offset). What
    lies below is done, what lies above was not delivered yet.
    """

    def __init__(self, lock_ms: int = 30_000, delivery_count_limit: int = 5, max_record_locks: int = 2_000) -> None:
        self.lock_ms = lock_ms
        self.delivery_count_limit = delivery_count_limit
        self.max_record_locks = max_record_locks
        self.spso = 0
        self.window: dict[int, Record] = {}

    @property
    def window_end(self) -> int:
        """The offset after the SPEO: the first that was never delivered."""
        return self.spso + len(self.window)

    def acquire(self, member: str, max_records: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        """Lock records for a member, available ones of the window first; returns their offsets and delivery counts."""
        offsets = [offset for offset, record in self.window.items() if record.state == AVAILABLE][:max_records]
        # The limit counts the whole window, finished records in its middle included: so it bounds the memory.
        while len(offsets) < max_records and self.window_end < log_end and len(self.window) < self.max_record_locks:
            offsets.append(self.window_end)
            self.window[self.window_end] = Record()
        for offset in offsets:
            record = self.window[offset]
            record.state = NEXT_STATE[record.state, "acquire"]
            record.delivery_count += 1
            record.member, record.deadline_ms = member, now_ms + self.lock_ms
        return [(offset, self.window[offset].delivery_count) for offset in offsets]

    def acknowledge(self, member: str, offsets: list[int], event: str, now_ms: int) -> str:
        """Accept, release, reject or renew records that a member holds: all of them, or none and an error.

        An offset below the SPSO is done: naming it again has no effect.
        """
        named = [self.window.get(offset, Record()) for offset in offsets if offset >= self.spso]
        if any(record.member != member for record in named):
            return "INVALID_RECORD_STATE"
        for record in named:
            if event == "renew":
                record.deadline_ms = now_ms + self.lock_ms
            else:
                self._end_lock(record, event)
        self._advance()
        return "NONE"

    def expire(self, now_ms: int) -> None:
        """Take back the records whose lock has run out. The holder is not asked; its next acknowledgement fails."""
        for record in self.window.values():
            if record.deadline_ms is not None and record.deadline_ms <= now_ms:
                self._end_lock(record, "time-out")
        self._advance()

    def leave(self, member: str) -> None:
        """A member has gone: its records are free at once."""
        for record in self.window.values():
            if record.member == member:
                self._end_lock(record, "leave")
        self._advance()

    def _end_lock(self, record: Record, event: str) -> None:
        record.state = NEXT_STATE[record.state, event]
        record.member = record.deadline_ms = None
        if record.state == AVAILABLE and record.delivery_count >= self.delivery_count_limit:
            record.state = ARCHIVED  # a record that fails every time must not be delivered for ever

    def _advance(self) -> None:
        """Move the SPSO past the finished records at the start of the window."""
        while self.window and self.window[self.spso].state in TERMINAL:
            del self.window[self.spso]
            self.spso += 1

    def __str__(self) -> str:
        return f"SPSO {self.spso:2} | " + " ".join(map(str, self.window.values()))


def main() -> None:
    """A crew of three: record 1 fails at every attempt, and C dies with two records in its hands."""
    part, log_end = SharePartition(lock_ms=1_000, delivery_count_limit=3, max_record_locks=6), 9

    def show(what: str) -> None:
        print(f"{what:45}{part}")

    part.acquire("A", 2, log_end, 0), part.acquire("B", 2, log_end, 0), part.acquire("C", 2, log_end, 0)
    show("A, B and C acquire two records each")
    part.acknowledge("A", [0], "accept", 100)
    part.acknowledge("A", [1], "release", 100)
    part.acknowledge("B", [2, 3], "accept", 200)
    show("A accepts 0, releases 1; B accepts 2 and 3")
    part.acquire("B", 2, log_end, 300)
    show("B acquires 1 again, and 6, the first new one")
    part.acknowledge("B", [1], "release", 400)
    part.acquire("A", 1, log_end, 500)
    show("A acquires 1 for the third and last time")
    part.expire(1_000)
    show("C is dead: after 1 s its locks run out")
    show("C accepts 4: " + part.acknowledge("C", [4], "accept", 1_100))
    part.acknowledge("A", [1], "release", 1_200)
    show("A releases 1: its attempts are used up")
    part.acquire("A", 5, log_end, 1_300)
    part.acknowledge("A", [4, 5, 8], "accept", 1_400)
    show("A acquires all that is left, accepts 4, 5, 8")
    print("A letter holds the record, · is available, ✓ acknowledged, ✗ archived; the digit counts deliveries.")


if __name__ == "__main__":
    main()
