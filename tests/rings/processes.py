"""Processes of a run: found by a variable of their environment, which children inherit, also those that detach."""

from __future__ import annotations

import os
import sys
import time

import psutil

RUN, PART = "SHAREQ_TEST_RUN", "SHAREQ_TEST_PART"

GRACE_S = 10.0
"""How long processes that have been asked to end may take."""


def marked(variable: str, value: str) -> list[psutil.Process]:
    """The living processes with this variable, without this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(variable) == value and process.pid != os.getpid():
                found.append(process)
        except (psutil.Error, OSError):  # it has ended, or belongs to another user
            continue
    return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def left(variable: str, value: str, grace_s: float) -> list[str]:
    """The command lines of the processes that live on after the grace; they are killed."""
    deadline = time.monotonic() + grace_s
    while (living := marked(variable, value)) and time.monotonic() < deadline:
        psutil.wait_procs(living, timeout=0.2)
    lines = [line for process in living if (line := _line(process))]
    kill(variable, value)
    return lines


def kill(variable: str, value: str) -> None:
    """Kill the processes with this variable, until there are none: one may start another meanwhile."""
    while living := marked(variable, value):
        for process in living:
            try:
                process.kill()
            except psutil.Error:
                continue
        psutil.wait_procs(living, timeout=1)


def _line(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:160]}"
    except psutil.Error:
        return ""


def guard(run: str, parents: list[int]) -> None:
    """Wait for the end of the run, which closes this process's input, or of a `make` above it; kill what is left."""
    import select

    while all(psutil.pid_exists(parent) for parent in parents):
        if select.select([sys.stdin], [], [], 1)[0]:
            break
    kill(RUN, run)


if __name__ == "__main__":
    guard(sys.argv[1], [int(pid) for pid in sys.argv[2:]])
