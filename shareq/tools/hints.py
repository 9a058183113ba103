"""The hints of a share consumer about empty polls, which help in a notebook."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_hints() -> Iterator[None]:
    """Log no hints: the polls of a tool are empty until the group has assigned the partitions."""
    log = logging.getLogger("shareq.consumer")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
