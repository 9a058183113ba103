"""Waiting for other threads, on wall time, so that signals are looked for every `SLICE_S` seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from shareq.signals.uninterrupted import SLICE_S, acquire, uninterrupted


class InterruptibleCondition(threading.Condition):
    """A condition whose waits can be interrupted. `count`: how many threads wait."""

    count = 0

    def wait_until(self, look: Callable[[], bool | None], timeout_s: float | None) -> bool:
        """Wait until `look()` is True or False, and return that; False when the time is up, None being for ever.

        To be called inside `uninterrupted`. `look` is called with the lock held, the handlers of signals are without.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        slice_s = SLICE_S if uninterrupted.here else None
        while True:
            uninterrupted.checkpoint()
            left_s = slice_s
            if deadline is not None:
                left_s = max(0.0, deadline - time.monotonic())
                left_s = left_s if slice_s is None else min(left_s, slice_s)
            acquire(self)
            self.count += 1
            try:
                self.wait_for(lambda: look() is not None, left_s)
                outcome = look()
            finally:
                self.count -= 1
                self.release()
            if outcome is not None:
                return outcome
            if deadline is not None and time.monotonic() >= deadline:
                return False
