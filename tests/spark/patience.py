"""Waiting for queries.

Spark gives each of its Python processes ten seconds to start, which no setting changes. A ring starts one part of Spark
at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TIMEOUT_S = 240


def finish(start: Callable[[], Any], timeout_s: int | None = TIMEOUT_S) -> None:
    """Start a query and wait for its end."""
    assert start().awaitTermination(timeout_s) or timeout_s is None
