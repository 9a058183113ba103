"""Journals for tests: written ones, and those of a leader under random requests."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from shareq.model.events import LogStartMoved, MemberJoined, MemberLeft, SharePartitionLoaded, TopicCreated
from shareq.trace import Journal
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.share_partition_state import SharePartitionState
from tests.leader.oracle_stage import MEMBERS, OracleStage, random_step

ORIGIN_MS = 1_767_225_600_000
GROUP, TOPIC = "g", "t"
WHERE = (GROUP, TOPIC, 0)


def loaded(spso: int, window_end: int, *runs: tuple[int, int, int, int], limit: int = 5) -> SharePartitionLoaded:
    """A leader loads the share-partition; runs are (first, end, state, delivery count)."""
    from shareq.model.events import Run

    return SharePartitionLoaded(*WHERE, spso, window_end, tuple(Run(*run) for run in runs), 1, 0, limit, 20, 30_000)


def fold(journal: Journal, group: str, topic: str, partition: int) -> SharePartitionState:
    """The state after all entries; JournalCorrupt if one contradicts earlier ones."""
    state = SharePartitionState(group, topic, partition)
    for entry in PartitionTimeline(journal, group, topic, partition).refresh():
        apply_entry(state, entry)
    return state


def random_history(rng: Random, steps: int) -> Iterator[tuple[Journal, OracleStage]]:
    """A leader and its journal after each of some random steps: fetches, acknowledgements, expiries, failed and late
    writes, a moving log start, compaction, reloads.
    """
    stage = OracleStage(rng, traced=True)
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, -1, TopicCreated(TOPIC, "id", 1))
    for member in MEMBERS:
        journal.record(ORIGIN_MS, 2, MemberJoined(GROUP, member, f"client-{member}", (TOPIC,)))
    log_start = 0
    for _ in range(steps):
        if stage.log.start != log_start:
            log_start = stage.log.start
            journal.record(ORIGIN_MS + stage.now_ms, 0, LogStartMoved(TOPIC, 0, log_start))
        for event in stage.subject.take_events():
            journal.record(ORIGIN_MS + stage.now_ms, 0, event)
        yield journal, stage
        random_step(rng, stage)
        if rng.random() < 0.01:
            leaving = rng.choice(MEMBERS)
            journal.record(ORIGIN_MS + stage.now_ms, 2, MemberLeft(GROUP, leaving, "left"))
            journal.record(ORIGIN_MS + stage.now_ms, 2, MemberJoined(GROUP, leaving, f"client-{leaving}", (TOPIC,)))
