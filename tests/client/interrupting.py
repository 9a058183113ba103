"""A stop button that is pressed at a known step: each step of a call can be interrupted once, and again the same way.

    for at in places(steps_of(call)):
        assert interrupted(call, at)

The signal is set inside a trace function by what CPython does not follow with a look at signals, so that the handler
runs where it would without a trace: at the next function's first instruction, after the next call into C, or at the
next jump backwards of the traced code.
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
"""How often a call is interrupted, at places spread evenly over its steps. Every step: a very large number."""


def places(steps: int, shift: int = 0) -> range:
    """Which steps to interrupt; another `shift` names others."""
    stride = max(1, steps // ATTEMPTS)
    return range(1 + shift % stride, steps + 1, stride)


def _traced(call: Callable[[], object], at: int) -> int:
    """Call, press the button at the step of this number, and count the steps. The garbage collector rests: libraries
    have it call functions of theirs, which would count, and would swallow the interrupt."""
    button: defaultdict[int, None] = defaultdict(_thread.interrupt_main)
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        steps += 1
        if steps == at:
            sys.settrace(None)  # or the handler would run in this function, at the next step
            button[0]  # a call would be followed by a look at signals, here instead of there
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
    """Interrupt a call at one of its steps; False if it has ended before."""
    try:
        _traced(call, at)
    except KeyboardInterrupt:
        return True
    return False
