"""Fixtures of all benchmarks."""

from __future__ import annotations

import gc
from collections.abc import Iterator

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
