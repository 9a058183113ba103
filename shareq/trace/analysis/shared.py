"""Objects that all readers of one journal share, such as the history of a group: six views fold it once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from shareq.trace.analysis.one_thread import by_one_thread
from shareq.trace.journal import Journal

T = TypeVar("T")


@by_one_thread
def shared(journal: Journal, key: Hashable, make: Callable[[], T]) -> T:
    """The object that `make` made for this journal and key, as long as a reader refers to it; else a new one."""
    of_journal: WeakValueDictionary[Hashable, Any] = journal.own(shared, WeakValueDictionary)
    found: T | None = of_journal.get(key)
    if found is None:
        found = of_journal[key] = make()
    return found
