"""Random runs of the leader with browses between all steps.

W1: a browse changes nothing. The run has the responses, events and writes of the same run without browses.
W2: the runs of a page are those of the fold of the journal there, or of the durable state if no leader has it in
memory.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_browse import DONE, BrowseShareGroupResponse, KeptBack
from shareq.model.states import RecordState
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.kept_back import kept_back
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry
from tests.leader.experiments.browsing import ENABLED, browse_apart
from tests.leader.stage import TOPIC_ID, SentRequest
from tests.leader.test_share_leader_random import PARTITIONS, RandomRun

BACKOFF = {"shareq.release.backoff.ms": "2000", "shareq.release.backoff.max.ms": "9000"}
KEYED = {**BACKOFF, "shareq.key.ordering": "key", "shareq.key.max.in.flight": "2"}
PAGE = 60


class BrowsedRun(RandomRun):
    """`browses`: pages are requested. The requests of the run itself have the same content either way."""

    def __init__(self, seed: int, *, browses: bool, group: dict[str, str]) -> None:
        super().__init__(seed, broker=ENABLED, group=group)
        self.chance = random.Random(f"{seed}/browses")
        self.browses = browses
        self.folds = [SharePartitionState("g", "t", partition) for partition in range(PARTITIONS)]
        self.seen: list[Any] = []
        for log in self.stage.logs:
            log.keys = "ABCA-DEAFG" * 1000

    def collect(self) -> None:
        """The run takes the events of each step away."""
        for event in self.stage.events:
            self.seen.append(event)
            if getattr(event, "topic", None) == "t":
                self.folds[event.partition].log_start = self.stage.logs[event.partition].start
                apply_entry(self.folds[event.partition], Entry(len(self.seen), self.stage.now_ms, 0, event))
        super().collect()
        if self.browses:
            self.look()
            assert self.stage.events == []

    def look(self) -> None:
        chance, stage = self.chance, self.stage
        partition = chance.randrange(PARTITIONS)
        log, fold = stage.logs[partition], self.folds[partition]
        first = chance.choice((-1, chance.randint(log.start, log.end)))
        page = browse_apart(stage, partition, from_offset=first, max_records=chance.choice((3, PAGE)))
        assert not page.error_code
        shown = {o: run for run in page.runs for o in range(run.first_offset, run.last_offset + 1)}
        if fold.loaded:
            self.check_fold(fold, page, shown)
            self.counts["in memory"] += 1
        else:
            durable = stage.state(partition).records
            for offset, run in shown.items():
                assert (run.state, run.delivery_count) in (durable.get(offset, (0, 0)), (DONE, 0))
            self.counts["durable"] += 1

    def check_fold(self, fold: SharePartitionState, page: BrowseShareGroupResponse, shown: dict[int, Any]) -> None:
        """Every offset of the page has the state of the fold; what the fold does not have is new."""
        assert (page.spso, page.speo) == (fold.spso, fold.window_end - 1)
        led = self.stage.leader._partitions.get(SharePartitionKey("g", TOPIC_ID, fold.partition))
        assert led is not None
        window = led.share_partition.window
        below_log_start = window.floor < window.spso  # a record may be held there, which the fold does not have
        page_first = page.runs[0].first_offset if page.runs else page.next_offset
        known = {
            offset: status
            for first, end, status in fold.runs.overlap(page_first, max(page.next_offset, page_first + 1))
            for offset in range(first, end)
            if fold.spso <= offset < page.next_offset
        }
        assert known.keys() <= shown.keys()
        for offset, run in shown.items():
            status = known.get(offset)
            if offset < fold.spso:
                assert run.state == DONE
            elif status is None:
                assert (run.state, run.delivery_count, run.reason) == (RecordState.AVAILABLE, 0, KeptBack.NOT)
            else:
                assert (run.state, run.delivery_count) == (status.state, status.delivery_count)
                assert (run.member_id, run.until_ms) == (status.member_id, status.deadline_ms or -1)
                by_key = status.state is RecordState.AVAILABLE and kept_back(fold, offset) is not None
                if below_log_start and not status.rests:
                    by_key = by_key or run.reason == KeptBack.KEY
                assert run.reason == (KeptBack.RESTS if status.rests else KeptBack.KEY if by_key else KeptBack.NOT)
                self.counts[f"{RecordState(run.state).name} {KeptBack(run.reason).name}"] += 1


def responses(run: RandomRun) -> list[Any]:
    """The responses of the run's own requests, in order."""
    exchanges: list[SentRequest] = list(run.stage.exchanges.values())
    return [e.response for e in exchanges if not isinstance(e.response, BrowseShareGroupResponse)]


@pytest.mark.parametrize("run", range(int(os.environ.get("SHAREQ_RUNS", "2"))))
@pytest.mark.parametrize("group", [{}, BACKOFF, KEYED], ids=["plain", "backoff", "keyed"])
def test_a_browse_changes_nothing_and_shows_what_the_journal_has(seed: int, run: int, group: dict[str, str]) -> None:
    """The environment variable SHAREQ_RUNS sets the number of runs."""
    plain = BrowsedRun(seed + run, browses=False, group=group)
    browsed = BrowsedRun(seed + run, browses=True, group=group)
    wanted = [*(["AVAILABLE RESTS"] if group else []), *(["AVAILABLE KEY"] if group is KEYED else [])]
    for step in range(3_000):
        if step >= 300 and all(browsed.counts[name] for name in wanted):
            break
        plain.step()
        browsed.step()
    assert browsed.counts["in memory"] > 50
    assert {name for name in wanted if not browsed.counts[name]} == set(), "no page had one"
    assert browsed.seen == plain.seen
    assert browsed.stage.writes == plain.stage.writes
    assert browsed.stage.leader.wake_at_ms == plain.stage.leader.wake_at_ms
    assert responses(browsed) == responses(plain)
