"""Configuration of all tests: the profiles of Hypothesis, the seed of a run, and SIGINT.

In the rings (`tests/rings`) the examples of Hypothesis and the seed are the same in every run, so the result depends on
the change alone. Elsewhere both are random, unless `SHAREQ_SEED=...` sets the seed; `make deep` searches with 2,000
examples of each and many times the runs. The output of a failed test repeats it: Hypothesis prints the line
`@reproduce_failure(...)`, and a test that uses the fixture `seed` prints `SHAREQ_SEED=...`, which is also in the header
of the run.
"""

import gc
import os
import signal
from collections.abc import Generator
from random import SystemRandom

import pytest
from hypothesis import HealthCheck, settings

# Brokers for tests of clients; what a test starts; the end of a test that is stuck.
pytest_plugins = ["tests.kafka.fixtures", "tests.rings.markers", "tests.rings.stuck"]

# No deadline: it would be an assertion about time, which fails on a busy machine.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
_REPEATED = settings(_COMMON, database=None, derandomize=True)
settings.register_profile("dev", _COMMON, max_examples=50, stateful_step_count=30)
settings.register_profile("first", _REPEATED, max_examples=50, stateful_step_count=30)
settings.register_profile("all", _REPEATED, max_examples=300, stateful_step_count=50)
settings.register_profile("deep", _COMMON, max_examples=2_000, stateful_step_count=50)
settings.load_profile("dev")


def pytest_configure() -> None:
    """Choose the seed; programs that tests start inherit it."""
    os.environ.setdefault("SHAREQ_SEED", str(SystemRandom().randrange(1 << 32)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, and exempt them from it: they live as long as the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def stop_button() -> None:
    """Make SIGINT raise KeyboardInterrupt in each test: Spark installs a handler of its own in its process, and a
    shell starts programs in the background with SIGINT ignored.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"shareq: hypothesis profile {settings.get_current_profile_name()}, SHAREQ_SEED={os.environ['SHAREQ_SEED']}"


@pytest.fixture
def seed() -> int:
    """The run's seed: SHAREQ_SEED, or else one fixed in the rings and random elsewhere; printed if the test fails."""
    value = int(os.environ["SHAREQ_SEED"])
    print(f"repeat with SHAREQ_SEED={value}")
    return value
