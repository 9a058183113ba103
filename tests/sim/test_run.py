"""Figures of a run: compared with queueing theory and arithmetic, and equal for equal seeds."""

import math
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shareq.model.events import RecordsAppended, RecordsChanged, WindowMoved
from shareq.model.states import SETTLED, RecordEvent, RecordState
from shareq.sim import Result, Scenario, run
from shareq.sim.faults import TOPIC
from shareq.sim.result import measure
from shareq.sim.run import Simulation
from tests.budgets import cases

EVERYTHING: dict[str, Any] = {
    "records": 600,
    "partitions": 2,
    "consumers": 3,
    "max_poll_records": 40,
    "batch_records": 25,
    "service": "lognormal",
    "arrival_rate": 150.0,
    "failure_rate": 0.1,
    "poison_rate": 0.02,
    "crash_rate": 0.1,
    "lock_duration_ms": 2000,
}


def same(one: Result, other: Result) -> bool:
    """Equal in all digits; NaN equals NaN."""
    return repr(asdict(one)) == repr(asdict(other))


# ---- the same seed ---------------------------------------------------------------------------------------------------


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    scenario = Scenario(**EVERYTHING)
    assert same(run(scenario, 7), run(scenario, 7))
    assert not same(run(scenario, 7), run(scenario, 8))


def test_the_journals_of_two_runs_with_one_seed_are_equal() -> None:
    journals = []
    for _ in range(2):
        with Simulation(Scenario(**EVERYTHING), 3) as simulation:
            simulation.go()
            origin_ms = simulation.cluster.origin_ms
            journals.append(
                [(e.order, e.time_ms - origin_ms, e.broker_id, e.event) for e in simulation.cluster.journal]
            )
    assert journals[0] == journals[1]


def test_a_run_whose_log_has_a_hole_ends_with_its_last_record() -> None:
    """Markers take offsets, so the final SPSO is not the number of records."""
    scenario = Scenario(records=100, batch_records=50, service_ms=1, max_duration_s=3600, arrival_rate=1000.0)
    with Simulation(scenario, 1) as simulation:
        log = simulation.cluster.log(TOPIC, 0)
        for epoch in range(3):
            log.append_control(
                committed=True,
                producer_id=9,
                producer_epoch=epoch,
                coordinator_epoch=0,
                now_ms=simulation.cluster.now_ms,
                leader_epoch=0,
            )
        simulation.go()
        assert log.log_end_offset == 103
        assert simulation.cluster.now_ms - simulation.started_ms < 10_000
        assert [event.spso for _, event in simulation.outcome().windows(0)][-1] == 103


# ---- a faulty network ------------------------------------------------------------------------------------------------

FAULTS: list[dict[str, Any]] = [
    {"message_loss": 0.05},
    {"message_delay_ms": 400},
    {"state_write_delay_ms": 1500},
    {"message_loss": 0.02, "message_delay_ms": 100, "state_write_delay_ms": 300},
]


@pytest.mark.parametrize("faults", FAULTS, ids="+".join)
def test_no_fault_of_the_network_loses_a_record_or_accepts_it_twice(faults: dict[str, Any], seed: int) -> None:
    """`run` checks that; the figures count each record once."""
    for number in range(cases(3, 60)):
        result = run(Scenario(**EVERYTHING, **faults), seed + number)
        assert result.finished
        assert result.accepted + result.archived == EVERYTHING["records"]


def test_a_faulty_run_repeats_to_the_last_digit() -> None:
    scenario = Scenario(**EVERYTHING, **FAULTS[-1])
    assert same(run(scenario, 7), run(scenario, 7))


def test_lost_answers_and_late_writes_cost_what_they_must() -> None:
    """A lost answer keeps its records until their lock expires; a state write delays each accept."""
    sound = Scenario(records=400, consumers=2, max_poll_records=20, service_ms=1, lock_duration_ms=5000)
    base = run(sound, 1)
    late = run(replace(sound, state_write_delay_ms=700), 1)
    assert (base.lock_timeouts, base.redeliveries, late.redeliveries) == (0, 0, 0)
    assert late.latency_p50_ms >= base.latency_p50_ms + 700
    lossy = run(replace(sound, message_loss=0.2), 1)
    assert lossy.lock_timeouts > 0
    assert lossy.redeliveries > 0


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "figures"),
    [
        pytest.param(
            {"records": 1000, "consumers": 1, "max_poll_records": 100, "service_ms": 10},
            {"accepted": 1000, "duration_s": 10.0, "throughput": 100.0, "utilisation": 1.0, "fairness": 1.0,
             "latency_p50_ms": 5500.0, "latency_max_ms": 10_000.0, "latency_mean_ms": 5500.0},
            id="one consumer finishes a poll of 100 per second",
        ),
        pytest.param(
            {"records": 1000, "consumers": 5, "max_poll_records": 20, "service_ms": 10, "acquire_mode": "record_limit"},
            {"duration_s": 2.0, "throughput": 500.0, "utilisation": 1.0, "fairness": 1.0, "redeliveries": 0,
             "occupancy": 0.05},
            id="five consumers finish five times as much, with 100 of 2000 locks",
        ),
        pytest.param(
            {"records": 1000, "consumers": 5, "partitions": 5, "max_poll_records": 20, "service_ms": 10,
             "acquire_mode": "record_limit", "batch_records": 20},
            {"duration_s": 2.0, "throughput": 500.0, "utilisation": 1.0, "fairness": 1.0},
            id="the same over five partitions",
        ),
        pytest.param(
            {"records": 1000, "consumers": 2, "max_poll_records": 500, "service_ms": 10, "max_duration_s": 1},
            {"finished": False, "accepted": 0, "deliveries": 200, "throughput": 0.0, "duration_s": 1.0,
             "occupancy": 0.1, "utilisation": 1.0},
            id="max_duration_s ends the run before the first accept, with 200 of 2000 locks all the time",
        ),
        pytest.param(
            {"records": 100, "consumers": 1, "max_poll_records": 10, "service_ms": 10, "slow_rate": 1.0,
             "slow_factor": 5, "acquire_mode": "record_limit"},
            {"accepted": 100, "duration_s": 5.0, "latency_max_ms": 5000.0},
            id="slow records take slow_factor times the service time",
        ),
        pytest.param(
            {"records": 500, "service_ms": 0},
            {"accepted": 500, "utilisation": 0.0, "latency_max_ms": 0.0},
            id="service time 0",
        ),
        pytest.param(
            {"records": 200, "failure_rate": 1.0, "delivery_count_limit": 3},
            {"accepted": 0, "archived": 200, "deliveries": 600, "redeliveries": 400, "finished": True},
            id="failure rate 1: each record is archived at the delivery count limit",
        ),
        pytest.param(
            {"records": 40, "consumers": 1, "max_poll_records": 1, "service_ms": 1500, "lock_duration_ms": 1000,
             "batch_records": 1},
            {"accepted": 0, "archived": 40, "deliveries": 200, "lock_timeouts": 200, "finished": True},
            id="a service time above the lock duration: no record is accepted",
        ),
        pytest.param(
            {"records": 200, "consumers": 1, "max_poll_records": 100, "service_ms": 15, "lock_duration_ms": 1000,
             "acquire_mode": "record_limit"},
            {"accepted": 200, "archived": 0, "finished": True},
            id="throttled delivery shrinks polls until a lock lasts for one",
        ),
        pytest.param(
            {"records": 100, "consumers": 4, "max_poll_records": 100, "max_duration_s": 100},
            {"fairness": 0.25, "accepted": 100},
            id="one of four consumers takes all: fairness 0.25",
        ),
    ],
)  # fmt: skip
def test_figures_that_can_be_calculated(values: dict[str, Any], figures: dict[str, Any]) -> None:
    result = run(Scenario(**values), 5)
    assert {name: getattr(result, name) for name in figures} == pytest.approx(figures)


@pytest.mark.parametrize(
    ("service", "queueing", "load"),
    [
        ("constant", 0.5, 0.5),
        pytest.param("exponential", 1.0, 0.3, marks=pytest.mark.long),
        pytest.param("constant", 0.5, 0.3, marks=pytest.mark.long),
        pytest.param("exponential", 1.0, 0.5, marks=pytest.mark.long),
    ],
)
def test_latency_of_one_consumer_follows_the_pollaczek_khinchine_formula(
    service: str, queueing: float, load: float
) -> None:
    """M/D/1 and M/M/1: mean time in the system = service + service * load / (1 - load) * (1 + cv^2) / 2."""
    scenario = Scenario(
        records=1000,
        consumers=1,
        max_poll_records=1,
        batch_records=1,
        service=service,
        service_ms=1000,
        arrival_rate=load,
        acquire_mode="record_limit",
    )
    result = run(scenario, 12)
    assert result.latency_mean_ms == pytest.approx(1000 * (1 + queueing * load / (1 - load)), rel=0.15)
    assert result.utilisation == pytest.approx(load, rel=0.1)
    assert result.throughput == pytest.approx(load, rel=0.1)


@pytest.mark.parametrize(
    ("worse", "figure", "sign"),
    [
        pytest.param({"failure_rate": 0.3}, "redeliveries", +1, id="failures are delivered again"),
        pytest.param({"failure_rate": 0.3}, "throughput", -1, id="failures lower throughput"),
        pytest.param({"crash_rate": 0.3}, "lock_timeouts", +1, id="records of crashed consumers time out"),
        pytest.param({"crash_rate": 0.3}, "latency_p99_ms", +1, id="crashes raise latency"),
        pytest.param({"poison_rate": 0.1}, "archived", +1, id="poison records are archived"),
        pytest.param({"consumers": 1}, "throughput", -1, id="fewer consumers have less throughput"),
        pytest.param(
            {"record_locks": 100, "max_poll_records": 100}, "utilisation", -1, id="few locks leave consumers idle"
        ),
        pytest.param(
            {"service": "lognormal"}, "utilisation", -1, id="uneven service times leave consumers idle at the end"
        ),
    ],
)
def test_each_parameter_changes_its_figure(worse: dict[str, Any], figure: str, sign: int) -> None:
    base: dict[str, Any] = {"records": 800, "max_poll_records": 25, "acquire_mode": "record_limit"}
    good, bad = (getattr(run(Scenario(**values), 2), figure) for values in (base, {**base, **worse}))
    assert (bad - good) * sign > 0


def test_only_poison_records_are_archived() -> None:
    result = run(Scenario(records=1000, poison_rate=0.05, delivery_count_limit=4), 9)
    assert 0 < result.archived < 100
    assert result.accepted == 1000 - result.archived
    assert result.redeliveries == 3 * result.archived


def test_latency_is_nan_without_accepted_records() -> None:
    result = run(Scenario(records=10, failure_rate=1.0))
    assert all(math.isnan(getattr(result, f"latency_{name}_ms")) for name in ("mean", "p50", "p90", "p99", "max"))
    assert math.isnan(result.fairness)


def test_slow_records_stay_slow_when_they_are_delivered_again() -> None:
    """Each takes 2 s, longer than its lock, at every delivery; the others are accepted."""
    scenario = Scenario(
        records=200, consumers=2, max_poll_records=1, batch_records=1, service_ms=20, slow_rate=0.05, slow_factor=100,
        lock_duration_ms=1000, delivery_count_limit=3, acquire_mode="record_limit",
    )  # fmt: skip
    result = run(scenario, 4)
    assert 0 < result.archived < 30
    assert (result.accepted, result.lock_timeouts) == (200 - result.archived, 3 * result.archived)


def test_throughput_under_load_leaves_out_the_end_of_the_run() -> None:
    """The last locks expire long after the last arrival."""
    scenario = Scenario(
        records=500, consumers=10, max_poll_records=10, batch_records=10, service_ms=10, arrival_rate=50.0,
        crash_rate=0.1, lock_duration_ms=60_000,
    )  # fmt: skip
    with Simulation(scenario, 3) as simulation:
        simulation.go()
        outcome = simulation.outcome()
    result = measure(outcome)
    arrived = [time_ms for time_ms, _ in outcome.arrivals(0)]
    accepted = sum(
        event.end - event.first
        for time_ms, event in outcome.changes(0)
        if event.cause == SETTLED and event.state == RecordState.ACKNOWLEDGED and time_ms <= max(arrived)
    )
    loaded_s = (max(arrived) - outcome.started_ms) / 1000
    assert 0 < accepted < result.accepted
    assert result.throughput_loaded == pytest.approx(accepted / loaded_s)
    assert result.throughput < result.throughput_loaded


def test_throughput_under_load_is_nan_if_all_records_arrive_at_the_start() -> None:
    assert math.isnan(run(Scenario(records=10)).throughput_loaded)


# ---- a naive oracle --------------------------------------------------------------------------------------------------


def recounted(simulation: Simulation) -> dict[str, float]:
    """The same figures, counted record by record."""
    arrived: dict[tuple[int, int], int] = {}
    deliveries: Counter[tuple[int, int]] = Counter()
    timeouts = 0
    latencies = []
    for entry in simulation.cluster.journal:
        event = entry.event
        if isinstance(event, RecordsAppended) and event.topic == TOPIC:
            arrived |= {(event.partition, offset): entry.time_ms for offset in range(event.first, event.end)}
        if not isinstance(event, RecordsChanged):
            continue
        for offset in range(event.first, event.end):
            key = (event.partition, offset)
            deliveries[key] += event.cause == RecordEvent.ACQUIRE and event.state == RecordState.ACQUIRED
            timeouts += event.cause == RecordEvent.LOCK_TIMEOUT
            if event.cause == SETTLED and event.state == RecordState.ACKNOWLEDGED:
                latencies.append(entry.time_ms - arrived[key])
    return {
        "accepted": len(latencies),
        "deliveries": deliveries.total(),
        "redeliveries": deliveries.total() - sum(1 for count in deliveries.values() if count),
        "lock_timeouts": timeouts,
        "latency_mean_ms": sum(latencies) / len(latencies),
        "latency_max_ms": max(latencies),
    }


@pytest.mark.parametrize("seed", range(4))
def test_figures_equal_a_recount_record_by_record(seed: int) -> None:
    with Simulation(Scenario(**EVERYTHING), seed) as simulation:
        simulation.go()
        result = measure(simulation.outcome())
        expected = recounted(simulation)
    assert {name: getattr(result, name) for name in expected} == pytest.approx(expected)


# ---- any scenario ----------------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(
    scenario=st.builds(
        Scenario,
        records=st.integers(1, 120),
        partitions=st.integers(1, 3),
        consumers=st.integers(1, 4),
        max_poll_records=st.integers(1, 100),
        acquire_mode=st.sampled_from(["batch_optimized", "record_limit"]),
        lock_duration_ms=st.integers(1000, 5000),
        record_locks=st.integers(100, 300),
        delivery_count_limit=st.integers(2, 6),
        batch_records=st.integers(1, 50),
        arrival_rate=st.none() | st.floats(1, 1000),
        service_ms=st.floats(0, 200),
        service=st.sampled_from(["constant", "exponential", "lognormal"]),
        failure_rate=st.floats(0, 1),
        poison_rate=st.floats(0, 1),
        slow_rate=st.floats(0, 1),
        slow_factor=st.integers(1, 20),
        crash_rate=st.floats(0, 0.5),
        restart_ms=st.integers(0, 5000),
        hot_share=st.none() | st.floats(0, 1),
        assignor=st.sampled_from(["simple", "all_to_all", "cut"]),
    ),
    seed=st.integers(0, 1 << 32),
)
def test_every_run_ends_with_every_record_terminal_once(scenario: Scenario, seed: int) -> None:
    result = run(scenario, seed)
    assert result.finished
    assert result.accepted + result.archived == scenario.records
    assert result.deliveries - result.redeliveries == scenario.records
    assert result.deliveries <= scenario.records * scenario.delivery_count_limit
    assert 0 <= result.occupancy <= 1
    assert 0 <= result.utilisation <= 1 + 1e-9


def test_work_after_the_end_of_a_run_is_not_counted() -> None:
    """The last lock expires, and ends the run, while its consumer still works on the record."""
    scenario = Scenario(
        records=31,
        partitions=1,
        consumers=1,
        max_poll_records=15,
        lock_duration_ms=1000,
        delivery_count_limit=2,
        batch_records=2,
        service_ms=58.0,
        service="exponential",
        failure_rate=1.0,
    )
    assert run(scenario, 3).utilisation <= 1


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        pytest.param("twice", "accepted twice", id="accepted twice"),
        pytest.param("lost", "are lost", id="lost"),
    ],
)
def test_a_defect_of_the_cluster_fails_the_run(forge: str, message: str) -> None:
    """The checks of a run are active: an impossible event in the journal is an AssertionError."""
    with Simulation(Scenario(records=50), 1) as simulation:
        simulation.go()
        outcome, journal = simulation.outcome(), simulation.cluster.journal
        if forge == "twice":
            for _, event in list(outcome.changes(0)):
                journal.record(simulation.cluster.now_ms, 0, event)
        else:
            appended = RecordsAppended(outcome.topic, 0, 50, 60)
            for forged in (appended, WindowMoved(outcome.group, outcome.topic, 0, 60, 60)):
                journal.record(simulation.cluster.now_ms, 0, forged)
        with pytest.raises(AssertionError, match=message):
            measure(simulation.outcome())


# ---- repr and row ----------------------------------------------------------------------------------------------------


def test_a_result_has_a_repr_and_a_flat_row() -> None:
    scenario = Scenario(records=1000, consumers=1, max_poll_records=100)
    result = run(scenario, 3)
    assert repr(result) == (
        "<Result seed 3: 1,000 accepted, 0 archived in 10.0 s (100/s), 0 redeliveries, 0 time-outs, "
        "latency p50 5,500 ms, p99 10,000 ms>"
    )
    row = result.row()
    assert {name: row[name] for name in asdict(scenario)} == asdict(scenario)
    assert (row["seed"], row["accepted"], row["finished"]) == (3, 1000, True)
    assert all(value is None or isinstance(value, (bool, int, float, str)) for value in row.values())
