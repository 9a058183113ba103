"""The hint of a blocking call while it waits for a cluster that has never answered: its address may be wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

_log = logging.getLogger("shareq.client")

SILENT_MS = 1500
"""A cluster that neither answers nor refuses for so long is reported, too: a command that has also to be imported has
an answer within 3 s."""


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
    begun = datetime.now().astimezone()
    waits.wait(lambda: heard() or bool(refusal()), min(SILENT_MS, limit_s * 1000) * scale)
    if not heard():
        warn_of_trying(refusal() or silence_of(address), limit_s, begun)


def warn_of_trying(why: str, limit_s: float, begun: datetime | None = None) -> None:
    """Warn that a call goes on, `limit_s` after it has begun at most; it begins now if `begun` is None."""
    until = (begun or datetime.now().astimezone()) + timedelta(seconds=min(limit_s, 1e9))
    _log.warning("%s; trying until %s (%g s)", why, until.strftime("%H:%M:%S"), limit_s)


def silence_of(address: str) -> str:
    """Why a call waits for an address that neither answers nor refuses."""
    return f"{address} does not answer"


def over_tcp(address: str) -> str:
    """`address` if it is one over TCP, which may be wrong; empty for a cluster in this process, on its own clock."""
    return "" if "://" in address else address
