"""The hint of a blocking call while it waits for a cluster that has never answered: its address may be wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

_log = logging.getLogger("shareq.client")

SILENT_MS = 3000
"""A cluster that neither answers nor refuses for so long is reported, too."""


class Waits(Protocol):
    """What a call waits by: an event loop, or a client's connection."""

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool: ...


def await_sign(
    waits: Waits,
    heard: Callable[[], bool],
    refusal: Callable[[], str],
    *,
    address: str,
    limit_s: float,
    scale: float = 1,
) -> None:
    """Wait for the first sign of a cluster, for SILENT_MS at most, and warn if it is a refusal, or if there is none.

    `heard`: it has answered, or nothing is left to wait for. `refusal`: why a connection has failed, else empty.
    `limit_s`: the time-out of the whole call, in seconds of a person's clock, which runs `scale` times as slowly as
    that of `waits`.
    """
    until = datetime.now().astimezone() + timedelta(seconds=min(limit_s, 1e9))
    waits.wait(lambda: heard() or bool(refusal()), min(SILENT_MS, limit_s * 1000) * scale)
    if not heard():
        why = refusal() or f"{address} does not answer"
        _log.warning("%s; trying until %s (%g s)", why, until.strftime("%H:%M:%S"), limit_s)
