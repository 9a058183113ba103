"""Polling until what was asked for is there, for tests on brokers that take their time."""

from __future__ import annotations

import time
from typing import Any

PATIENCE_S = 60.0
"""How long a test waits for what has to come; nothing is ever waited for that must not come."""


def take(consumer: Any, count: int) -> list[Any]:
    """The records of as many polls as it takes to have so many."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came: {found}"
        found += consumer.poll(1)
    return found
