"""Random runs of the leader with a time to live: faults, reloads, moves of the leader and of the log's start.

T1: nothing is acquired whose time to live is over. T2: nothing expires, and no window passes anything, earlier. T3: no
record expires that a member holds: the strict fold of the journal refuses it. The checks of the plain runs hold, too.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from shareq.model.events import ExpiredRecordsSkipped, RecordsChanged
from shareq.model.states import RecordEvent, RecordState
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry
from tests.leader.experiments.browsing import ENABLED
from tests.leader.test_share_leader_random import PARTITIONS, RandomRun

TTL_MS = 20_000
TTL = {"shareq.record.ttl.ms": str(TTL_MS), "shareq.release.backoff.ms": "2000"}
QUEUE = {"errors.deadletterqueue.topic.name": "dlq.t", "shareq.record.ttl.deadletter.enable": "true"}


class ExpiringRun(RandomRun):
    """Each event of the leader is folded, and compared with the ages of the record batches."""

    def __init__(self, seed: int, group: dict[str, str]) -> None:
        super().__init__(seed, broker=ENABLED, group=group)
        self.stage.stamped = True
        self.folds = [SharePartitionState("g", "t", partition) for partition in range(PARTITIONS)]
        self.orders = 0
        for log in self.stage.logs:
            log.keys = "ABCA-DEAFG" * 2000

    def collect(self) -> None:
        for event in self.stage.events:
            self.orders += 1
            if getattr(event, "topic", None) == "t" and hasattr(event, "partition"):
                fold = self.folds[event.partition]
                fold.log_start = self.stage.logs[event.partition].start
                apply_entry(fold, Entry(self.orders, self.stage.now_ms, 0, event))
                self.check(event)
        super().collect()

    def check(self, event: Any) -> None:
        """An event of this step, or of time that has passed in it: none but fetches acquire and expire."""
        if isinstance(event, RecordsChanged):
            acquired = event.cause == RecordEvent.ACQUIRE and event.state == RecordState.ACQUIRED
            expired = event.cause == RecordEvent.EXPIRED
        else:
            acquired, expired = False, isinstance(event, ExpiredRecordsSkipped)
        if not acquired and not expired:
            return
        log = self.stage.logs[event.partition]
        ages = [
            self.stage.now_ms - batch.max_timestamp
            for batch in log.batches
            if batch.base_offset < event.end and batch.last_offset >= event.first
        ]
        self.counts["acquired" if acquired else "expired"] += event.end - event.first
        self.counts["skips"] += isinstance(event, ExpiredRecordsSkipped)
        if self.instant:
            assert all((age < TTL_MS) is acquired for age in ages), (event, ages)

    @property
    def instant(self) -> bool:
        """True if no time has passed in the step: else the event is older than the stage says."""
        return self.doing not in ("time", "finish")

    doing = ""

    def step(self) -> None:
        self.doing = ""
        super().step()

    def time(self) -> None:
        self.doing = "time"
        super().time()

    def finish(self) -> None:
        self.doing = "finish"
        super().finish()


@pytest.mark.parametrize(
    "group", [TTL, TTL | QUEUE, TTL | {"shareq.key.ordering": "key"}], ids=["archived", "queue", "keyed"]
)
def test_records_expire_at_their_time_and_no_earlier(seed: int, group: dict[str, str]) -> None:
    """The environment variable SHAREQ_RUNS sets the number of runs."""
    totals: Counter[str] = Counter()
    for run in range(int(os.environ.get("SHAREQ_RUNS", "4"))):
        random_run = ExpiringRun(seed + run, group)
        try:
            for _ in range(300):
                random_run.step()
            if "shareq.record.ttl.deadletter.enable" not in group:  # else no writer ends the way of the letters
                random_run.finish()
        except AssertionError as error:
            error.add_note(f"in the run of seed {seed + run}")
            raise
        totals += random_run.counts
    assert totals["acquired"] > 100
    assert totals["expired"] > 100
    assert (totals["skips"] > 0) == ("shareq.record.ttl.deadletter.enable" not in group)
