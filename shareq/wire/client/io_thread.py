"""The thread that reads the sockets and runs the timers of all TCP clients of a process.

It runs while there are clients, so that heartbeats are sent and time-outs detected while an application processes
records. A forked child has none of its parent's threads, and starts its own for its own clients.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from shareq.signals.uninterrupted import SLICE_S, uninterrupted


class SupportsClose(Protocol):
    def close(self) -> None: ...


class IoThread:
    """An asyncio loop in a daemon thread."""

    def __init__(self, name: str = "shareq-io") -> None:
        # All threads write to sockets, so sockets are only watched for readiness; Windows' default loop cannot do that.
        self.loop = asyncio.SelectorEventLoop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._afterwards: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._reading = False
        self.open: set[SupportsClose] = set()
        """Sockets of clients that did not close them, to be closed when the thread ends. Used only in the thread."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            for left in tuple(self.open):
                left.close()
            for task in self._tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()

    @property
    def inside(self) -> bool:
        """True if the caller runs in this thread."""
        return threading.get_ident() == self._thread.ident

    def soon(self, call: Callable[..., object], *args: object) -> None:
        """Call in the thread, in the order of the calls of `soon`. A no-op once the thread has ended."""
        if self.inside:
            self.loop.call_soon(call, *args)
        else:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(call, *args)

    def read(self, readable: Callable[[], object]) -> None:
        """Read a socket, then make the calls of `afterwards`, in their order. Only from inside the thread."""
        self._reading = True
        try:
            self._call(readable)
            while self._afterwards:
                call, args = self._afterwards.popleft()
                self._call(call, *args)
        finally:
            self._reading = False

    def _call(self, call: Callable[..., object], *args: object) -> None:
        try:
            call(*args)
        except Exception as failure:
            self.loop.call_exception_handler({"message": f"unhandled error in {call}", "exception": failure})

    def afterwards(self, call: Callable[..., object], *args: object) -> None:
        """Call in the thread, without the locks of the caller: when the read under way has ended, which saves a turn of
        asyncio's loop, else as `soon` does."""
        if self._reading and self.inside:
            self._afterwards.append((call, args))
        else:
            self.soon(call, *args)

    def start(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. Only from inside the thread."""
        task = self.loop.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def stop(self) -> None:
        """End the thread and wait for its end; a signal ends only the wait."""
        self.soon(self.loop.stop)
        if not self.inside:
            while self._thread.is_alive() and not uninterrupted.interrupted:
                self._thread.join(SLICE_S)

    def join(self) -> None:
        """Wait for the end of the thread, also after a signal."""
        self._thread.join()


class _Shared:
    """The process's thread, and the number of its clients.

    The lock is reentrant: the garbage collector may close a client at any point.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset in a child of fork: the parent's thread does not exist there, and its lock may be held for ever."""
        self.lock = threading.RLock()
        self.thread: IoThread | None = None
        self.users = 0


_shared = _Shared()


def enter() -> IoThread:
    """The running thread, for one more client."""
    with _shared.lock:
        _shared.users += 1
        thread = _shared.thread = _shared.thread or IoThread()
        return thread


def leave(thread: IoThread) -> None:
    """Unregister a client; the last one ends the thread."""
    with _shared.lock:
        if thread is not _shared.thread:  # a parent's thread, or one that has ended
            return
        _shared.users -= 1
        if _shared.users:
            return
        _shared.thread = None
    thread.stop()


def _end() -> None:
    """End the thread with the interpreter: a thread that runs during the shutdown can crash it."""
    with _shared.lock:
        thread, _shared.thread = _shared.thread, None
    if thread is not None:
        thread.stop()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.reset)
