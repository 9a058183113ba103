"""Waiting for queries on a machine that may be busy with other work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TIMEOUT_S = 240

BUSY = "Python worker failed to connect back"
"""Spark gives its Python processes ten seconds to start. Where that is too short, a query is started again."""


def finish(start: Callable[[], Any], timeout_s: int | None = TIMEOUT_S) -> None:
    """Start a query and wait for its end; start it again after a failure that is due to a busy machine."""
    while True:
        try:
            query = start()
            assert query.awaitTermination(timeout_s) or timeout_s is None
            return
        except Exception as error:
            if BUSY not in str(error):
                raise


def is_running(query: Any, seconds: float) -> bool:
    """Whether a query is still running after so many seconds; False if it must be started again."""
    try:
        assert not query.awaitTermination(seconds), "the query has ended by itself"
        return True
    except Exception as error:
        if BUSY not in str(error):
            raise
        return False
