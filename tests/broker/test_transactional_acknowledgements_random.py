"""Loops that read, process and write, under kills of clients, leaders and coordinators: each record is processed
exactly once. BEHAVIOUR.md in shareq/leader/experiments, section 7."""

from __future__ import annotations

import pytest

from tests.broker.transactional_loops import TransactionRun
from tests.budgets import cases

RUNS = cases(4, 12, "SHAREQ_RUNS")


@pytest.mark.parametrize("run", range(RUNS))
def test_each_record_is_processed_exactly_once_under_random_faults(seed: int, run: int) -> None:
    """The environment variable SHAREQ_RUNS sets the number of runs."""
    stage = TransactionRun(seed + run)
    with stage.cluster:
        stage.faults()
        stage.complete_all()
        stage.check()
    print(dict(stage.done))
    assert stage.done["staged"] > 0
