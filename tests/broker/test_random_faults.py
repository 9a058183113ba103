"""A cluster under random faults: consumers crash, brokers are killed, coordinators move, writes fail, logs lose
records.

A fault phase is followed by a quiet phase. Invariants hold in both: no record is held by two members, accepted twice or
lost; `tests/broker/ledger.py` checks them at every event of the journal. In the quiet phase everything must complete:
faults stop, members stay, every lock ends, every record reaches a terminal state, and no poll waits while records are
available. `tests/consumer/watched.py` checks the rules of client calls.

The environment variable `SHAREQ_SEEDS` sets the number of runs.
"""

from __future__ import annotations

import pytest

from tests.broker.stage import LedgerStage
from tests.budgets import cases

RUNS = cases(4, 12, "SHAREQ_SEEDS")
ACTIONS = 150


@pytest.mark.every_persister
@pytest.mark.parametrize("run", range(RUNS))
def test_no_record_is_lost_or_accepted_twice_under_random_faults(seed: int, run: int) -> None:
    print(f"run {run} of seed {seed}")
    stage = LedgerStage(seed + run)
    for _ in range(ACTIONS):
        stage.step()
        stage.check()
    stage.complete_all()
    stage.cluster.advance(60_000)
    stage.check()
    stage.check_locks()
