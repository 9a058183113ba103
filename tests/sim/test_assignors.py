"""Skewed topics in simulated runs, with each assignor: coordinator/share_group/experiments/BEHAVIOUR.md 1.12."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from shareq.model.events import RecordsAppended
from shareq.sim import Scenario, run
from shareq.sim.faults import TOPIC
from shareq.sim.run import Simulation

SKEWED = Scenario(
    records=8000, partitions=4, consumers=8, max_poll_records=20, batch_records=20, acquire_mode="record_limit",
    service_ms=10.0, hot_share=0.85,
)  # fmt: skip
"""85 % in one of four partitions, and 10 s of work for each of eight members."""


@pytest.mark.parametrize(
    ("hot_share", "partitions", "found"),
    [
        pytest.param(None, 3, [34, 33, 33], id="in turn"),
        pytest.param(0.85, 4, [85, 5, 5, 5], id="skewed"),
        pytest.param(0.0, 3, [0, 50, 50], id="none in the first one"),
        pytest.param(1.0, 3, [100, 0, 0], id="all in the first one"),
        pytest.param(0.3, 1, [100], id="one partition"),
    ],
)
def test_the_share_of_the_first_partition(hot_share: float | None, partitions: int, found: list[int]) -> None:
    scenario = Scenario(records=100, batch_records=1, partitions=partitions, hot_share=hot_share, service_ms=0.0)
    with Simulation(scenario) as simulation:
        simulation.go()
        appended = (entry.event for entry in simulation.cluster.journal.select(RecordsAppended, topic=TOPIC))
        batches = Counter(event.partition for event in appended if isinstance(event, RecordsAppended))
    assert [batches[partition] for partition in range(partitions)] == found


def test_a_skewed_topic_is_drained_by_all_members_if_it_is_cut() -> None:
    """Simple lets two members work on 85 %: 34 s. Cut follows the lags after at most an interval and two heartbeats."""
    simple, everywhere, cut = (run(replace(SKEWED, assignor=name), 7) for name in ("simple", "all_to_all", "cut"))
    assert simple.finished and everywhere.finished and cut.finished  # noqa: PT018
    assert 34 <= simple.duration_s < 35
    assert 10 <= everywhere.duration_s < 10.5
    assert 10 <= cut.duration_s < 20
    assert simple.latency_p99_ms > 2 * cut.latency_p99_ms


def test_equal_loads_are_drained_alike() -> None:
    even = replace(SKEWED, records=1600, hot_share=None)
    simple, cut = (run(replace(even, assignor=name), 7) for name in ("simple", "cut"))
    assert cut.duration_s == pytest.approx(simple.duration_s, rel=0.05)
