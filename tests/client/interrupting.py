"""Interrupts a call at a given step, so that every step can be interrupted once, and reproducibly.

    for at in places(steps_of(call)):
        assert interrupted(call, at)

The signal is set inside a trace function by an operation after which CPython does not check for signals. So the handler
runs where it would without a trace: at the next function's first instruction, after the next call into C, or at the
next backward jump of the traced code.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

ATTEMPTS = int(os.environ.get("SHAREQ_INTERRUPTS", "120"))
"""Number of steps at which a call is interrupted, evenly distributed. A very large number means every step."""


def places(steps: int, shift: int = 0) -> range:
    """Numbers of the steps to interrupt; another `shift` selects others."""
    stride = max(1, steps // ATTEMPTS)
    return range(1 + shift % stride, steps + 1, stride)


def _traced(call: Callable[[], object], at: int) -> int:
    """Call, set the signal at step `at`, and return the number of steps.

    Garbage collection is off: libraries register functions with it, which would count as steps and swallow the
    interrupt.
    """
    button: defaultdict[int, None] = defaultdict(_thread.interrupt_main)
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        steps += 1
        if steps == at:
            sys.settrace(None)  # otherwise the handler would run in this function, at the next step
            button[0]  # not a call, because CPython checks for signals after a call
        return trace

    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
        gc.enable()
    return steps


def steps_of(call: Callable[[], object]) -> int:
    return _traced(call, 0)


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Number of steps of the call."""
    """Interrupt the call at one of its steps; False if it ended before that step."""
    try:
        _traced(call, at)
    except KeyboardInterrupt:
        return True
    return False
