"""Configuration of all tests: the profiles of Hypothesis, the seed of a run, SIGINT and the groups of pytest-xdist.

In CI the examples of Hypothesis and the seed are the same in every run, so the result depends on the change alone: a
net for regressions, which more of the same examples would not make tighter. Elsewhere both are random, unless
`SHAREQ_SEED=...` sets the seed; `make deep` searches with 2,000 examples of each and twenty times the runs. The output
of a failed test repeats it: Hypothesis prints the line `@reproduce_failure(...)`, and a test that uses the fixture
`seed` prints `SHAREQ_SEED=...`, which is also in the header of the run.
"""

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from random import SystemRandom

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.kafka.fixtures"]  # brokers for tests of clients

_IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# No deadline: it would be an assertion about time, which fails on a busy machine.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", _COMMON, max_examples=50, stateful_step_count=30)
settings.register_profile("ci", _COMMON, max_examples=100, stateful_step_count=50, database=None, derandomize=True)
settings.register_profile("deep", _COMMON, max_examples=2_000, stateful_step_count=50)
settings.load_profile("ci" if _IN_CI else "dev")


def pytest_configure() -> None:
    """Choose the seed before workers start: they inherit the environment, so a run has one seed."""
    os.environ.setdefault("SHAREQ_SEED", str(932 if _IN_CI else SystemRandom().randrange(1 << 32)))


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


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto` starts two workers more than there are cores: two of them mostly wait for an Apache Kafka each."""
    return (os.cpu_count() or 1) + 2


_KAFKA_GROUPS = {
    "tests/pairings/": "pairings",
    "tests/wire/": "clients",
    "tests/backend/": "clients",
    "tests/proxy/": "clients",
}
"""Folder of tests -> their group; the other tests that use one broker of Apache Kafka or its tools are the group
"apache-kafka".
"""

_OWN_KAFKAS = (
    "tests/kafka/",
    "tests/backend/",
    "tests/pairings/test_authorization.py",
    "tests/observer/health/test_kafka.py",
    "tests/proxy/test_kafka.py",
    "tests/proxy/test_ground_truth.py",
    "tests/proxy/test_tls.py",
)
"""Tests that start brokers themselves."""


_FIRST = ("clients", "pairings", "apache-kafka", "spark", "spark-cluster", "kafka-of-three", "site")
"""The groups with which workers begin, in this order: they take longest, and mostly wait, side by side."""

_TOGETHER = 50
"""The number of a file's other tests that are one group: most files are set up by one worker instead of each, and
xdist, which counts the groups of a worker after each test, has few to count.
"""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Group the tests that share a process that is slow to start, as a group runs in one worker, which starts it once.

    The tests that use Spark in the test process are one group, those that start a Spark cluster another. Those that
    use an Apache Kafka with three brokers are one group, those that use one broker three, each with a broker of its
    own. Those that use the site's Python for the browser are one group.
    """
    others = Counter[Path]()
    ranks = {}
    for item in items:
        group = _shared_process(item)
        ranks[item] = _FIRST.index(group) if group else len(_FIRST)
        if group is None:
            group = f"{item.path.parent.name}-{item.path.stem}-{others[item.path] // _TOGETHER}"
            others[item.path] += 1
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    if getattr(config.option, "loadgroup", False):
        items.sort(key=ranks.__getitem__)  # `--no-loadscope-reorder` keeps this order


def _shared_process(item: pytest.Item) -> str | None:
    """The group of a test that uses a process that is slow to start; None if it uses none."""
    chosen = getattr(getattr(item, "callspec", None), "params", {}).values()
    fixtures = {*getattr(item, "fixturenames", ()), *(value for value in chosen if isinstance(value, str))}
    if own := item.get_closest_marker("xdist_group"):
        return str(own.args[0])
    if "spark" in fixtures:
        return "spark"
    if "runtime" in fixtures:
        return "site"
    if "tests/spark/test_standalone.py" in item.nodeid:
        return "spark-cluster"
    if "kafka_of_three" in fixtures:
        return "kafka-of-three"
    if fixtures & {"kafka", "backed", "java_tools"} or any(path in item.nodeid for path in _OWN_KAFKAS):
        return next((name for folder, name in _KAFKA_GROUPS.items() if folder in item.nodeid), "apache-kafka")
    return None


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
