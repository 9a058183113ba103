"""Seconds that a person waits for an answer on an idle machine."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def clock() -> float:
    """Seconds of a steady clock, without those in which the main thread could run and other programs had all processors
    (Linux counts them): a limit on differences holds on a busy machine, too."""
    delayed_ns = 0
    with suppress(OSError):
        delayed_ns = int(Path("/proc/self/schedstat").read_text().split()[1])
    return time.monotonic() - delayed_ns / 1e9
