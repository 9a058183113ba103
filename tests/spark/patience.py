"""Queries on a machine that is busy with other things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TIMEOUT_S = 240

BUSY = "Python worker failed to connect back"
"""Spark gives a process of its own ten seconds to come up. Where that is too little, a query is started again."""


def finish(start: Callable[[], Any], timeout_s: int | None = TIMEOUT_S) -> None:
    """Start a query and wait for its end; what else goes wrong is raised."""
    while True:
        try:
            query = start()
            assert query.awaitTermination(timeout_s) or timeout_s is None
            return
        except Exception as error:
            if BUSY not in str(error):
                raise


def is_running(query: Any, seconds: float) -> bool:
    """Whether a query goes on, after so many seconds; False where it is to be started again."""
    try:
        assert not query.awaitTermination(seconds), "the query has ended by itself"
        return True
    except Exception as error:
        if BUSY not in str(error):
            raise
        return False
