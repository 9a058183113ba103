"""What all tests share: how hard Hypothesis tries, and the one seed that a run draws its chance from.

In CI both are the same in every run, so that a change is judged by what it does and not by chance; elsewhere each run
draws anew, and `SHAREQ_SEED=...` chooses. A failure can be repeated from what it prints: Hypothesis adds the line
`@reproduce_failure(...)`, and a test that uses the fixture `seed` shows `SHAREQ_SEED=...`, which is also in the header
of the run.
"""

import os
import signal
from random import SystemRandom

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.kafka.fixtures"]  # brokers to point clients at

_IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# A deadline would be a timed assertion, and a busy machine says nothing about the code.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", _COMMON, max_examples=50, stateful_step_count=30)
settings.register_profile("ci", _COMMON, max_examples=300, stateful_step_count=50, database=None, derandomize=True)
settings.load_profile("ci" if _IN_CI else "dev")


def pytest_configure() -> None:
    """Choose the seed before workers start: they inherit it with the environment, so all of a run has the same."""
    os.environ.setdefault("SHAREQ_SEED", str(932 if _IN_CI else SystemRandom().randrange(1 << 32)))


@pytest.fixture(autouse=True)
def stop_button() -> None:
    """SIGINT raises KeyboardInterrupt in each test: Spark leaves a handler of its own in its process, and a shell
    starts programs in the background with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: two workers mostly wait for an Apache Kafka each, so there are two more than cores."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a Spark go to one worker, which starts one; those that share an Apache Kafka go to two others,
    each with a broker of its own: the pairings take as long as all the rest.

    Spark's clusters are processes by themselves.
    """
    for item in items:
        chosen = getattr(getattr(item, "callspec", None), "params", {}).values()
        fixtures = {*getattr(item, "fixturenames", ()), *(value for value in chosen if isinstance(value, str))}
        if "spark" in fixtures:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "tests/spark/test_standalone.py" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("spark-cluster"))
        elif fixtures & {"kafka", "kafka_of_three"} or "tests/kafka/" in item.nodeid:
            of_pairings = "tests/pairings/" in item.nodeid
            item.add_marker(pytest.mark.xdist_group("pairings" if of_pairings else "apache-kafka"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups are a suffix of ids. Where xdist cannot write it there, each worker would start a Spark of its own."""
    if getattr(session.config.option, "loadgroup", False):
        grouped = (item for item in session.items if item.get_closest_marker("xdist_group"))
        assert all("@" in item.nodeid for item in grouped), "this pytest does not let this pytest-xdist group tests"


def pytest_report_header() -> str:
    return f"shareq: hypothesis profile {settings.get_current_profile_name()}, SHAREQ_SEED={os.environ['SHAREQ_SEED']}"


@pytest.fixture
def seed() -> int:
    """The run's seed: SHAREQ_SEED where it is set, else new for each run outside CI; shown when the test fails."""
    value = int(os.environ["SHAREQ_SEED"])
    print(f"repeat with SHAREQ_SEED={value}")
    return value
