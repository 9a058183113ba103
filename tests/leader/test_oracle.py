"""The share-partition against its naive oracle, in long random runs and in short runs of Hypothesis."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shareq.leader import run_map
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.states import AcquireMode
from tests.budgets import cases
from tests.leader.oracle_stage import MEMBERS, OracleStage, random_step

RUNS = cases(25, 120)
STEPS = 400


@pytest.mark.parametrize("part", range(4))
def test_random_runs_agree_with_the_oracle(seed: int, part: int) -> None:
    """48,000 steps in CI, 960,000 in `make deep`. A failure names its run: `OracleStage(Random(run))` and
    `random_step` repeat it."""
    for number in range(RUNS // 4):
        run = f"{seed}/{part}/{number}"
        rng = Random(run)
        stage = OracleStage(rng)
        try:
            for _ in range(STEPS):
                random_step(rng, stage)
            stage.run_to_completion()
        except AssertionError as error:
            error.add_note(f"in run {run!r}")
            raise


@pytest.mark.parametrize("part", range(2))
def test_random_runs_with_experiments_agree_with_the_oracle(seed: int, part: int) -> None:
    """Released records rest as the oracle computes it, record by record: none is acquired before its time, and all are
    acquired at last, with the same count, over failed writes, reloads and moves of the log's start."""
    for number in range(RUNS // 8):
        run = f"{seed}/experiments/{part}/{number}"
        rng = Random(run)
        stage = OracleStage(rng, experimental=True)
        try:
            for _ in range(STEPS):
                random_step(rng, stage)
            stage.run_to_completion()
        except AssertionError as error:
            error.add_note(f"in run {run!r}")
            raise


@pytest.mark.parametrize("max_runs", [2, 3, 8])
def test_random_runs_in_small_chunks_agree_with_the_oracle(
    seed: int, max_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with run maps that are split into small chunks."""
    monkeypatch.setattr(run_map, "MAX_RUNS", max_runs)
    monkeypatch.setattr(run_map, "SHORT_RUN", 2)
    for number in range(10):
        rng = Random(f"{seed}/{max_runs}/{number}")
        stage = OracleStage(rng)
        for _ in range(STEPS):
            random_step(rng, stage)
        stage.run_to_completion()


members = st.sampled_from(MEMBERS)


class SharePartitionMachine(RuleBasedStateMachine):
    """The same stage with steps from Hypothesis; both sides are compared after every step."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.stage = OracleStage(Random(seed))

    @rule(
        member=members,
        mode=st.sampled_from(AcquireMode),
        max_records=st.integers(1, 60),
        batch_size=st.integers(1, 30),
    )
    def fetch(self, member: str, mode: AcquireMode, max_records: int, batch_size: int) -> None:
        self.stage.fetch(member, mode, max_records, batch_size)

    @rule(member=members, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        batches = []
        position = self.stage.oracle.spso - 3
        for _ in range(data.draw(st.integers(1, 3))):
            first = position + data.draw(st.integers(0, 10))
            last = first + data.draw(st.integers(0, 8))
            size = data.draw(st.sampled_from((1, last - first + 1)))
            types = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
            batches.append(AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types)))
            position = last
        self.stage.acknowledge(member, batches)

    @rule(member=members, kind=st.integers(0, 4))
    def acknowledge_held_records(self, member: str, kind: int) -> None:
        held = [offset for offset, rec in self.stage.oracle.recs.items() if rec.member == member and rec.write is None]
        self.stage.acknowledge(
            member,
            [AcknowledgementBatch(first_offset=o, last_offset=o, acknowledge_types=(kind,)) for o in sorted(held)],
        )

    @rule(member=members)
    def release(self, member: str) -> None:
        self.stage.release(member)

    @rule(elapsed_ms=st.sampled_from((0, 1, 29, 30, 31, 100)))
    def tick(self, elapsed_ms: int) -> None:
        self.stage.tick(elapsed_ms)

    @rule()
    def settle(self) -> None:
        self.stage.settle()

    @rule(ahead=st.integers(-2, 20))
    def trim(self, ahead: int) -> None:
        self.stage.log.trim(self.stage.oracle.spso + ahead)

    @rule()
    def compact(self) -> None:
        self.stage.log.compact(self.stage.oracle.spso)

    @rule(limit=st.integers(2, 8), renew=st.booleans(), queue=st.booleans())
    def reconfigure(self, limit: int, renew: bool, queue: bool) -> None:
        self.stage.reconfigure(delivery_count_limit=limit, renew=renew, queue=queue)

    @rule(count=st.integers(1, 8))
    def deliver_letters(self, count: int) -> None:
        self.stage.deliver_letters(count)

    @rule()
    def reload(self) -> None:
        self.stage.reload()

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            self.stage.run_to_completion()

    @invariant()
    def the_window_is_in_order(self) -> None:
        if hasattr(self, "stage"):
            subject = self.stage.subject
            assert self.stage.durable_start <= subject.spso <= subject.window_end
            assert 0 <= subject.delivery_complete_count <= subject.window_size


TestSharePartition = SharePartitionMachine.TestCase
