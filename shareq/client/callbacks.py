"""Calls of the application's callbacks: each is made once, outside of turns, also if an interrupt comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dis import opmap
from typing import Any, TypeVar

from shareq.signals.uninterrupted import is_handler, uninterrupted

T = TypeVar("T")

_RESUME = opmap["RESUME"]
"""The instruction that every Python function begins with; CPython looks for signals there."""


class CallbackQueue(deque[T]):
    """The items of callbacks that were not called yet, oldest first. `served` counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.served = 0

    def serve(self, report: Callable[[T], tuple[Callable[[Any, Any], object], Any, Any]]) -> int:
        """Call `callback(first, second)` for each item, as `report(item)` names them. Returns the number of calls.

        What a callback raises ends this; the rest is served by the next call. An item whose callback was interrupted
        before its first instruction is served again.
        """
        count = 0
        with uninterrupted:
            guard = uninterrupted.lend()
            depth = guard.depth
            guard.lent += 1
            try:
                while self:
                    try:
                        item = self.popleft()
                    except IndexError:  # another thread serves, too
                        break
                    self.served += 1
                    callback, first, second = report(item)
                    guard.depth = 0
                    try:
                        callback(first, second)
                    except BaseException as raised:
                        guard.depth = depth
                        if not _began(raised):
                            self.served -= 1
                            self.appendleft(item)
                        raise
                    guard.depth = depth
                    count += 1
                    if guard.pending:
                        uninterrupted.checkpoint()
            finally:
                guard.lent -= 1
        return count


def _began(raised: BaseException) -> bool:
    """False if an interrupt came before the first instruction of the function that the caller has called.

    The traceback ends in that function in either case, and a lambda is on the line of its first instruction: only the
    instruction itself differs.
    """
    here = raised.__traceback__
    called = None if here is None else here.tb_next
    if called is None:
        return True
    code = called.tb_frame.f_code
    return is_handler(code) or code.co_code[called.tb_lasti] != _RESUME
