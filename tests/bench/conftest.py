"""What all benchmarks share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _only_our_own_garbage() -> Iterator[None]:
    """Let the collector pass by what the test runner itself has in memory: an application does not carry that."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
