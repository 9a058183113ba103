"""The experiments of the brokers in simulated runs: leader/experiments/BEHAVIOUR.md 1, 2 and 4."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from shareq.log.records import decode
from shareq.model.events import RecordsChanged
from shareq.model.states import SETTLED, IsolationLevel, RecordState
from shareq.sim import Result, Scenario, run, sweep
from shareq.sim.faults import TOPIC
from shareq.sim.run import Simulation

FAILING = Scenario(records=50, failure_rate=1.0, delivery_count_limit=4, service_ms=0.0)
ONE_KEY = Scenario(records=100, consumers=4, service_ms=10.0, keys=1, acquire_mode="record_limit", max_poll_records=10)
LATE = Scenario(
    records=100, consumers=1, service_ms=100.0, batch_records=10, max_poll_records=10, acquire_mode="record_limit"
)
MIXED = Scenario(
    records=400, partitions=2, batch_records=20, max_poll_records=15, failure_rate=0.2, crash_rate=0.05, keys=8,
    arrival_rate=400.0, lock_duration_ms=2000,
)  # fmt: skip


EVERYTHING = IsolationLevel.READ_UNCOMMITTED

# ---- back-off on release ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "duration_s"),
    [
        pytest.param({}, 0.0, id="none"),
        pytest.param({"release_backoff_ms": 1000}, 1.0 + 2.0 + 4.0, id="it doubles"),
        pytest.param({"release_backoff_ms": 1000, "release_backoff_max_ms": 1500}, 1.0 + 1.5 + 1.5, id="up to a limit"),
    ],
)
def test_released_records_rest(values: dict[str, Any], duration_s: float) -> None:
    result = run(replace(FAILING, **values), 3)
    assert (result.archived, result.expired, result.deliveries) == (50, 0, 200)
    assert duration_s <= result.duration_s < duration_s + 0.1


def test_a_rest_outlasts_an_outage() -> None:
    """Nine of ten attempts fail: five deliveries at once are soon used up."""
    outage = Scenario(records=200, failure_rate=0.9, delivery_count_limit=5)
    plain, resting = run(outage, 3), run(replace(outage, release_backoff_ms=1000), 3)
    assert plain.duration_s < 15 <= resting.duration_s


# ---- order by key ----------------------------------------------------------------------------------------------------


def keys_of(simulation: Simulation) -> dict[tuple[int, int], bytes | None]:
    """The key of each record, by partition and offset."""
    return {
        (partition, record.offset): record.key
        for partition in range(simulation.scenario.partitions)
        for batch in simulation.cluster.log(TOPIC, partition).read(0, max_bytes=1 << 30, isolation=EVERYTHING).batches
        for record in decode(batch)
    }


def accepted_by_key(scenario: Scenario) -> dict[tuple[int, bytes | None], list[int]]:
    """The offsets of each key, in the order in which they were durably accepted."""
    with Simulation(scenario, 3) as simulation:
        simulation.go()
        keys, found = keys_of(simulation), defaultdict(list)
        for entry in simulation.cluster.journal.select(RecordsChanged, topic=TOPIC):
            event = entry.event
            assert isinstance(event, RecordsChanged)
            if event.cause == SETTLED and event.state == RecordState.ACKNOWLEDGED:
                for offset in range(event.first, event.end):
                    found[event.partition, keys[event.partition, offset]].append(offset)
        return found


def overtaken(found: dict[tuple[int, bytes | None], list[int]]) -> int:
    return sum(later < earlier for offsets in found.values() for earlier, later in pairwise(offsets))


def test_the_records_of_a_key_are_accepted_in_order() -> None:
    ordered = accepted_by_key(replace(MIXED, key_ordering="key"))
    assert sum(map(len, ordered.values())) == MIXED.records
    assert len(ordered) == 2 * 8
    assert overtaken(ordered) == 0
    assert overtaken(accepted_by_key(MIXED)) > 0


@pytest.mark.parametrize(
    ("values", "duration_s"),
    [
        pytest.param({}, 0.25 + 0.05, id="four consumers work at the same time"),
        pytest.param({"key_ordering": "key"}, 1.0, id="one at a time"),
        pytest.param({"key_ordering": "key", "key_max_in_flight": 10}, 1.0, id="one consumer, ten at a time"),
        pytest.param({"key_ordering": "key", "keys": 1000}, 0.25 + 0.05, id="many keys"),
    ],
)
def test_what_order_costs(values: dict[str, Any], duration_s: float) -> None:
    assert run(replace(ONE_KEY, **values), 3).duration_s == pytest.approx(duration_s, abs=0.06)


# ---- time to live ----------------------------------------------------------------------------------------------------


def test_what_is_too_old_is_archived() -> None:
    """A poll takes a second. The fourth one begins when the records are three seconds old."""
    result = run(replace(LATE, record_ttl_ms=3000), 3)
    assert (result.accepted, result.archived, result.expired) == (30, 70, 70)
    assert result.finished
    assert run(LATE, 3).accepted == 100


def test_records_that_the_window_passes_count_as_expired() -> None:
    """The window is empty when the backlog of 3,000 is too old."""
    result = run(replace(LATE, records=3000, record_locks=100, record_ttl_ms=1500), 3)
    assert (result.accepted, result.expired, result.finished) == (20, 2980, True)


# ---- all of them -----------------------------------------------------------------------------------------------------

GRID: dict[str, list[Any]] = {
    "release_backoff_ms": [0, 200],
    "key_ordering": ["none", "key"],
    "record_ttl_ms": [None, 1500],
}


def test_a_sweep_varies_them_and_no_record_is_lost() -> None:
    found = sweep(GRID, 2, MIXED, progress=False)
    rows = found.to_frame()
    assert (len(found), found.failed, rows["finished"].all()) == (16, 0, True)
    assert (rows["accepted"] + rows["archived"] == MIXED.records).all()
    assert (rows["expired"] <= rows["archived"]).all()
    assert not rows[rows["record_ttl_ms"].isna()]["expired"].any()
    assert rows[rows["record_ttl_ms"] == 1500]["expired"].all()
    latencies = rows.groupby(list(GRID), dropna=False)["latency_mean_ms"].min()
    assert len(latencies.unique()) == 8, "each parameter has an effect"


def test_equal_seeds_give_equal_runs() -> None:
    scenario = replace(MIXED, release_backoff_ms=100, key_ordering="key", record_ttl_ms=2000)
    assert text_of(run(scenario, 5)) == text_of(run(scenario, 5)) != text_of(run(scenario, 6))


def text_of(result: Result) -> str:
    """All digits; NaN equals NaN."""
    return str(result.row())


def test_records_without_the_parameter_have_no_key() -> None:
    with Simulation(Scenario(records=10), 3) as simulation:
        simulation.go()
        assert keys_of(simulation) == {(0, offset): None for offset in range(10)}
