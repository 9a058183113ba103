"""The signals that end a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def end_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set inside the block. Enter it before the line that shows that the command runs:
    a signal may follow at once."""
    ended = threading.Event()
    former = [(one, signal.signal(one, lambda *_: ended.set())) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield ended
    finally:
        for one, handler in former:
            signal.signal(one, handler)


def repeat(action: Callable[[], object], every_s: float, ended: threading.Event) -> None:
    """Call `action` at intervals until `ended` is set."""
    while not ended.wait(every_s):
        action()


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Inside the block SIGINT and SIGTERM raise KeyboardInterrupt, which ends a waiting call of a client."""
    former = [(one, signal.signal(one, signal.default_int_handler)) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for one, handler in former:
            signal.signal(one, handler)
