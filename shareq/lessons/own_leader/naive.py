"""The oracle as a leader of the lab: record batches of one record, and state writes that are durable at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shareq.lessons.oracle import Oracle, OracleWrite
from shareq.lessons.own_leader.record import Record
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.records import NO_PRODUCER_ID, RecordBatch
from shareq.model.states import AcknowledgeType, AcquireMode

LONGEST_LOG: Final = 40
_LOG: Final = [RecordBatch(at, at, 0, 0, 0, NO_PRODUCER_ID, 0, -1, 1, 0, b"") for at in range(LONGEST_LOG)]


class NaiveLeader:
    """Has the methods of `Leader`. It acquires one record at a time, so that throttled delivery has nothing to cut."""

    def __init__(self, lock_ms: int, limit: int, locks: int) -> None:
        self._oracle = Oracle()
        self._config = GroupConfig(
            record_lock_duration_ms=lock_ms, delivery_count_limit=limit, partition_max_record_locks=locks
        )

    @property
    def spso(self) -> int:
        return self._oracle.spso

    @property
    def window_end(self) -> int:
        return self._oracle.window_end

    @property
    def records(self) -> dict[int, Record]:
        recs = sorted(self._oracle.recs.items())
        return {offset: Record(rec.state.name.lower(), rec.count, rec.member, rec.deadline) for offset, rec in recs}

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        taken = [self._acquire_one(member, log_end, now_ms) for _ in range(most)]
        return [(first, count) for runs in taken for first, _, count in runs]

    def _acquire_one(self, member: str, log_end: int, now_ms: int) -> list[tuple[int, int, int]]:
        oracle = self._oracle
        offset = oracle.next_fetch_offset
        return oracle.acquire(
            _LOG[offset:log_end],
            offset,
            member_id=member,
            max_records=1,
            batch_size=1,
            mode=AcquireMode.RECORD_LIMIT,
            config=self._config,
            aborted=(),
            now_ms=now_ms,
        )

    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        types = (int(AcknowledgeType[kind.upper()]),)
        batches = [AcknowledgementBatch(first_offset=at, last_offset=at, acknowledge_types=types) for at in offsets]
        result = self._oracle.acknowledge(member, batches, self._config, now_ms)
        if isinstance(result, Errors):
            return result.name
        self._settle(result, now_ms)
        return "ok"

    def expire(self, now_ms: int) -> None:
        self._settle(self._oracle.expire(now_ms, self._config), now_ms)

    def _settle(self, write: OracleWrite | None, now_ms: int) -> None:
        if write is not None:
            self._oracle.settle(write.write_id, Errors.NONE, self._config, now_ms)
