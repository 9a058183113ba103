"""Faults of a run at times of its clock: the six kinds, errors, and equal seeds."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from shareq.log.batches import parse_batch
from shareq.model.errors import ConfigException
from shareq.model.events import FaultInjected, SharePartitionLoaded
from shareq.sim import Result, Scenario, run, sweep
from shareq.sim.faults import CALLS, faults_of
from shareq.sim.run import Simulation
from tests.budgets import cases

WORK: dict[str, Any] = {
    "records": 400,
    "partitions": 2,
    "consumers": 3,
    "brokers": 3,
    "max_poll_records": 20,
    "batch_records": 20,
    "arrival_rate": 40.0,
    "lock_duration_ms": 5000,
}
ALL = (
    "1 s: messages.cut(0, 1); 2 s: messages.disturb(loss=0.05, delay_ms=80); 3 s: kill_broker(2); 4 s: messages.heal();"
    "4 s: delay_appends('__share_group_state', 900); 5 s: jump_clock(7_000); 6 s: jump_clock(-5_000, of_day=True);"
    "15 s: start_broker(2); 16 s: clear_faults()"
)


def result(faults: str, **values: Any) -> Result:
    return run(Scenario(**{**WORK, **values, "faults": faults}), 1)


# ---- the text --------------------------------------------------------------------------------------------------------


def test_faults_are_in_order_of_time_and_at_equal_times_as_written() -> None:
    found = faults_of("20s: clear_faults();1.5 s: messages.cut(0, second=1);\n 1.5 s: messages.disturb(loss=0.1) ; ")
    assert [fault[1:] for fault in found] == [
        (1500, "messages.cut", (0,), {"second": 1}),
        (1500, "messages.disturb", (), {"loss": 0.1}),
        (20_000, "clear_faults", (), {}),
    ]
    assert faults_of("") == []


CUT = "messages.cut(0, 1)"


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        pytest.param(
            CUT, f"faults={CUT!r}: must be a time and a call with plain values, such as '10 s: ", id="no time"
        ),
        pytest.param(f"-1 s: {CUT}", "faults='-1 s: messages.cut(0, 1)': must be a time and", id="before the start"),
        pytest.param("5 s: close()", "faults='5 s: close()': must be a time and a call", id="another call"),
        pytest.param("5 s: jump_clock(n)", "faults='5 s: jump_clock(n)': must be a time and", id="a name"),
        pytest.param("5 s: jump_clock(1", "faults='5 s: jump_clock(1': must be a time and", id="no Python"),
        pytest.param("5 s: clear_faults() 1", "faults='5 s: clear_faults() 1': must be", id="no semicolon"),
        pytest.param("5 s: heal(**{})", "faults='5 s: heal(**{})': must be a time and", id="half a name"),
        pytest.param(
            "101 s: jump_clock(5)", "faults='101 s: jump_clock(5)': must be in 0..100 s (max_duration_s)", id="late"
        ),
        pytest.param(None, "faults=None: must be a text such as '10 s: messages.cut(0, 1)'", id="None"),
        pytest.param([CUT], "faults=['messages.cut(0, 1)']: must be a text such as", id="a list"),
        pytest.param(
            "5 s: messages.cut(0, 3)", "faults='5 s: messages.cut(0, 3)': second=3: must be one of [0, 1, 2]", id="3"
        ),
        pytest.param(
            "1 s: clear_faults(); 5 s: messages.disturb(loss=2)",
            "faults='5 s: messages.disturb(loss=2)': loss=2: must be a probability in 0..1",
            id="loss",
        ),
        pytest.param(
            "5 s: jump_clock(-1)", "faults='5 s: jump_clock(-1)': ms=-1: must be a whole number in 0..", id="back"
        ),
        pytest.param(
            "5 s: delay_appends('orders', 1)",
            "faults=\"5 s: delay_appends('orders', 1)\": topic='orders': must be a topic, or one of",
            id="an unknown topic",
        ),
        pytest.param("5 s: kill_broker(7)", "faults='5 s: kill_broker(7)': broker_id=7: must be one of", id="broker 7"),
        pytest.param(
            "9 s: kill_broker(1); 5 s: kill_broker(1)",
            "faults='9 s: kill_broker(1)': broker 1 is not running",
            id="killed twice",
        ),
        pytest.param("5 s: kill_broker()", "faults='5 s: kill_broker()': ", id="no value"),
        pytest.param("5 s: messages.cut([0], 1)", "faults='5 s: messages.cut([0], 1)': first=[0]: must be", id="list"),
    ],
)
def test_error_names_the_fault_and_what_is_allowed(faults: Any, message: str) -> None:
    with pytest.raises(ConfigException) as caught:
        Scenario(brokers=3, max_duration_s=100, faults=faults)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("brokers", [0, 101, True, "3"])
def test_brokers_are_a_whole_number(brokers: Any) -> None:
    with pytest.raises(ConfigException, match=rf"brokers={brokers!r}: must be a whole number in 1\.\.100"):
        Scenario(brokers=brokers)


def test_one_broker_has_no_network_to_cut() -> None:
    with pytest.raises(ConfigException, match=r"second=1: must be one of \[0\]"):
        Scenario(faults=f"5 s: {CUT}")


def test_the_error_names_all_calls() -> None:
    with pytest.raises(ConfigException, match=f"the calls are {', '.join(CALLS)}"):
        Scenario(faults="now")


# ---- what faults do --------------------------------------------------------------------------------------------------


def test_faults_happen_at_their_times() -> None:
    with Simulation(Scenario(**WORK, faults=f"1.25 s: {CUT}; 3 s: jump_clock(500); 4 s: messages.heal()"), 1) as made:
        made.go()
        faults = made.cluster.journal.select(FaultInjected)
        assert [(entry.time_ms - made.started_ms, entry.event) for entry in faults] == [
            (1250, FaultInjected("no message passes between brokers 0 and 1")),
            (3500, FaultInjected("the clock has jumped by 500 ms")),
            (4000, FaultInjected("all messages pass again")),
        ]


def test_more_brokers_are_as_good_as_one() -> None:
    """Without a fault the records take no longer; the ids of a run differ, and with them who takes which."""
    one, three = result("", brokers=1), result("")
    assert (one.finished, one.redeliveries, one.lock_timeouts) == (three.finished, three.redeliveries, 0)
    assert three.duration_s == pytest.approx(one.duration_s, rel=0.1)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_brokers_that_do_not_reach_each_other_delay_what_they_do_together(first: int) -> None:
    """For 20 s no leader reaches a share coordinator elsewhere: state writes wait, and locks end meanwhile. Clients
    reach all brokers, and so do the leaders that are share coordinators of their own partitions."""
    cuts = "2 s: messages.cut(0, 1); 2 s: messages.cut(1, 2); 2 s: messages.cut(0, 2); 22 s: messages.heal()"
    found = [run(Scenario(**WORK, faults=cuts), seed) for seed in range(first, 12, 3)]
    assert all(one.finished for one in found)
    assert max(one.latency_max_ms for one in found) > 20_000


def test_a_jump_of_the_clock_ends_locks_and_sessions() -> None:
    sound, jumped = (result(faults, service_ms=60) for faults in ("", "4 s: jump_clock(60_000)"))
    assert (sound.lock_timeouts, sound.redeliveries) == (0, 0)
    assert jumped.finished
    assert jumped.lock_timeouts == jumped.redeliveries > 0
    assert jumped.duration_s > 60


@pytest.mark.parametrize("ms", [-86_400_000, 86_400_000])
def test_a_time_of_day_that_is_set_changes_no_figure(ms: int) -> None:
    """Timestamps follow it, and durations do not."""
    with Simulation(Scenario(**WORK, faults=f"2 s: jump_clock({ms}, of_day=True)"), 1) as made:
        made.go()
        times = [parse_batch(stored.data).max_timestamp for stored in made.cluster.log("work", 0)._batches]
        assert abs(times[-1] - times[0] - ms) < 60_000
    plain, jumped = (dict(result(faults).row(), faults="") for faults in ("", f"2 s: jump_clock({ms}, of_day=True)"))
    assert repr(plain) == repr(jumped)


def test_lost_and_late_messages_and_slow_writes_end_at_their_times() -> None:
    sound = result("")
    slow = result("1 s: delay_appends('__share_group_state', 3_000); 8 s: delay_appends('__share_group_state', 0)")
    assert slow.latency_max_ms >= 3000 > sound.latency_max_ms
    late = result("1 s: messages.disturb(delay_ms=2_000); 8 s: messages.heal()")
    assert late.latency_p90_ms > 1000 > sound.latency_p90_ms
    lossy = result("1 s: messages.disturb(loss=0.3); 8 s: messages.heal()")
    assert lossy.latency_max_ms > 29_000, "the request time-out"
    assert all(one.finished for one in (sound, slow, late, lossy))


def test_killed_brokers_hand_over_and_their_deliveries_are_repeated() -> None:
    """A leader that is killed takes the acquisitions that it has not written with it."""
    faults = "; ".join(f"{2 + 2 * n} s: kill_broker({n % 3}); {3 + 2 * n} s: start_broker({n % 3})" for n in range(3))
    with Simulation(Scenario(**WORK, faults=faults), 1) as made:
        made.go()
        assert len(made.cluster.journal.select(SharePartitionLoaded)) > WORK["partitions"]
    assert result(faults).finished


def test_consumers_outlast_a_time_without_any_broker() -> None:
    """Also those that start in it, in place of crashed ones, and have reached none yet."""
    found = result("2 s: kill_broker(0); 32 s: start_broker(0)", brokers=1, crash_rate=0.1)
    assert found.finished
    assert found.duration_s > 30


# ---- no fault loses a record or accepts it twice ---------------------------------------------------------------------


def _faults(rng: random.Random, brokers: int) -> str:
    """Random faults in 20 s, then sound brokers and a sound network."""
    alive, found = set(range(brokers)), []
    for at_s in sorted(rng.sample(range(1, 20), 6)):
        first, second = rng.sample(range(brokers), 2)
        calls = [
            f"messages.cut({first}, {second})",
            f"messages.disturb(loss={rng.choice([0.02, 0.2])}, delay_ms={rng.choice([0, 300])})",
            f"delay_appends({rng.choice(['work', '__share_group_state'])!r}, {rng.choice([50, 3000])})",
            f"jump_clock({rng.choice([100, 20_000, 100_000])})",
            f"jump_clock({rng.choice([-90_000, 90_000])}, of_day=True)",
            "messages.heal()",
            f"{rng.choice(['kill', 'stop'])}_broker({first})" if first in alive else f"start_broker({first})",
        ]
        call = rng.choice(calls)
        if call.endswith(f"_broker({first})"):
            alive ^= {first}
        found.append(f"{at_s} s: {call}")
    back = [f"20 s: start_broker({broker})" for broker in range(brokers) if broker not in alive]
    return "; ".join([*found, "20 s: clear_faults()", *back])


def test_no_fault_loses_a_record_or_accepts_it_twice(seed: int) -> None:
    """`run` checks that."""
    for number in range(seed, seed + cases(6, 60)):
        rng = random.Random(number)
        brokers = rng.choice([2, 3, 5])
        scenario = Scenario(**{**WORK, "brokers": brokers}, delivery_count_limit=20, faults=_faults(rng, brokers))
        found = run(scenario, number)
        assert (found.finished, found.accepted) == (True, WORK["records"]), (number, scenario.faults)


def test_equal_seeds_give_equal_journals_with_all_faults() -> None:
    journals = []
    for _ in range(2):
        with Simulation(Scenario(**WORK, crash_rate=0.05, faults=ALL), 3) as made:
            made.go()
            origin_ms = made.cluster.origin_ms
            journals.append([(e.order, e.time_ms - origin_ms, e.broker_id, e.event) for e in made.cluster.journal])
    assert journals[0] == journals[1]


# ---- sweeps ----------------------------------------------------------------------------------------------------------


def test_a_sweep_over_faults_continues_from_its_checkpoint(tmp_path: Any) -> None:
    grid: dict[str, list[Any]] = {"faults": ["", f"1 s: {CUT}; 2 s: messages.heal()", ALL], "brokers": [2 + 1, 4]}
    scenario = Scenario(**WORK)
    found = sweep(grid, 2, scenario, checkpoint=tmp_path, progress=False)
    assert (len(found), found.failed) == (12, 0)
    again = sweep(grid, 2, scenario, checkpoint=tmp_path, progress=False)
    assert (again.computed, again.table.to_pylist()) == (0, found.table.to_pylist())
    assert len({row["latency_mean_ms"] for row in found.table.to_pylist()}) > 6


def test_a_sweep_names_a_bad_fault_before_any_run() -> None:
    with pytest.raises(ConfigException, match=r"second=3: must be one of \[0, 1, 2\]"):
        sweep({"brokers": [4, 3], "faults": ["1 s: messages.cut(0, 3)"]}, scenario=Scenario(**WORK), progress=False)


def test_a_scenario_with_faults_is_pickled() -> None:
    scenario = Scenario(**WORK, faults=ALL)
    assert pickle.loads(pickle.dumps(scenario)) == scenario
