"""Random runs of a whole share group, for tests of what is computed from their journals."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from shareq.model.errors import KafkaException
from shareq.trace import Journal
from tests.broker.test_random_faults import WEIGHTS, FaultyCluster


@cache
def random_journal(seed: int, actions: int = 80) -> Journal:
    """The journal of group "g" on the topics orders and facts, under random faults. Do not change it."""
    faulty = FaultyCluster(seed)
    for _ in range(actions):
        action = faulty.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        with suppress(KafkaException):  # client calls can fail under faults
            getattr(faulty, action)()
    return faulty.cluster.journal
