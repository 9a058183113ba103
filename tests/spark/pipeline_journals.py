"""Journals for the pipeline: clusters under faults, a leader driven at random, and written ones with rare events."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    Event,
    ExpiredRecordsSkipped,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.model.messages.share_state import StateBatch
from shareq.sim import Scenario
from shareq.sim.run import Simulation
from shareq.trace import Journal
from shareq.trace.journal.parquet_columns import DETAILS
from tests.broker.stage import LedgerStage
from tests.broker.transactional_loops import TransactionRun
from tests.trace.histories import ORIGIN_MS, random_history

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)

EXPERIMENTS = Scenario(
    records=300, partitions=2, consumers=3, batch_records=10, max_poll_records=10, acquire_mode="record_limit",
    failure_rate=0.2, crash_rate=0.1, service_ms=60.0, lock_duration_ms=1000, keys=4, key_ordering="key",
    key_max_in_flight=3, release_backoff_ms=200, record_ttl_ms=4000,
)  # fmt: skip


def in_trouble(seed: int, actions: int) -> Journal:
    """The journal of a cluster under random faults, which recovers at the end."""
    stage = LedgerStage(seed)
    for action in stage.rng.choices(list(stage.WEIGHTS), list(stage.WEIGHTS.values()), k=actions):
        stage.take(action)
    stage.complete_all()
    return stage.cluster.journal


def in_transactions(seed: int) -> Journal:
    """The journal of loops that acknowledge in transactions, under random faults; some records rest, or wait for
    another record of their key."""
    stage = TransactionRun(seed)
    with stage.cluster:
        stage.faults()
        stage.complete_all()
        return stage.cluster.journal


def of_experiments(seed: int) -> Journal:
    """The journal of a simulated run in which records rest after a release, are too old, and are ordered by key."""
    with Simulation(EXPERIMENTS, seed) as simulation:
        simulation.go()
        return simulation.cluster.journal


def of_a_leader(seed: int, steps: int) -> Journal:
    """A leader with failed writes, renewals, gaps, a moving log start and locks that expire at the last delivery."""
    *_, (journal, _) = random_history(Random(seed), steps)
    return journal


def as_version_1(path: Path) -> None:
    """Rewrite the file of a journal in version 1 of its format, in which the end of a window had another name, and
    Parquet fewer columns."""
    if path.suffix == ".jsonl":
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        lines = [head.replace('"shareq_journal":2', '"shareq_journal":1'), *map(_old_names, lines)]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return
    table = pq.read_table(path)
    payload = pa.array([_old_names(body) for body in table["payload"].to_pylist()])
    old = table.set_column(table.column_names.index("payload"), "payload", payload)
    old = old.drop_columns([*DETAILS])
    old = old.rename_columns([name.replace("window_end", "speo") for name in old.column_names])
    pq.write_table(old.replace_schema_metadata({**(table.schema.metadata or {}), b"shareq_journal": b"1"}), path)


def _old_names(event: str) -> str:
    return event.replace('"window_end":', '"speo":')


AT = ("007", "orders", 0)
"""A group whose name looks like a number in the name of a folder."""


def _loaded(spso: int, window_end: int, *runs: Run, locks: int = 100) -> SharePartitionLoaded:
    return SharePartitionLoaded(*AT, spso, window_end, runs, 1, 0, 5, locks, 30_000)


def _acquired(first: int, end: int, member: str, count: int = 1) -> RecordsChanged:
    return RecordsChanged(*AT, "acquire", first, end, ACQUIRED, count, member, ORIGIN_MS + 30_000)


def _became(first: int, end: int, state: int, why: str, count: int = 1) -> RecordsChanged:
    return RecordsChanged(*AT, "settled", first, end, state, count, why=why)


STORY: tuple[tuple[int, int, Event], ...] = (
    (0, -1, TopicCreated("orders", "first", 1)),
    (0, -1, ConfigChanged("group:007", "share.partition.max.record.locks", "100")),
    (1, 0, RecordsAppended("orders", 0, 0, 40)),
    (2, 0, RecordsAppended("orders", 0, 40, 60)),
    (3, 1, MemberJoined("007", "anna", "client-a", ("orders",))),
    (3, 1, MemberJoined("007", "ben", "client-b", ("orders",))),
    (3, 1, MemberJoined("007", "idle", "client-c", ("orders",))),
    (4, 0, _loaded(0, 0)),
    (5, 0, _acquired(0, 50, "anna")),
    (5, 0, _acquired(50, 60, "ben")),
    (5, 0, WindowMoved(*AT, 0, 60)),
    (6, 0, RecordsChanged(*AT, "renew", 10, 20, ACQUIRED, 1, "anna", ORIGIN_MS + 90_000)),
    (7, 0, RecordsChanged(*AT, "renew", 15, 25, ACQUIRED, 1, "anna", ORIGIN_MS + 95_000)),
    (8, 0, RecordsChanged(*AT, "prepared", 0, 12, ACQUIRED, 1, "anna", ORIGIN_MS, 0, ACKNOWLEDGED, "accept")),
    (8, 0, StateWritePrepared(*AT, 0, 0, 12, (StateBatch(0, 11, ACKNOWLEDGED, 1), StateBatch(50, 54, 4, 1)))),
    (9, 0, StateWriteSettled(*AT, 0, 0)),
    (9, 0, _became(0, 12, ACKNOWLEDGED, "accept")),
    (9, 0, RecordsChanged(*AT, "aborted", 50, 55, ARCHIVED, 1)),
    (9, 0, WindowMoved(*AT, 12, 60)),
    (10, 1, HeartbeatReceived("007", "ben", 3, 0)),
    (11, -1, ConfigChanged("group:007", "share.partition.max.record.locks", "60")),
    (12, 0, _became(12, 14, AVAILABLE, "release")),
    (13, 0, WindowMoved(*AT, 12, 72)),
    (14, -1, ConfigChanged("group:007", "share.partition.max.record.locks", None)),
    (14, 0, RecordsChanged(*AT, "prepared", 40, 42, ACQUIRED, 1, "anna", ORIGIN_MS, 1, AVAILABLE, "release")),
    (15, 0, RecordsChanged(*AT, "missing", 40, 42, ARCHIVED, 1)),
    (15, 0, _acquired(12, 14, "ben", 2)),
    (16, 0, StateWritePrepared(*AT, 1, 12, 17, ())),
    # another broker loads it; what the first one still does after that does not count
    (20, 2, _loaded(12, 60, Run(20, 25, ACKNOWLEDGED, 1), Run(50, 55, ARCHIVED, 1))),
    (21, 0, _became(12, 14, ACKNOWLEDGED, "accept", 2)),
    (21, 0, WindowMoved(*AT, 14, 60)),
    (22, 2, _acquired(12, 20, "ben", 1)),
    (22, 2, _acquired(25, 30, "ben", 1)),
    (23, 2, RecordsChanged(*AT, "lock_timeout", 12, 16, AVAILABLE, 1)),
    (24, 2, RecordsChanged(*AT, "log_start", 12, 16, ARCHIVED, 1)),
    (24, 2, WindowMoved(*AT, 18, 60)),  # the log start has moved to 18 while 16 and 17 were acquired
    (25, 2, BrokerStopped(2, True)),
    (30, 1, MemberLeft("007", "ben", "session expired")),
    (31, 1, MemberJoined("007", "ben", "client-b", ("orders", "more"))),
    (31, 1, HeartbeatReceived("007", "ben", 0, 25)),
    (32, 1, _loaded(18, 60, locks=500)),
    (33, 1, _acquired(18, 30, "anna", 1)),
    (33, 1, RecordsChanged(*AT, "log_start", 18, 19, ARCHIVED, 1)),
    (33, 1, WindowMoved(*AT, 19, 60)),
    (34, 1, SharePartitionDropped(*AT, "leader moved")),
    (35, -1, TopicCreated("orders", "second", 1)),
    (36, 1, RecordsAppended("orders", 0, 0, 7)),
    (37, 1, _loaded(0, 0)),
    (38, 1, RecordsAppended("orders", 0, 7, 9)),
    (39, 1, _acquired(0, 9, "anna", 1)),
    (39, 1, WindowMoved(*AT, 0, 9)),
    (40, 1, _became(0, 2, ARCHIVED, "reject")),
    (41, 1, WindowMoved(*AT, 2, 9)),
    # experiments: rests, acknowledgements in transactions, and records that are too old
    (42, 1, RecordsChanged(*AT, "settled", 2, 4, AVAILABLE, 1, None, ORIGIN_MS + 43_000, why="release")),
    (42, 1, RecordsChanged(*AT, "staged", 4, 8, ACQUIRED, 1, "anna", ORIGIN_MS + 69_000, 7, ACQUIRED, "accept")),
    (42, 1, RecordsChanged(*AT, "staged", 8, 9, ACQUIRED, 1, "anna", ORIGIN_MS + 69_000, 8, ACQUIRED, "reject")),
    (42, 0, RecordsChanged(*AT, "rested", 2, 4, AVAILABLE, 1)),  # of a former leader
    (43, 1, RecordsChanged(*AT, "rested", 2, 4, AVAILABLE, 1)),
    (44, 1, RecordsChanged(*AT, "txn_commit", 4, 6, ACKNOWLEDGED, 1, why="accept")),
    (45, 1, RecordsChanged(*AT, "txn_abort", 6, 8, AVAILABLE, 1)),
    (45, 1, RecordsChanged(*AT, "txn_commit", 8, 9, ARCHIVED, 1, why="reject")),
    (46, 1, _acquired(6, 7, "anna", 2)),
    (46, 1, RecordsChanged(*AT, "expired", 2, 4, ARCHIVED, 1)),
    (46, 1, RecordsChanged(*AT, "expired", 7, 8, ARCHIVING, 1)),
    (47, 1, RecordsChanged(*AT, "dead_lettered", 7, 8, ARCHIVED, 1)),
    (47, 1, RecordsChanged(*AT, "txn_abort", 6, 7, ARCHIVED, 2)),
    (47, 1, WindowMoved(*AT, 9, 9)),
    (48, 1, RecordsAppended("orders", 0, 9, 40)),
    (49, 1, ExpiredRecordsSkipped(*AT, 9, 30)),
    (49, 0, ExpiredRecordsSkipped(*AT, 9, 40)),  # of a former leader
    (49, 1, WindowMoved(*AT, 30, 30)),
    (50, 1, _acquired(30, 40, "anna", 1)),
    (50, 1, WindowMoved(*AT, 30, 40)),
)


def story() -> Journal:
    """Leaders that change, a topic that is created again, limits that change, records that stay acquired."""
    journal = Journal(ORIGIN_MS)
    for seconds, broker, event in STORY:
        journal.record(ORIGIN_MS + 1000 * seconds, broker, event)
    return journal


def late_story() -> Journal:
    """The story in a bounded journal that has dropped its beginning, including the first leader's load."""
    entries = story().entries()[:]
    (load, *_) = (entry.order for entry in entries if isinstance(entry.event, SharePartitionLoaded))
    return Journal.of(entries[load + 1 :], ORIGIN_MS)
