"""Version, content and error that both file formats of a journal share."""

from __future__ import annotations

from os import PathLike
from typing import Final, NamedTuple

from shareq.trace.journal.entry_log import Entry

VERSION: Final = 1


class JournalFileError(ValueError):
    """A file is not a journal. `line` counts from 1; 0 if the error is not of a single line."""

    def __init__(self, path: str | PathLike[str], line: int, why: str) -> None:
        super().__init__(f"{path}{f', line {line}' if line else ''}: {why}")
        self.line = line


class JournalFile(NamedTuple):
    """Content of a journal file. `errors`: the lines that a lenient reader left out."""

    origin_ms: int
    entries: list[Entry]
    errors: tuple[JournalFileError, ...] = ()
