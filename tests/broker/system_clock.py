"""The system's clock, set by a test."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`ahead(ms)` sets the system's clock by so much ahead; the monotonic clock goes on."""
    real_ns = time.time_ns
    return lambda ms: monkeypatch.setattr(time, "time_ns", lambda: real_ns() + ms * 1_000_000)
