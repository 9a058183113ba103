"""Which program of which machine a process is, so that one on the same machine recognizes its end at once.

On systems without Linux's /proc no end is recognized, and the group removes a killed process when its session ends.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_ENDED = frozenset("ZX")
"""States of a process that has ended: its exit code has not been read yet."""


class Identity(NamedTuple):
    """`machine`: the start of the machine, and the namespace of its process ids. `started`: in ticks since then."""

    machine: str
    pid: int
    started: str


def own_identity() -> Identity | None:
    """That of this program; None if the system does not have it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        machine = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        return Identity(machine, os.getpid(), state_and_start(os.getpid())[1])
    except OSError:
        return None


def has_ended(other: Identity | None, own: Identity | None) -> bool:
    """True if the other program has ended for sure. One that is stopped has not."""
    if other is None or own is None or other.machine != own.machine:
        return False
    try:
        state, started = state_and_start(other.pid)
    except (FileNotFoundError, ProcessLookupError):
        return True
    except OSError:
        return False
    return state in _ENDED or started != other.started


def state_and_start(pid: int) -> tuple[str, str]:
    """The state of a program, and when it was started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # a name may contain anything
    return fields[0], fields[19]
