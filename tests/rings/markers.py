"""Markers of tests that start a real part, by the fixtures that they use; no other test starts a JVM."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import pytest

REAL = {
    "kafka": "starts an Apache Kafka, or its tools, in Java",
    "spark": "starts a Spark, in Java",
    "browser": "starts a Chromium (`make browser` finds or fetches one)",
    "site": "starts Pyodide, the site's Python, in Node",
}
"""Marker -> its description."""

BY_FIXTURE = {
    "kafka": "kafka",
    "backed": "kafka",
    "kafka_of_three": "kafka",
    "compacting_kafka": "kafka",
    "backed_by_three": "kafka",
    "tapped_kafka": "kafka",
    "java_tools": "kafka",
    "java_members": "kafka",
    "spark": "spark",
    "browser": "browser",
    "chromium_path": "browser",
    "runtime": "site",
}
"""Fixture -> marker of the tests that use it. A test that starts a real part itself has the marker in its module."""

JVM = frozenset({"java", "java.exe", "spark-submit", "spark-submit.cmd"})
SUBSTITUTES = "pytest-of-"
"""Part of the paths of programs that tests have written themselves, in `tmp_path`."""


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in REAL.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    config.addinivalue_line("markers", "long: deterministic, and takes many seconds; not in the first ring")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        chosen = getattr(getattr(item, "callspec", None), "params", {}).values()
        used = {*getattr(item, "fixturenames", ()), *(value for value in chosen if isinstance(value, str))}
        for name in {BY_FIXTURE[fixture] for fixture in used & BY_FIXTURE.keys()}:
            item.add_marker(name)


OUTSIDE = ("tests/bench/", "tests/soak/")
"""Folders that no ring runs: their tests may start what they need."""


class _Guard:
    """The test that must start no JVM."""

    test = ""


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Forbid the start of a JVM to tests without a marker of a real part. A Java may be asked for its version."""
    if event == "subprocess.Popen" and _Guard.test:
        program, words = PurePath(str(args[0])), args[1]
        if program.name in JVM and SUBSTITUTES not in str(program) and "-version" not in words:
            raise RuntimeError(f"{_Guard.test} starts {program}: mark it, see tests/rings/markers.py")


sys.addaudithook(_audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    may = item.nodeid.startswith(OUTSIDE) or any(item.get_closest_marker(name) for name in REAL)
    _Guard.test = "" if may else item.nodeid
    try:
        return (yield)
    finally:
        _Guard.test = ""
