"""The parameters of a run: the group's configuration with its experiments, the work, and failures."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, fields

from shareq.model.errors import ConfigException
from shareq.model.numbers import plain, plain_fields
from shareq.sim.faults import check_faults

Draw = Callable[[random.Random], float]

SPREAD = 1.0
"""Sigma of the lognormal service times, which leaves the mean; one in forty takes more than seven times the median."""

_SERVICES: dict[str, Callable[[float], Draw]] = {
    "constant": lambda mean: lambda _: mean,
    "exponential": lambda mean: lambda rng: rng.expovariate(1 / mean),
    "lognormal": lambda mean: lambda rng: rng.lognormvariate(math.log(mean) - SPREAD**2 / 2, SPREAD),
}

_BOUNDS: dict[str, tuple[float, float]] = {
    "records": (1, 10_000_000),
    "partitions": (1, 1000),
    "consumers": (1, 1000),
    "max_poll_records": (1, 1_000_000),
    "lock_duration_ms": (1000, 3_600_000),
    "record_locks": (100, 10_000),
    "delivery_count_limit": (2, 25),
    "batch_records": (1, 100_000),
    "arrival_rate": (0.001, 1e9),
    "service_ms": (0.0, 3_600_000),
    "failure_rate": (0.0, 1.0),
    "poison_rate": (0.0, 1.0),
    "slow_rate": (0.0, 1.0),
    "slow_factor": (1, 1000),
    "crash_rate": (0.0, 0.9),
    "restart_ms": (0, 3_600_000),
    "max_duration_s": (1, 10_000_000),
    "hot_share": (0.0, 1.0),
    "message_loss": (0.0, 0.5),
    "message_delay_ms": (0, 60_000),
    "state_write_delay_ms": (0, 60_000),
    "keys": (1, 10_000_000),
    "release_backoff_ms": (0, 3_600_000),
    "release_backoff_max_ms": (0, 3_600_000),
    "key_max_in_flight": (1, 1000),
    "record_ttl_ms": (1000, 10_000_000_000),
    "lag_interval_ms": (1000, 3_600_000),
    "brokers": (1, 100),
}
_CHOICES = {
    "acquire_mode": ("batch_optimized", "record_limit"),
    "service": tuple(_SERVICES),
    "assignor": ("simple", "all_to_all", "cut"),
    "key_ordering": ("none", "key"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The parameters of a run. ConfigException names an invalid field, its value and the allowed values.

    `arrival_rate`: records per second, in record batches of `batch_records` at exponential intervals; None: all arrive
    at the start. `hot_share`: the fraction of the record batches that go to partition 0, the rest goes to the others in
    turn; None: all partitions in turn. `keys`: each record has one of so many keys, at random; None: none has a key.

    A consumer works on the records of a poll one by one (`service_ms` each on average, with distribution `service`),
    then acknowledges all of them. `failure_rate`: the fraction of attempts that end in a RELEASE; `poison_rate`: the
    fraction of records of which every attempt does. `slow_rate`: the fraction of records of which every attempt takes
    `slow_factor` times its service time. `crash_rate`: the fraction of polls in whose work the consumer crashes
    half-way; another one replaces it after `restart_ms`. `message_loss`: the fraction of requests and of responses that
    are lost; `message_delay_ms`: the most by which one is late, so that they overtake each other;
    `state_write_delay_ms`: the time that a state write takes longer. A run ends when all records are finished, or after
    `max_duration_s` of virtual time.

    `brokers`: their number; a partition has a replica on each, at most three. `faults`: calls of the run's `Cluster`,
    each at a time in seconds after the start of the run, with semicolons between them:

        "10 s: messages.cut(0, 1); 40 s: messages.heal(); 60 s: jump_clock(45_000); 90 s: kill_broker(2)"

    The calls are `messages.disturb`, `messages.cut`, `messages.heal`, `delay_appends`, `jump_clock`, `kill_broker`,
    `stop_broker`, `start_broker`, `elect_preferred_leaders` and `clear_faults`, and their values those of `Cluster`;
    the topic of the records is "work". They change what `message_loss`, `message_delay_ms` and `state_write_delay_ms`
    have begun with. What the cluster would refuse is refused here. The time that a clock jumps over counts.

    Experiments, which Apache Kafka does not have: each assignor but "simple", and `lag_interval_ms`, the time after
    which "cut" weighs the partitions again; `release_backoff_ms`: how long a record rests after its first release,
    twice as long after each further one, at most `release_backoff_max_ms`; `key_ordering`: "key" delivers the records
    of a key in order, at most `key_max_in_flight` of them at a time; `record_ttl_ms`: the age at which a record is
    archived instead of delivered, None: none.
    """

    records: int = 10_000
    partitions: int = 1
    consumers: int = 4
    max_poll_records: int = 500
    acquire_mode: str = "batch_optimized"
    lock_duration_ms: int = 30_000
    record_locks: int = 2000
    delivery_count_limit: int = 5
    batch_records: int = 100
    arrival_rate: float | None = None
    service_ms: float = 10.0
    service: str = "constant"
    failure_rate: float = 0.0
    poison_rate: float = 0.0
    slow_rate: float = 0.0
    slow_factor: int = 20
    crash_rate: float = 0.0
    restart_ms: int = 5000
    max_duration_s: int = 100_000
    hot_share: float | None = None
    assignor: str = "simple"
    message_loss: float = 0.0
    message_delay_ms: int = 0
    state_write_delay_ms: int = 0
    keys: int | None = None
    release_backoff_ms: int = 0
    release_backoff_max_ms: int = 60_000
    key_ordering: str = "none"
    key_max_in_flight: int = 1
    record_ttl_ms: int | None = None
    lag_interval_ms: int = 10_000
    brokers: int = 1
    faults: str = ""

    def __post_init__(self) -> None:
        plain_fields(self)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _CHOICES:
                if value not in _CHOICES[field.name]:
                    raise ConfigException(f"{field.name}={value!r}: must be one of {', '.join(_CHOICES[field.name])}")
            elif field.name != "faults" and not (value is None and field.default is None):
                _check_number(field.name, value, whole="int" in str(field.type))
        if self.release_backoff_max_ms < self.release_backoff_ms:
            raise ConfigException(
                f"release_backoff_max_ms={self.release_backoff_max_ms}: must be a whole number in "
                f"{self.release_backoff_ms}..3.6e+06 (release_backoff_ms)"
            )
        if self.key_ordering == "key" and self.keys is None:
            raise ConfigException("keys=None: must be a whole number in 1..1e+07 if key_ordering='key'")
        check_faults(self.faults, self.brokers, self.max_duration_s)

    def service_time(self) -> Draw:
        """A function that draws the service time of a record, ms."""
        return _SERVICES[self.service](self.service_ms) if self.service_ms else lambda _: 0.0


def check_seed(seed: object) -> int:
    """The seed. ConfigException unless it is a whole number >= 0: `random.Random` takes others, and -7 for 7."""
    seed = plain(seed)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigException(f"seed={seed!r}: must be a whole number >= 0")
    return seed


def _check_number(name: str, value: object, *, whole: bool) -> None:
    low, high = _BOUNDS[name]
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise ConfigException(f"{name}={value!r}: must be {kind} in {low:g}..{high:g}")
