"""The one event loop of a cluster, on virtual, wall or scaled time. Same code, same order of events.

The loop's time (`time_ms`) counts durations; the time of day (`now_ms`) is for timestamps. They part when the system's
clock is set, when the machine sleeps, and on a scaled clock.

Everything that happens in a cluster happens here, one event after the other: what is due now in the order it was
posted, then whatever is due next. Virtual time jumps to the next event; wall time waits for it in a background thread,
and every client thread that enters carries out what its own call has caused, so that a poll costs no thread switch.

An event is never torn: signals are held back while events run, and raise between two events of a `wait`, or at the end
of an `enter`. The lock is not held then, so that a handler may wait for another thread.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any

from shareq.model.errors import ConfigException
from shareq.model.numbers import plain
from shareq.signals.interruptible import InterruptibleCondition
from shareq.signals.uninterrupted import acquire, uninterrupted

VIRTUAL_ORIGIN_MS = 1_767_225_600_000
"""Where virtual time starts: 2026-01-01T00:00:00Z. A fixed origin keeps notebooks and seeds reproducible."""

STUCK_AFTER_MS = 24 * 3600 * 1000
"""A virtual wait without a time-out gives up after a day: no event can end it."""


_AWAKE, _NEVER, _NO_THREAD = -1, 1 << 62, 0


class Timer:
    """A call at a time, until `cancel()`."""

    __slots__ = ("call", "due_ms")

    def __init__(self, due_ms: int, call: Callable[[], object] | None) -> None:
        self.due_ms = due_ms
        self.call = call

    def cancel(self) -> None:
        self.call = None


class EventLoop:
    """Ready calls in order, timers by time. Subclasses define time and waiting.

    An unhandled exception of an event is raised in the thread that runs the event, or reported; see `report_to`.
    """

    virtual: bool

    def __init__(self) -> None:
        self._report: Callable[[Exception], None] | None = None
        self._ready: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._timers: list[tuple[int, int, Timer]] = []
        self._sequence = 0
        self._event_thread = _NO_THREAD
        self.lock = threading.RLock()

    def time_ms(self) -> int:
        """The loop's own time, ms since the epoch when it began: for timers, durations and the journal. It never runs
        backwards, and a change of the system's clock does not move it."""
        raise NotImplementedError

    def now_ms(self) -> int:
        """The time of day, ms since the epoch: for timestamps. It follows the system's clock, in its jumps, too."""
        return self.time_of_day(self.time_ms())

    def time_of_day(self, time_ms: int) -> int:
        """The time of day at a time of the loop, by the system's clock as it stands now."""
        raise NotImplementedError

    def report_to(self, report: Callable[[Exception], None] | None) -> None:
        """Call `report` with each unhandled exception of an event, and continue, as a server must; None: raise it."""
        self._report = report

    def post(self, call: Callable[..., object], *args: Any) -> None:
        """Run a call after all that were posted before."""
        self._ready.append((call, args))

    def at(self, due_ms: int, call: Callable[[], object]) -> Timer:
        """Run `call` at `due_ms`; at equal times in the order of these calls."""
        timer = Timer(due_ms, call)
        self._sequence += 1
        heapq.heappush(self._timers, (due_ms, self._sequence, timer))
        return timer

    def drain(self) -> None:
        """Run all ready calls, and those that they post."""
        ready = self._ready
        while ready:
            call, args = ready.popleft()
            try:
                call(*args)
            except Exception as failure:
                self._failed(failure)

    def _run_ready(self) -> None:
        call, args = self._ready.popleft()
        try:
            call(*args)
        except Exception as failure:
            self._failed(failure)

    def _failed(self, failure: Exception) -> None:
        if self._report is None:
            raise failure
        self._report(failure)

    def _next_due_ms(self) -> int | None:
        timers = self._timers
        while timers and timers[0][2].call is None:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def _fire(self) -> None:
        """Run the earliest timer."""
        call = heapq.heappop(self._timers)[2].call
        try:
            if call is not None:
                call()
        except Exception as failure:
            self._failed(failure)

    def enter(self, action: Callable[[], object]) -> None:
        """Run `action` and the calls that it posts, with the loop locked."""
        if uninterrupted.depth:  # the caller's block, or another thread's, which is as good: this one needs none
            self.run(action)
        else:
            with uninterrupted:
                self.run(action)

    def wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Run events until `until()` holds or the time-out; return whether it holds.

        Inside `as_event` only the ready calls run, and the time-out is 0.
        """
        if self._event_thread == get_ident():
            self.drain()
            return until()
        if uninterrupted.depth:
            return self._wait(until, timeout_ms)
        with uninterrupted:
            return self._wait(until, timeout_ms)

    def as_event(self, call: Callable[[], object]) -> None:
        """Run a call that uses clients as one event, from within the loop: no time passes in it, and no timer fires."""
        before, self._event_thread = self._event_thread, get_ident()
        try:
            call()
        finally:
            self._event_thread = before

    def run(self, action: Callable[[], object]) -> None:
        """As `enter`, for a thread that runs no signal handlers, or inside `uninterrupted`."""
        raise NotImplementedError

    def _wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        """Drop all calls and timers."""
        self._ready.clear()
        self._timers.clear()


class VirtualLoop(EventLoop):
    """Time stands still except during `wait` and `step`, in which it jumps from event to event."""

    virtual = True

    def __init__(self) -> None:
        super().__init__()
        self._now_ms = VIRTUAL_ORIGIN_MS
        self._ahead_ms = 0

    def time_ms(self) -> int:
        return self._now_ms

    def time_of_day(self, time_ms: int) -> int:
        return time_ms + self._ahead_ms

    def run(self, action: Callable[[], object]) -> None:
        if not self.lock.acquire(False):
            acquire(self.lock)
        try:
            action()
            self.drain()
        finally:
            self.lock.release()

    def step(self) -> bool:
        """Run the next ready call, else the earliest timer, jumping to its time. False if there is neither."""
        with uninterrupted:
            acquire(self.lock)
            try:
                if self._ready:
                    self._run_ready()
                    return True
                due_ms = self._next_due_ms()
                if due_ms is None:
                    return False
                self._now_ms = max(self._now_ms, due_ms)
                self._fire()
                return True
            finally:
                self.lock.release()

    def jump(self, ms: int) -> None:
        """Let `ms` pass without an event: what was due meanwhile runs at the next wait, late."""
        with uninterrupted:
            acquire(self.lock)
            try:
                self._now_ms += ms
            finally:
                self.lock.release()

    def set_day(self, ms: int) -> None:
        """Move the time of day by `ms` against the loop's own time, which stands still."""
        self._ahead_ms += ms

    def _wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        happened = None
        deadline_ms: int | None = None
        while happened is None:
            if uninterrupted.pending:
                uninterrupted.checkpoint()
            if not self.lock.acquire(False):
                acquire(self.lock)
            try:
                if deadline_ms is None:
                    deadline_ms = self._now_ms + (STUCK_AFTER_MS if timeout_ms is None else int(timeout_ms))
                happened = self._run_until(until, deadline_ms)
            finally:
                self.lock.release()
        if timeout_ms is None and not happened:
            raise TimeoutError("no event ended the wait within a day of virtual time: give the call a time-out")
        return happened

    def _run_until(self, until: Callable[[], bool], deadline_ms: int) -> bool | None:
        """Run event after event. True: `until()` holds; False: the next event comes after the deadline, which time
        has reached; None: a signal is held back."""
        pending = uninterrupted.pending
        ready = self._ready
        while True:
            while ready:
                if until():
                    return True
                self._run_ready()
                if pending:
                    return None
            if until():
                return True
            due_ms = self._next_due_ms()
            if due_ms is None or due_ms > deadline_ms:
                self._now_ms = max(self._now_ms, deadline_ms)  # an event may have jumped ahead
                return False
            self._now_ms = max(self._now_ms, due_ms)
            self._fire()
            if pending:
                return None


class WallLoop(EventLoop):
    """Real time, or `scale` times as fast. A daemon thread fires the timers.

    Entering must be cheap, because every request of a served cluster enters: the thread is woken only for an event that
    is due before the one that it sleeps for, and client threads only if some wait.
    """

    virtual = False

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self._course = int(time.time() * 1000), time.monotonic(), 1000 * scale
        """A time of this clock, that of the monotonic clock at the same moment, and ms per second: one tuple, because
        other threads read it without the lock."""
        self._due = threading.Condition(self.lock)
        self._asleep_until_ms = _AWAKE
        self._progress = InterruptibleCondition(self.lock)
        self._closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="shareq-loop", daemon=True)
        self._thread.start()

    def time_ms(self) -> int:
        origin_ms, started, ms_per_s = self._course
        return origin_ms + int((time.monotonic() - started) * ms_per_s)

    def time_of_day(self, time_ms: int) -> int:
        return time.time_ns() // 1_000_000 + int((time_ms - self.time_ms()) / self.scale)

    def change_scale(self, scale: float) -> None:
        """Let time pass `scale` times as fast as the wall clock from now on; it neither jumps nor runs backwards."""
        with uninterrupted:
            acquire(self.lock)
            try:
                self._course = self.time_ms(), time.monotonic(), 1000 * scale
                self.scale = scale
                self._due.notify()
            finally:
                self.lock.release()

    def run(self, action: Callable[[], object]) -> None:
        if not self.lock.acquire(False):
            acquire(self.lock)
        try:
            self._check()
            action()
            self.drain()
            timers = self._timers
            if timers and timers[0][0] < self._asleep_until_ms:
                self._asleep_until_ms = timers[0][0]
                self._due.notify()
            if self._progress.count:
                self._progress.notify_all()
        finally:
            self.lock.release()

    def _wait(self, until: Callable[[], bool], timeout_ms: float | None) -> bool:
        def look() -> bool | None:
            self._check()
            return True if until() else False if self._closed else None

        return self._progress.wait_until(look, None if timeout_ms is None else timeout_ms / 1000 / self.scale)

    def _check(self) -> None:
        if self._failure is not None:
            raise RuntimeError("the cluster's event loop failed with an unhandled error") from self._failure

    def _run(self) -> None:
        with self.lock:
            try:
                self._serve()
            except BaseException as failure:  # the threads that wait raise it, too
                self._failure = failure
                self._progress.notify_all()
                raise

    def _serve(self) -> None:
        while not self._closed:
            self.drain()
            due_ms = self._next_due_ms()
            now_ms = self.time_ms()
            if due_ms is not None and due_ms <= now_ms:
                self._fire()
                self.drain()
                self._progress.notify_all()
            else:
                self._asleep_until_ms = _NEVER if due_ms is None else due_ms
                self._due.wait(None if due_ms is None else (due_ms - now_ms) / 1000 / self.scale)
                self._asleep_until_ms = _AWAKE

    def close(self) -> None:
        with uninterrupted:
            acquire(self.lock)
            try:
                super().close()
                self._closed = True
                self._due.notify()
                self._progress.notify_all()
            finally:
                self.lock.release()
            if threading.current_thread() is not self._thread:
                self._thread.join()


def make_loop(clock: str | float) -> EventLoop:
    """The loop of `clock`: "virtual", "wall", or a factor such as 10.0 (ten times as fast as the wall clock)."""
    if clock == "virtual":
        return VirtualLoop()
    if clock == "wall":
        return WallLoop()
    return WallLoop(checked_scale("clock", clock, "'virtual', 'wall' or "))


def checked_scale(name: str, scale: object, others: str = "") -> float:
    """The factor of a clock. ConfigException for anything outside 0.001..1000; `others`: what else is allowed."""
    scale = plain(scale)
    if isinstance(scale, (int, float)) and not isinstance(scale, bool) and 0.001 <= scale <= 1000:
        return float(scale)
    raise ConfigException(f"{name}={scale!r}: must be {others}a factor in 0.001..1000")
