"""Skewed topics with each assignor, in virtual time: the same figures on any machine.

    make bench ARGS='-k skewed'

The time of a row is virtual: from the first record to the end of the last one. It is printed with the p99 of the time
from produce to accept; rule 1.12 of coordinator/share_group/experiments has the table. `test_a_review` has processor
time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.coordinator.share_group.assignor import AssignableTopic, AssignorInput
from shareq.coordinator.share_group.experiments.cut_assignor import assign_cut, is_even
from shareq.model.ids import TopicIdPartition, topic_id_from_bytes
from shareq.sim import Result, Scenario, run
from tests.bench.reported import REPORTED

pytestmark = pytest.mark.bench

WORK = Scenario(records=40_000, max_poll_records=20, batch_records=20, acquire_mode="record_limit", service_ms=10.0)
SCENARIOS = {
    "8 members, 4 partitions, 85 % in one, 750 records each": replace(
        WORK, records=6000, consumers=8, partitions=4, hot_share=0.85
    ),
    "8 members, 4 partitions, 85 % in one, 5000 records each": replace(WORK, consumers=8, partitions=4, hot_share=0.85),
    "2 members, 4 partitions, 85 % in one, 120 records a second": replace(
        WORK, records=12_000, consumers=2, partitions=4, hot_share=0.85, arrival_rate=120.0
    ),
    "32 members, 32 partitions, 60 % in one": replace(WORK, consumers=32, partitions=32, hot_share=0.6),
    "8 members, 8 partitions, equal": replace(WORK, consumers=8, partitions=8),
    "8 members, 8 partitions, equal, half busy": replace(WORK, consumers=8, partitions=8, arrival_rate=400.0),
}


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("assignor", ["simple", "all_to_all", "cut"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_skewed_topic(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], name: str, assignor: str
) -> None:
    def drain() -> Result:
        result = run(replace(SCENARIOS[name], assignor=assignor), 7)
        REPORTED.now += result.duration_s
        return result

    benchmark.group = name
    result = benchmark.pedantic(drain, rounds=1)
    assert result.finished
    benchmark.extra_info["p99 ms"] = round(result.latency_p99_ms)
    with capsys.disabled():
        print(f"\n{name}, {assignor}: {result.duration_s:.1f} s, p99 {result.latency_p99_ms:,.0f} ms", end="")


@pytest.mark.parametrize("size", [10, 100, 1000])
@pytest.mark.parametrize("step", ["assign", "is_even"])
def test_a_review(benchmark: BenchmarkFixture, size: int, step: str) -> None:
    """The pure part of a review: as many members as partitions, one of which has 60 % of the lag."""
    topic_id = topic_id_from_bytes((64).to_bytes(16, "big"))
    weights = {TopicIdPartition(topic_id, index): 10 for index in range(size)}
    weights[TopicIdPartition(topic_id, 0)] = 15 * size
    members = dict.fromkeys((f"member-{i}" for i in range(size)), frozenset({"t1"}))
    given = AssignorInput(members, {}, {"t1": AssignableTopic(topic_id, tuple(range(size)))}, weights)
    given = given._replace(targets=assign_cut(given))
    benchmark({"assign": partial(assign_cut, given), "is_even": partial(is_even, given)}[step])
    assert is_even(given)
