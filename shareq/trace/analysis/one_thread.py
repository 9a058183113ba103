"""One thread at a time for what all readers of a journal share, and for the views of a page.

A kernel with subshells (ipykernel 7) handles the messages of a page in another thread than the cells. What a view shows
is folded step by step, and sent as changes: two threads in it would mix two moments, or lose a change for good.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from types import FunctionType
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

LOCK: Final = RLock()
"""Held by the thread at work. A thread that has it may lock the loop of a cluster, and none does the reverse."""

_SHOWING: Final = frozenset(("__init__", "__repr__", "_repr_html_", "_repr_mimebundle_"))


def by_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, run by one thread at a time: others wait."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with LOCK:
            return function(*args, **kwargs)

    return run


def used_by_one_thread(cls: C) -> C:
    """A class decorator: one thread at a time runs the constructor, the public methods and properties, and the forms
    for a reader that the class itself defines."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in _SHOWING:
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, by_one_thread(member))
        elif isinstance(member, property):
            get, put, drop = (part and by_one_thread(part) for part in (member.fget, member.fset, member.fdel))
            setattr(cls, name, property(get, put, drop, member.__doc__))
    return cls
