"""Random runs of a whole share group, for tests of what is computed from their journals."""

from __future__ import annotations

from functools import cache

from shareq.trace import Journal
from tests.broker.stage import LedgerStage


@cache
def random_journal(seed: int, actions: int = 80) -> Journal:
    """The journal of group "g" on the topics orders and facts, under random faults. Do not change it."""
    stage = LedgerStage(seed)
    for _ in range(actions):
        stage.step()
    return stage.cluster.journal
