"""The hints of a share consumer about empty polls, which help in a notebook."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from shareq.consumer.empty_poll import WAITS


@contextmanager
def without_hints() -> Iterator[None]:
    """Log no hints about a group without partitions or records: the polls of a tool are empty until the group has
    assigned the partitions. Those about a topic that does not exist, or a cluster that does not answer, remain."""
    log = logging.getLogger("shareq.consumer")
    log.addFilter(_is_trouble)
    try:
        yield
    finally:
        log.removeFilter(_is_trouble)


def _is_trouble(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(WAITS)
