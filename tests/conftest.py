"""Configuration of all tests: the profiles of Hypothesis, the seed of a run, SIGINT and the groups of pytest-xdist.

In CI the examples of Hypothesis and the seed are the same in every run, so the result depends on the change alone.
Elsewhere both are random, unless `SHAREQ_SEED=...` sets the seed. The output of a failed test repeats it: Hypothesis
prints the line `@reproduce_failure(...)`, and a test that uses the fixture `seed` prints `SHAREQ_SEED=...`, which is
also in the header of the run.
"""

import os
import signal
from random import SystemRandom

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.kafka.fixtures"]  # brokers for tests of clients

_IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# No deadline: it would be an assertion about time, which fails on a busy machine.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", _COMMON, max_examples=50, stateful_step_count=30)
settings.register_profile("ci", _COMMON, max_examples=300, stateful_step_count=50, database=None, derandomize=True)
settings.load_profile("ci" if _IN_CI else "dev")


def pytest_configure() -> None:
    """Choose the seed before workers start: they inherit the environment, so a run has one seed."""
    os.environ.setdefault("SHAREQ_SEED", str(932 if _IN_CI else SystemRandom().randrange(1 << 32)))


@pytest.fixture(autouse=True)
def stop_button() -> None:
    """Make SIGINT raise KeyboardInterrupt in each test: Spark installs a handler of its own in its process, and a
    shell starts programs in the background with SIGINT ignored.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto` starts two workers more than there are cores: two of them mostly wait for an Apache Kafka each."""
    return (os.cpu_count() or 1) + 2


_KAFKA_GROUPS = {
    "tests/pairings/": "pairings",
    "tests/wire/": "clients",
    "tests/backend/": "clients",
    "tests/proxy/": "clients",
}
"""Folder of tests -> their group; the other tests that use one broker of Apache Kafka are the group "apache-kafka".

There are three such groups and no more: workers begin with the groups that have the most tests, and that of Spark,
which takes longest, is to be the fourth.
"""

_OWN_KAFKAS = (
    "tests/kafka/",
    "tests/backend/",
    "tests/observer/health/test_kafka.py",
    "tests/proxy/test_kafka.py",
    "tests/proxy/test_ground_truth.py",
    "tests/proxy/test_tls.py",
)
"""Tests that start brokers themselves."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests that share a process that is slow to start, as a group runs in one worker, which starts it once.

    The tests that use Spark in the test process are one group, those that start a Spark cluster another. Those that
    use an Apache Kafka with three brokers are one group, those that use one broker three, each with a broker of its
    own. They mostly wait, side by side.
    """
    for item in items:
        chosen = getattr(getattr(item, "callspec", None), "params", {}).values()
        fixtures = {*getattr(item, "fixturenames", ()), *(value for value in chosen if isinstance(value, str))}
        if "spark" in fixtures:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "tests/spark/test_standalone.py" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("spark-cluster"))
        elif "kafka_of_three" in fixtures:
            item.add_marker(pytest.mark.xdist_group("kafka-of-three"))
        elif fixtures & {"kafka", "backed"} or any(path in item.nodeid for path in _OWN_KAFKAS):
            group = next((name for folder, name in _KAFKA_GROUPS.items() if folder in item.nodeid), "apache-kafka")
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Check that ids have the group as a suffix: without it, xdist ignores groups and each worker starts a Spark."""
    if getattr(session.config.option, "loadgroup", False):
        grouped = (item for item in session.items if item.get_closest_marker("xdist_group"))
        assert all("@" in item.nodeid for item in grouped), "this pytest does not let this pytest-xdist group tests"


def pytest_report_header() -> str:
    return f"shareq: hypothesis profile {settings.get_current_profile_name()}, SHAREQ_SEED={os.environ['SHAREQ_SEED']}"


@pytest.fixture
def seed() -> int:
    """The run's seed: SHAREQ_SEED if it is set, else fixed in CI and random elsewhere; printed if the test fails."""
    value = int(os.environ["SHAREQ_SEED"])
    print(f"repeat with SHAREQ_SEED={value}")
    return value
