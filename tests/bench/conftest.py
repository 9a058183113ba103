"""Fixtures of all benchmarks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import browser, chromium_path, jupyterlab, jupyterlab_folder

__all__ = ["browser", "chromium_path", "jupyterlab", "jupyterlab_folder"]


@pytest.fixture(autouse=True)
def _freeze_test_runner() -> Iterator[None]:
    """Exclude the memory of the test runner from garbage collection: an application does not have it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


_figures: list[tuple[str, dict[str, Any]]] = []
"""Test -> what it has measured beside times."""


@pytest.fixture(autouse=True)
def _keep_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    benchmark: Any = getattr(request.node, "funcargs", {}).get("benchmark")
    if benchmark is not None and benchmark.extra_info:
        _figures.append((request.node.name, dict(benchmark.extra_info)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures: the tables of pytest-benchmark have times only."""
    for name, figures in _figures:
        terminalreporter.section(name, "-")
        for figure, value in figures.items():
            terminalreporter.write_line(f"{figure}: {value}")
