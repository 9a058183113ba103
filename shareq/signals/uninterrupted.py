"""Defers signal handlers while a state machine changes: no handler runs inside `with uninterrupted`.

CPython runs signal handlers in the main thread, between any two bytecode instructions. A handler that raises (the stop
button of a notebook, Ctrl-C, a SIGTERM handler that raises SystemExit, the timeout of a test) could leave a state
machine half changed. Inside a block the signal is recorded instead, and the end of the outermost block calls its
handler, which may raise there. Code that waits inside a block calls `checkpoint` every `SLICE_S` seconds, at points
where no change is half done.

The outermost block replaces the installed handlers and restores them at its end, so that other code sees its own
handlers: asyncio, IPython and trio compare them by identity. In other threads than the main thread a block does
nothing, as no handler runs there.

`with uninterrupted` must enclose the locks that the code takes: code between two blocks may be interrupted.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]    # `signal` wraps it to return enums, which takes 50 times as long
import os
import signal
import threading
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType
from typing import Protocol

SLICE_S = 0.05
"""The longest wait between two checks for recorded signals."""

_NAMES = ("INT", "TERM", "BREAK", "HUP", "QUIT", "ALRM", "USR1", "USR2", "VTALRM", "PROF")
WATCHED: tuple[int, ...] = tuple(int(getattr(signal, f"SIG{name}")) for name in _NAMES if hasattr(signal, f"SIG{name}"))
"""The signals to defer: those whose handlers may raise. Handlers of SIGCHLD and the like do not."""

Handler = Callable[[int, FrameType | None], object]

getsignal: Callable[[int], object] = _signal.getsignal
set_handler: Callable[[int, Handler], object] = _signal.signal


class Lockable(Protocol):
    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...


class _Deferring:
    """Replaces a handler: calls the original at once outside of blocks, and records the signal inside."""

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
    """The guard of the process, a singleton. Only the main thread changes its state.

    CPython checks for signals at calls and backward jumps only, so that no handler runs between other statements. The
    order of the statements below relies on that.
    """

    __slots__ = ("_main", "_plan", "_seen", "depth", "lent", "pending")

    def __init__(self) -> None:
        self.depth = 0
        """The number of open blocks; 0 while a block calls code of the application."""
        self.lent = 0
        """The number of calls of application code inside blocks; above 0, inner blocks do not replace the handlers."""
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
                except ValueError:  # in a subinterpreter no handler runs
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
                    if getsignal(number) is deferring:  # else the application has installed another one, which stays
                        set_handler(number, deferring.original)

    @property
    def here(self) -> bool:
        """True in the thread that runs signal handlers: its waits must be short."""
        return get_ident() == self._main

    @property
    def interrupted(self) -> bool:
        """True if this thread has recorded signals: a wait should end early if it can."""
        return bool(self.pending) and get_ident() == self._main

    def checkpoint(self) -> None:
        """Call the handlers of the recorded signals. To be called where no change is half done and no lock is held."""
        while self.interrupted:
            self._call_handlers()

    def lend(self) -> Uninterrupted:
        """The guard whose `depth` the caller sets to 0 while it calls application code; a dummy in other threads."""
        return self if get_ident() == self._main else _elsewhere

    def _call_handlers(self) -> None:
        """Call the handlers of all recorded signals, also if one of them raises."""
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
        """Compute the handlers to replace. The result is cached, as the handlers rarely change between blocks."""
        seen = [*map(getsignal, WATCHED)]
        self._plan = [
            (number, handler if isinstance(handler, _Deferring) else _Deferring(self, handler))
            for number, handler in zip(WATCHED, seen, strict=True)
            if callable(handler)
        ]
        self._seen = seen

    def after_fork(self) -> None:
        """In the child process, the thread that called fork is the main thread."""
        if get_ident() != self._main:
            self._main = get_ident()
            self.depth = self.lent = 0
            self.pending.clear()


uninterrupted = Uninterrupted()
_elsewhere = Uninterrupted()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uninterrupted.after_fork)


def is_handler(code: CodeType) -> bool:
    """True for the code object of the replacement handlers."""
    return code is _Deferring.__call__.__code__


def acquire(lock: Lockable) -> None:
    """Acquire a lock inside a block. Signal handlers run while it waits."""
    if lock.acquire(False):
        return
    slice_s = SLICE_S if uninterrupted.here else -1
    while not lock.acquire(True, slice_s):
        uninterrupted.checkpoint()
