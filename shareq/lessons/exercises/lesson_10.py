"""Lesson 10, capacity: numbers from measurements, checked in simulated runs."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.model.errors import ConfigException
from shareq.sim import Result, Scenario, run

EXERCISES: Final = Exercises("10")

POLL: Final = 20
BUSY: Final = 0.8
SERVICE_MS: Final = 200.0
SERVICES: Final = ((100, 0.0, 1), (150, 0.01, 40), (400, 0.02, 10))
"""Mean service time in ms of usual records, the part of slow ones, and how many times as long they take."""
PARTITIONS: Final = ((40.0, 30_000, 20), (100.0, 15_000, 50), (25.0, 60_000, 100))
"""Arrival rate, lock duration, batch size."""

_WORK: Final = Scenario(
    records=2_000, arrival_rate=30.0, batch_records=POLL, max_poll_records=POLL, acquire_mode="record_limit"
)


@EXERCISES.judged_by(
    "Enough consumers",
    "How many consumers are busy on average? Arrival rate × service time.",
    "Six busy ones are at most 80 % of all.",
)
def consumers(answer: Answer) -> Passed:
    number = ask(answer, wants=int)
    result = _run(replace(_WORK, service_ms=SERVICE_MS), consumers=number)
    work = (_WORK.arrival_rate or 0) * SERVICE_MS / 1000
    if work / number > BUSY:
        raise NotYet(f"✗ {number} consumers are busy for {min(work / number, 1):.0%} of the time")
    fewer = work / (number - 1)
    return check(
        fewer > BUSY,
        f"{number} consumers are busy for {work / number:.0%} of the time; p99 {result.latency_p99_ms / 1000:.1f} s",
        f"{number - 1} consumers are enough: they are busy for {fewer:.0%} of the time",
    )


def _run(scenario: Scenario, **changes: int) -> Result:
    try:
        return run(replace(scenario, **changes))  # type: ignore[arg-type]
    except ConfigException as refused:
        raise NotYet(f"✗ {refused}") from refused


@EXERCISES.judged_by(
    "A lock from measurements",
    "Which poll is the longest? A poll is the sum of 20 service times.",
    "Draw many polls from the measured times: random.Random(1).choices(times_ms, k=20), and sum each.",
    "The longest of some thousand drawn polls, and a little more, is a lock.",
)
def lock_from_times(answer: Answer) -> Passed:
    chosen = []
    for number, (usual_ms, slow_rate, factor) in enumerate(SERVICES):
        rng = Random(number)
        times = [usual_ms * (factor if rng.random() < slow_rate else 1) for _ in range(3_000)]
        lock_ms = int(ask(answer, list(times), wants=(int, float)))
        longest_ms = max(sum(rng.choices(times, k=POLL)) for _ in range(20_000))
        scenario = replace(
            _WORK, service_ms=float(usual_ms), slow_rate=slow_rate, slow_factor=max(factor, 2), consumers=40
        )
        result = _run(scenario, lock_duration_ms=lock_ms)
        late = result.lock_timeouts / result.deliveries
        slow = f"{slow_rate:.0%} of them {factor} times as long" if slow_rate else "none slower"
        what = f"{usual_ms} ms, {slow}: a lock of {lock_ms / 1000:g} s"
        if late > 0.01:
            raise NotYet(f"✗ {what} is too short: {late:.0%} of the deliveries time out")
        if lock_ms > 2 * longest_ms:
            raise NotYet(f"✗ {what} is too long: no poll takes longer than {longest_ms / 1000:g} s")
        chosen.append(f"{lock_ms / 1000:g} s")
    return Passed(f"✓ locks of {', '.join(chosen)} fit the three services")


@EXERCISES.judged_by(
    "Record locks",
    "How many records arrive while a dead consumer's lock lasts?",
    "arrival_rate × lock_ms / 1000, and the batch that the dead consumer holds.",
)
def record_locks(answer: Answer) -> Passed:
    for rate, lock_ms, batch in PARTITIONS:
        limit = int(ask(answer, rate, lock_ms, batch, wants=(int, float)))
        needed = rate * lock_ms / 1000
        what = f"{rate:g} records/s, a lock of {lock_ms / 1000:g} s"
        if limit < needed + batch:
            raise NotYet(f"✗ {what}: {limit:,} record locks are full before the lock ends")
        if limit > 1.5 * (needed + batch):
            raise NotYet(f"✗ {what}: {limit:,} record locks are more than 1.5 times as many as needed")
    return Passed("✓ enough for all three partitions, and not too much")
