"""Wrong answers of the lab "write your own share-partition leader"."""

from collections.abc import Sequence

from shareq.lessons.own_leader import Record
from shareq.lessons.solutions.lesson_16 import Acknowledges, Acquires, Expires, OwnLeader


class CountsFromZero(Acquires):
    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        return [(offset, count - 1) for offset, count in super().acquire(member, most, log_end, now_ms)]


class NeedsNoLog(Acquires):
    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        return super().acquire(member, most, 1_000, now_ms)


class WithoutRecordLocks(Acquires):
    def __init__(self, lock_ms: int, limit: int, locks: int) -> None:
        super().__init__(lock_ms, limit, 1_000)


class CommitsLikeAConsumerGroup(Acknowledges):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        self.spso = offsets[-1] + 1
        return "ok"


class ChangesBeforeItHasCheckedAll(Acknowledges):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        answers = [super(ChangesBeforeItHasCheckedAll, self).acknowledge(member, [at], kind, now_ms) for at in offsets]
        return max(answers, key=len)


class AnyMember(Acknowledges):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        return super().acknowledge(self.records[offsets[0]].member or member, offsets, kind, now_ms)


class OneMillisecondLate(Expires):
    def expire(self, now_ms: int) -> None:
        super().expire(now_ms - 1)


class AllLocksAtOnce(Expires):
    def expire(self, now_ms: int) -> None:
        if any(record.deadline_ms is not None and record.deadline_ms <= now_ms for record in self.records.values()):
            super().expire(now_ms + self.lock_ms)


class RenewsForAnyMember(Expires):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        if kind == "renew":
            self.records[offsets[0]].deadline_ms = now_ms + self.lock_ms
            return "ok"
        return super().acknowledge(member, offsets, kind, now_ms)


class StopsAtItsHoles(OwnLeader):
    def advance(self) -> None:
        if self.records[self.spso].state == "acknowledged":
            super().advance()


class OneDeliveryMore(OwnLeader):
    def end_lock(self, record: Record, state: str) -> None:
        record.count -= 1
        super().end_lock(record, state)
        record.count += 1


class CountsWhatIsNotDone(OwnLeader):
    """The room in the window: what is done above the SPSO takes room, too."""

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        done = sum(record.state in ("acknowledged", "archived") for record in self.records.values())
        self.locks += done
        acquired = super().acquire(member, most, log_end, now_ms)
        self.locks -= done
        return acquired


class RefusesBelowTheStart(OwnLeader):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        if offsets[0] < self.spso:
            return "INVALID_RECORD_STATE"
        return super().acknowledge(member, offsets, kind, now_ms)


class RenewalsCount(OwnLeader):
    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        answer = super().acknowledge(member, offsets, kind, now_ms)
        if kind == "renew" and answer == "ok" and offsets[0] in self.records:
            self.records[offsets[0]].count += 1
        return answer


class KeepsTheStartOfTheWindow(OwnLeader):
    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        acquired = super().acquire(member, most, log_end, now_ms)
        return sorted(acquired, key=lambda pair: -pair[1])


WRONG = {
    "16.1": [
        (CountsFromZero, "yours        [(0, 0), (1, 0)]"),
        (NeedsNoLog, "✗ the log has an end"),
        (WithoutRecordLocks, "✗ the record locks bound the window"),
    ],
    "16.2": [
        (CommitsLikeAConsumerGroup, "✗ a released record comes again, with the next count"),
        (ChangesBeforeItHasCheckedAll, "✗ all or none"),
        (AnyMember, "✗ only the holder acknowledges"),
    ],
    "16.3": [
        (OneMillisecondLate, "✗ a lock ends with its deadline, not before"),
        (AllLocksAtOnce, "yours        SPSO 0      ○1   ○1"),
        (RenewsForAnyMember, "✗ only the holder renews"),
    ],
    "16.4": [
        (StopsAtItsHoles, "✗ a release after the last delivery archives the record"),
        (OneDeliveryMore, "✗ a release after the last delivery archives the record"),
        (CountsWhatIsNotDone, "✗ records that are done still fill the window"),
    ],
    "16.5": [
        (RefusesBelowTheStart, "runs differ, this is the shortest one"),
        (RenewalsCount, "runs differ, this is the shortest one"),
        (KeepsTheStartOfTheWindow, "runs differ, this is the shortest one"),
    ],
}
