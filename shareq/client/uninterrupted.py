"""Signals wait while a state machine takes a turn: Python calls no signal handler inside `with uninterrupted`.

CPython calls the handlers of signals in the main thread, between any two steps of whatever runs there. A handler that
raises (the stop button of a notebook, Ctrl-C, a SIGTERM that becomes SystemExit, the time-out of a test) would tear a
turn in two. Here such a signal is noted; the end of the outermost block calls its handler, which may raise there. What
waits inside a block calls `checkpoint` every `SLICE_S` seconds, where nothing is half done.

The handlers that are in force are replaced at the beginning of the outermost block and put back at its end, so that
other code sees its own handlers: asyncio, IPython and trio compare them by identity. In threads other than the main
thread nothing is held back, as no handler runs there.

`with uninterrupted` must be the outermost block, around locks: what lies between two blocks may be interrupted.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]    # what `signal` wraps to turn numbers into enums, 50 times as slow
import os
import signal
import threading
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType
from typing import Protocol

SLICE_S = 0.05
"""The longest wait without a look at what was held back."""

_NAMES = ("INT", "TERM", "BREAK", "HUP", "QUIT", "ALRM", "USR1", "USR2", "VTALRM", "PROF")
WATCHED: tuple[int, ...] = tuple(int(getattr(signal, f"SIG{name}")) for name in _NAMES if hasattr(signal, f"SIG{name}"))
"""The signals whose handlers applications write; SIGCHLD and the like do not raise."""

Handler = Callable[[int, FrameType | None], object]

getsignal: Callable[[int], object] = _signal.getsignal
set_handler: Callable[[int, Handler], object] = _signal.signal


class Lockable(Protocol):
    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...


class _Deferring:
    """Stands in for a handler: calls it at once outside of blocks, and notes the signal inside."""

    __slots__ = ("_guard", "original")

    def __init__(self, guard: Uninterrupted, original: Handler) -> None:
        self._guard = guard
        self.original = original

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._guard.depth:
            self._guard.pending[number] = (self.original, frame)
        else:
            self.original(number, frame)


class Uninterrupted:
    """The one guard of the process. Its state belongs to the main thread.

    Statements without a call or a jump backwards between them are one step for CPython: no handler runs there. The
    order of statements below rests on that.
    """

    __slots__ = ("_main", "_plan", "_seen", "depth", "lent", "pending")

    def __init__(self) -> None:
        self.depth = 0
        """How many blocks are open; 0 while the application's own code runs inside a block."""
        self.lent = 0
        """How often a block has been opened for the application's code: inner blocks leave the handlers in place."""
        self.pending: dict[int, tuple[Handler, FrameType | None]] = {}
        self._main: int | None = threading.main_thread().ident
        self._seen: list[object] = []
        self._plan: list[tuple[int, _Deferring]] = []

    def __enter__(self) -> None:
        if get_ident() == self._main:
            if not self.depth and not self.lent:
                if [*map(getsignal, WATCHED)] != self._seen:
                    self._see_handlers()
                try:
                    for number, deferring in self._plan:
                        set_handler(number, deferring)
                except ValueError:  # a subinterpreter: no handler runs in it
                    self._main = None
            self.depth += 1

    def __exit__(self, kind: object = None, raised: object = None, trace: object = None) -> None:
        if get_ident() != self._main:
            return
        if self.depth > 1:
            self.depth -= 1
            return
        try:
            while self.pending:
                self._call_handlers()
        finally:
            self.depth = 0
            if not self.lent:
                for number, deferring in self._plan:
                    if getsignal(number) is deferring:  # one that the application has set meanwhile stays
                        set_handler(number, deferring.original)

    @property
    def here(self) -> bool:
        """True in the thread that runs signal handlers: its waits have to be short."""
        return get_ident() == self._main

    @property
    def interrupted(self) -> bool:
        """True if a signal waits for the end of this thread's block: a wait that can be cut short should be."""
        return bool(self.pending) and get_ident() == self._main

    def checkpoint(self) -> None:
        """Call the handlers of what was held back. To be called where nothing is half done and no lock is held."""
        while self.interrupted:
            self._call_handlers()

    def lend(self) -> Uninterrupted:
        """Whose `depth` a thread sets to 0 while it calls the application: a dummy's in threads without signals."""
        return self if get_ident() == self._main else _elsewhere

    def _call_handlers(self) -> None:
        """Call every handler, although one of them raises."""
        number = next(iter(self.pending))
        handler, frame = self.pending.pop(number)
        depth = self.depth
        self.lent += 1
        self.depth = 0
        try:
            handler(number, frame)
        finally:
            self.depth = depth
            self.lent -= 1
            if self.pending:
                self._call_handlers()

    # ---- handlers ----------------------------------------------------------------------------------------------------

    def _see_handlers(self) -> None:
        """Plan which handlers to replace; they are nearly always those of the last block."""
        seen = [*map(getsignal, WATCHED)]
        self._plan = [
            (number, handler if isinstance(handler, _Deferring) else _Deferring(self, handler))
            for number, handler in zip(WATCHED, seen, strict=True)
            if callable(handler)
        ]
        self._seen = seen

    def after_fork(self) -> None:
        """The thread that forked is the main thread of the child."""
        if get_ident() != self._main:
            self._main = get_ident()
            self.depth = self.lent = 0
            self.pending.clear()


uninterrupted = Uninterrupted()
_elsewhere = Uninterrupted()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uninterrupted.after_fork)


def is_handler(code: CodeType) -> bool:
    """True for the code that stands in for signal handlers."""
    return code is _Deferring.__call__.__code__


def acquire(lock: Lockable) -> None:
    """Take a lock, inside a block. Waiting for it can be interrupted."""
    if lock.acquire(False):
        return
    slice_s = SLICE_S if uninterrupted.here else -1
    while not lock.acquire(True, slice_s):
        uninterrupted.checkpoint()
