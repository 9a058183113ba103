"""A file of JSON Lines that follows a journal for as long as a server runs.

An earlier file is kept: it gets the next free number, `trace.jsonl.1`, `trace.jsonl.2`, ... So does a file that has
reached its size. Each file has a header and can be read by itself. A full disk ends the journal, not the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from os import PathLike
from pathlib import Path
from typing import IO

from shareq.trace.journal.entry_log import EntryLog
from shareq.trace.journal.jsonl import entry_line, header_line

_log = logging.getLogger("shareq.journal")

ROTATED_BYTES = 1 << 30
"""The size at which a file is put aside."""


@contextmanager
def growing(
    log: EntryLog, path: str | PathLike[str], *, rotated_bytes: int = ROTATED_BYTES
) -> Iterator[Callable[[], None]]:
    """Each call of the yielded function appends the new entries to the file, as does the end.

    Entries that a bounded log drops between two calls are missing in the file; reading it reports the gap. An OSError
    raises at the start; later it is logged once, and the file does not grow any more.
    """
    file = _GrowingFile(log, Path(path), rotated_bytes)
    file.open()
    try:
        yield file.flush
        file.flush()
    finally:
        file.close()


class _GrowingFile:
    def __init__(self, log: EntryLog, path: Path, rotated_bytes: int) -> None:
        self._log = log
        self._path = path
        self._rotated_bytes = rotated_bytes
        self._order = 0
        self._size = 0
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        if self._path.is_file() and self._path.stat().st_size:
            self._path.rename(_free(self._path))
        self._file = self._path.open("wb")
        self._size = 0
        self._write(header_line(self._log))

    def flush(self) -> None:
        if self._file is None:
            return
        try:
            for entry in self._log.since(self._order):
                if self._size >= self._rotated_bytes:
                    self.close()
                    self.open()
                self._order = entry.order + 1
                self._write(entry_line(entry))
            self._file.flush()
        except OSError as problem:
            _log.error("the journal %s ends: %s; all else goes on", self._path, problem.strerror or problem)
            self.close()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # of what a full disk has not taken
                file.close()

    def _write(self, line: str) -> None:
        assert self._file is not None
        self._size += self._file.write(line.encode() + b"\n")


def _free(path: Path) -> Path:
    """The name with the next number."""
    return next(named for number in count(1) if not (named := path.with_name(f"{path.name}.{number}")).exists())
