"""Values of a scenario: invalid ones are refused with name, value and allowed range."""

import random
from typing import Any

import pytest

from shareq.model.errors import ConfigException
from shareq.sim import Scenario, run


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"records": 0}, "records=0: must be a whole number in 1..1e+07", id="no records"),
        pytest.param({"records": 10.5}, "records=10.5: must be a whole number in 1..1e+07", id="a fraction"),
        pytest.param({"consumers": True}, "consumers=True: must be a whole number in 1..1000", id="a bool"),
        pytest.param({"consumers": None}, "consumers=None: must be a whole number in 1..1000", id="None"),
        pytest.param({"partitions": -1}, "partitions=-1: must be a whole number in 1..1000", id="negative"),
        pytest.param({"max_poll_records": "5"}, "max_poll_records='5': must be a whole", id="a text"),
        pytest.param(
            {"lock_duration_ms": 999}, "lock_duration_ms=999: must be a whole number in 1000", id="short lock"
        ),
        pytest.param({"record_locks": 99}, "record_locks=99: must be a whole number in 100..10000", id="few locks"),
        pytest.param(
            {"delivery_count_limit": 1}, "delivery_count_limit=1: must be a whole number in 2..25", id="limit 1"
        ),
        pytest.param({"batch_records": 0}, "batch_records=0: must be a whole number in 1..100000", id="empty batches"),
        pytest.param({"arrival_rate": 0}, "arrival_rate=0: must be a number in 0.001..1e+09", id="no arrivals"),
        pytest.param(
            {"service_ms": -0.5}, "service_ms=-0.5: must be a number in 0..3.6e+06", id="negative service time"
        ),
        pytest.param(
            {"service": "normal"}, "service='normal': must be one of constant, exp", id="unknown distribution"
        ),
        pytest.param({"failure_rate": 1.01}, "failure_rate=1.01: must be a number in 0..1", id="failure rate above 1"),
        pytest.param({"failure_rate": float("nan")}, "failure_rate=nan: must be a number in 0..1", id="not a number"),
        pytest.param({"poison_rate": -1}, "poison_rate=-1: must be a number in 0..1", id="negative poison rate"),
        pytest.param({"slow_rate": 1.5}, "slow_rate=1.5: must be a number in 0..1", id="slow rate above 1"),
        pytest.param({"slow_factor": 0}, "slow_factor=0: must be a whole number in 1..1000", id="slow factor 0"),
        pytest.param({"crash_rate": 1.0}, "crash_rate=1.0: must be a number in 0..0.9", id="crash rate 1"),
        pytest.param(
            {"restart_ms": -1}, "restart_ms=-1: must be a whole number in 0..3.6e+06", id="negative restart time"
        ),
        pytest.param({"max_duration_s": 0}, "max_duration_s=0: must be a whole number in 1..1e+07", id="no duration"),
        pytest.param({"hot_share": 1.5}, "hot_share=1.5: must be a number in 0..1", id="hot share above 1"),
        pytest.param({"message_loss": 0.6}, "message_loss=0.6: must be a number in 0..0.5", id="most are lost"),
        pytest.param({"message_delay_ms": 1.5}, "message_delay_ms=1.5: must be a whole number in 0..60000", id="delay"),
        pytest.param({"state_write_delay_ms": -1}, "state_write_delay_ms=-1: must be a whole number in 0", id="early"),
        pytest.param({"assignor": "half"}, "assignor='half': must be one of simple, all_to_all, cut", id="assignor"),
        pytest.param({"keys": 0}, "keys=0: must be a whole number in 1..1e+07", id="no keys"),
        pytest.param({"keys": 1.5}, "keys=1.5: must be a whole number in 1..1e+07", id="half a key"),
        pytest.param({"release_backoff_ms": -1}, "release_backoff_ms=-1: must be a whole number in 0..3.6", id="rest"),
        pytest.param(
            {"release_backoff_ms": 70_000},
            "release_backoff_max_ms=60000: must be a whole number in 70000..3.6e+06",
            id="a rest above the longest one",
        ),
        pytest.param({"key_ordering": "all"}, "key_ordering='all': must be one of none, key", id="unknown order"),
        pytest.param({"key_ordering": "key"}, "keys=None: must be a whole number in 1..1e+07 if key_or", id="no key"),
        pytest.param({"key_max_in_flight": 0}, "key_max_in_flight=0: must be a whole number in 1..1000", id="none"),
        pytest.param({"record_ttl_ms": 999}, "record_ttl_ms=999: must be a whole number in 1000..1e+10", id="ttl"),
        pytest.param({"lag_interval_ms": 999}, "lag_interval_ms=999: must be a whole number in 1000..3.6", id="lag"),
        pytest.param({"acquire_mode": "all"}, "acquire_mode='all': must be one of batch_optimized", id="unknown mode"),
    ],
)
def test_error_names_parameter_value_and_range(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException) as caught:
        Scenario(**values)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("seed", [pytest.param(s, id=repr(s)) for s in (-1, 1.0, "seven", None, True)])
def test_a_seed_must_be_a_whole_number_from_0_on(seed: Any) -> None:
    """`random.Random` would accept all of them, and -7 would equal 7."""
    with pytest.raises(ConfigException, match="must be a whole number >= 0"):
        run(Scenario(records=1), seed)


@pytest.mark.parametrize("service", ["constant", "exponential", "lognormal"])
@pytest.mark.parametrize("mean_ms", [0.0, 0.2, 40.0])
def test_service_times_have_the_requested_mean(service: str, mean_ms: float) -> None:
    draw, rng = Scenario(service=service, service_ms=mean_ms).service_time(), random.Random(1)
    drawn = [draw(rng) for _ in range(20_000)]
    assert min(drawn) >= 0
    assert sum(drawn) / len(drawn) == pytest.approx(mean_ms, rel=0.05)
    assert (len(set(drawn)) == 1) == (service == "constant" or mean_ms == 0)
