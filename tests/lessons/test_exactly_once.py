"""What lesson 18 says of outputs and acknowledgements, apart and in one transaction."""

from __future__ import annotations

from collections import Counter

from shareq.lessons.exactly_once import JOBS, Copying


def test_in_two_steps_a_kill_between_them_makes_two_results() -> None:
    copying = Copying("write, then acknowledge")
    assert Counter(copying.results.values()) == {1: 9, 2: 3}
    assert str(copying) == "write, then acknowledge  15 results: 3 jobs have two, 0 have none"


def test_in_one_transaction_every_job_has_one_result() -> None:
    copying = Copying("one transaction")
    assert copying.results == Counter({f"job {number}": 1 for number in range(JOBS)})
    assert copying.bench.cluster.log("results", 0).log_end_offset > JOBS, "the killed worker had written results"


def test_a_transaction_takes_longer() -> None:
    plain = Copying("write, then acknowledge", killed=False, latency_ms=5)
    one = Copying("one transaction", killed=False, latency_ms=5)
    assert plain.results == one.results == Counter({f"job {number}": 1 for number in range(JOBS)})
    assert plain.duration_ms < one.duration_ms
