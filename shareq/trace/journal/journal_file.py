"""Version, content and error that both file formats of a journal share."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, Final, NamedTuple

from shareq.trace.journal.entry_log import Entry
from shareq.trace.journal.subject import Orders

VERSION: Final = 2
"""The version that is written."""
READABLE: Final = (1, VERSION)
RENAMED: Final = {"speo": "window_end"}
"""Fields of events by their names in version 1."""


def current(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event in a file of version 1, by their names in this version."""
    if RENAMED.keys().isdisjoint(fields):
        return fields
    return {RENAMED.get(name, name): value for name, value in fields.items()}


class JournalFileError(ValueError):
    """A file is not a journal. `line` counts from 1; 0 if the error is not of a single line."""

    def __init__(self, path: str | PathLike[str], line: int, why: str) -> None:
        super().__init__(f"{path}{f', line {line}' if line else ''}: {why}")
        self.line = line


class JournalFile(NamedTuple):
    """Content of a journal file. `errors`: the lines that a lenient reader left out; `orders`: the index of the
    entries, if it came with them."""

    origin_ms: int
    entries: list[Entry]
    errors: tuple[JournalFileError, ...] = ()
    orders: Orders | None = None


@contextmanager
def without_collection() -> Iterator[None]:
    """No garbage collection: while millions of tuples are made and none is dropped, it costs more than making them.

    At the end all objects are in the oldest generation, where collections put those that they have kept twice: else the
    next ones would go through all the new tuples, three times.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # an application that has frozen its objects keeps them frozen
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()
