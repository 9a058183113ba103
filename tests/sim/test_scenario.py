"""What a scenario may say: everything else is refused by name, value and range."""

import random
from typing import Any

import pytest

from shareq.model.errors import ConfigException
from shareq.sim import Scenario, run


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"records": 0}, "records=0: must be a whole number in 1..1e+07", id="nothing to do"),
        pytest.param({"records": 10.5}, "records=10.5: must be a whole number in 1..1e+07", id="half a record"),
        pytest.param({"consumers": True}, "consumers=True: must be a whole number in 1..1000", id="a flag"),
        pytest.param({"consumers": None}, "consumers=None: must be a whole number in 1..1000", id="no number at all"),
        pytest.param({"partitions": -1}, "partitions=-1: must be a whole number in 1..1000", id="negative"),
        pytest.param({"max_poll_records": "5"}, "max_poll_records='5': must be a whole", id="a word"),
        pytest.param(
            {"lock_duration_ms": 999}, "lock_duration_ms=999: must be a whole number in 1000", id="short lock"
        ),
        pytest.param({"record_locks": 99}, "record_locks=99: must be a whole number in 100..10000", id="few locks"),
        pytest.param({"delivery_count_limit": 1}, "delivery_count_limit=1: must be a whole number in 2..25", id="once"),
        pytest.param({"batch_records": 0}, "batch_records=0: must be a whole number in 1..100000", id="empty batches"),
        pytest.param({"arrival_rate": 0}, "arrival_rate=0: must be a number in 0.001..1e+09", id="nothing ever comes"),
        pytest.param({"service_ms": -0.5}, "service_ms=-0.5: must be a number in 0..3.6e+06", id="done before begun"),
        pytest.param(
            {"service": "normal"}, "service='normal': must be one of constant, exp", id="unknown distribution"
        ),
        pytest.param({"failure_rate": 1.01}, "failure_rate=1.01: must be a number in 0..1", id="more than all fail"),
        pytest.param({"failure_rate": float("nan")}, "failure_rate=nan: must be a number in 0..1", id="not a number"),
        pytest.param({"poison_rate": -1}, "poison_rate=-1: must be a number in 0..1", id="less than none"),
        pytest.param({"crash_rate": 1.0}, "crash_rate=1.0: must be a number in 0..0.9", id="nobody survives"),
        pytest.param({"restart_ms": -1}, "restart_ms=-1: must be a whole number in 0..3.6e+06", id="back too soon"),
        pytest.param({"max_duration_s": 0}, "max_duration_s=0: must be a whole number in 1..1e+07", id="no time"),
        pytest.param({"acquire_mode": "all"}, "acquire_mode='all': must be one of batch_optimized", id="unknown mode"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_value_and_what_is_allowed(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigException) as caught:
        Scenario(**values)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("seed", [pytest.param(s, id=repr(s)) for s in (-1, 1.0, "seven", None, True)])
def test_a_seed_is_a_whole_number_from_zero_on(seed: Any) -> None:
    """`random.Random` would take them all, -7 for the same as 7."""
    with pytest.raises(ConfigException, match="must be a whole number >= 0"):
        run(Scenario(records=1), seed)


@pytest.mark.parametrize("service", ["constant", "exponential", "lognormal"])
@pytest.mark.parametrize("mean_ms", [0.0, 0.2, 40.0])
def test_service_times_have_the_mean_that_was_asked_for(service: str, mean_ms: float) -> None:
    draw, rng = Scenario(service=service, service_ms=mean_ms).service_time(), random.Random(1)
    drawn = [draw(rng) for _ in range(20_000)]
    assert min(drawn) >= 0
    assert sum(drawn) / len(drawn) == pytest.approx(mean_ms, rel=0.05)
    assert (len(set(drawn)) == 1) == (service == "constant" or mean_ms == 0)
