"""The journal as JSON Lines: one object per line, for `jq`, pandas, Spark and text editors.

Line 1 is the header:   {"shareq_journal": 2, "origin_ms": 1767225600000}
Each further line:      {"order": 0, "time_ms": ..., "broker": -1, "type": "BrokerStarted", <the event's fields>}

`shareq_journal` is the version of this format; `order` counts up by one; `broker` -1 is a client or the cluster as a
whole; `type` and the remaining fields are those of `shareq.model.events`, offsets half-open, tuples as lists. In
version 1, `window_end` has the name `speo`; it can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from shareq.trace.journal.entry_log import Entry, EntryLog
from shareq.trace.journal.event_codec import BadEvent, decode, encode, parse
from shareq.trace.journal.journal_file import (
    READABLE,
    VERSION,
    JournalFile,
    JournalFileError,
    current,
    without_collection,
)


def header_line(log: EntryLog) -> str:
    """The first line of a file."""
    return _dumps({"shareq_journal": VERSION, "origin_ms": log.origin_ms})


def entry_line(entry: Entry) -> str:
    """The line of an entry."""
    head = {"order": entry.order, "time_ms": entry.time_ms, "broker": entry.broker_id}
    return _dumps(head | {"type": type(entry.event).__name__} | encode(entry.event))


PAGE = 5_000
"""The most entries of a page: most are longer than 100 bytes."""

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def write(log: EntryLog, path: str | PathLike[str]) -> None:
    """Write the kept entries, in place of what the file has."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        file.write(header_line(log) + "\n")
        file.writelines(entry_line(entry) + "\n" for entry in log.since(0))


def read(path: str | PathLike[str], *, strict: bool = True) -> JournalFile:
    """Read a file. A bad line raises a JournalFileError; with `strict=False` it is left out, its error is in `errors`,
    and the other entries keep their orders.
    """
    with Path(path).open("rb") as file, without_collection():
        return _read(path, file, strict=strict)


def page(log: EntryLog, order: int, max_bytes: int) -> bytes:
    """The content of a file with the kept entries from `order` on: the first one, and more up to `max_bytes`."""
    lines: list[bytes] = []
    size = 0
    for entry in log.page(order, PAGE):
        line = entry_line(entry).encode()
        size += len(line) + 1
        if lines and size > max_bytes:
            break
        lines.append(line)
    return b"\n".join([header_line(log).encode(), *lines, b""])


def read_page(content: bytes, name: str) -> JournalFile:
    """The content of a file. A bad line raises a JournalFileError with this name."""
    return _read(name, content.splitlines(), strict=True)


def _read(path: str | PathLike[str], content: Iterable[bytes], *, strict: bool) -> JournalFile:
    errors: list[JournalFileError] = []
    entries: list[Entry] = []
    lines = enumerate(content, start=1)
    version, origin_ms = _header(path, next(lines, (1, b"")))
    for number, found in _entries(lines, version):
        error = found if isinstance(found, str) else _out_of_order(entries, found, gaps=bool(errors))
        if error is None and isinstance(found, Entry):
            entries.append(found)
            continue
        errors.append(JournalFileError(path, number, str(error)))
        if strict:
            raise errors[-1]
    return JournalFile(origin_ms, entries, tuple(errors))


def _header(path: str | PathLike[str], first: tuple[int, bytes]) -> tuple[int, int]:
    """The version and the origin. A bad header is an error even for a lenient reader."""
    try:
        header = json.loads(first[1])
    except ValueError:
        header = None
    if not isinstance(header, dict) or "shareq_journal" not in header:
        raise JournalFileError(path, 1, "not a journal: the first line must have shareq_journal and origin_ms")
    version = header["shareq_journal"]
    if version not in READABLE or not isinstance(header.get("origin_ms"), int):
        allowed = " or ".join(map(str, READABLE))
        raise JournalFileError(path, 1, f"shareq_journal={version!r}: must be {allowed}, with an integer origin_ms")
    return int(version), int(header["origin_ms"])


def _entries(lines: Iterator[tuple[int, bytes]], version: int) -> Iterator[tuple[int, Entry | str]]:
    """The entry of each line, or its error; empty lines are skipped."""
    for number, line in lines:
        if line.strip():
            try:
                yield number, _entry(parse(line.decode().rstrip()), version)
            except ValueError as error:
                yield number, str(error)


def _entry(fields: Any, version: int) -> Entry:
    if not isinstance(fields, dict):
        raise BadEvent("must be a JSON object")
    head = []
    for name in ("order", "time_ms", "broker"):
        value = fields.pop(name, None)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadEvent(f"{name} must be a whole number, not {value!r}")
        head.append(value)
    event = decode(fields.pop("type", None), fields if version == VERSION else current(fields))
    return Entry(head[0], head[1], head[2], event)


def _out_of_order(entries: list[Entry], entry: Entry, *, gaps: bool) -> str | None:
    """The error if the order is not the next one. `gaps`: earlier lines, and their orders, were left out."""
    if not entries:
        return None
    expected, got = entries[-1].order + 1, entry.order
    return None if got == expected or (gaps and got > expected) else f"order {got}, expected {expected}"
