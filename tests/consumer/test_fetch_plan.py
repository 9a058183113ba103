"""Back-off of partitions with errors in the fetch plan."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from shareq.client.calls import Backoff
from shareq.consumer.fetch_plan import CALM_MS, FetchPlan
from shareq.model.ids import TopicId, TopicIdPartition

KEY = TopicIdPartition(TopicId("T" * 22), 0)


def test_the_back_off_of_a_partition_restarts_after_a_time_without_errors() -> None:
    metadata: Any = SimpleNamespace(by_id={}, leader=lambda key: 1)
    plan = FetchPlan(metadata, Backoff(random.Random(7)))
    plan.assign(frozenset({KEY}))
    pauses = []
    now_ms = 0
    for calm_ms in (0, 0, 0, CALM_MS):
        now_ms += calm_ms
        plan.block(KEY, now_ms)
        assert plan.by_node(now_ms) == {}
        assert plan.wake_at_ms is not None
        pauses.append(plan.wake_at_ms - now_ms)
        now_ms = plan.wake_at_ms
        assert plan.by_node(now_ms) == {1: frozenset({KEY})}
    for pause_ms, factor in zip(pauses, (1, 2, 4, 1), strict=True):
        assert 80 * factor <= pause_ms <= 120 * factor
