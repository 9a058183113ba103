"""The file of `--journal`: it follows the journal, keeps earlier files, and ends on a full disk, alone."""

from __future__ import annotations

import errno
import io
import logging
from pathlib import Path
from typing import Any

import pytest

from shareq.model.events import BrokerStarted
from shareq.trace import Journal
from shareq.trace.journal.growing_file import growing


def journal(events: int) -> Journal:
    made = Journal(1000)
    grow(made, events)
    return made


def grow(made: Journal, events: int) -> None:
    for index in range(events):
        made.record(1000, 0, BrokerStarted(index))


def orders(path: Path) -> list[int]:
    return [entry.order for entry in Journal.from_jsonl(path)]


def test_the_file_follows_the_journal(tmp_path: Path) -> None:
    made, path = journal(2), tmp_path / "trace.jsonl"
    with growing(made, path) as flush:
        flush()
        assert orders(path) == [0, 1]
        grow(made, 2)
        flush()
        assert orders(path) == [0, 1, 2, 3]
        grow(made, 1)
    assert orders(path) == [0, 1, 2, 3, 4], "the end appends the rest"


def test_earlier_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for count in (1, 2, 3):
        with growing(journal(count), path):
            pass
    assert {file.name: len(orders(file)) for file in tmp_path.iterdir()} == {
        "trace.jsonl.1": 1,
        "trace.jsonl.2": 2,
        "trace.jsonl": 3,
    }


def test_an_empty_file_is_not_worth_keeping(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.touch()
    with growing(journal(1), path):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["trace.jsonl"]


def test_a_file_of_its_size_is_put_aside(tmp_path: Path) -> None:
    made, path = journal(40), tmp_path / "trace.jsonl"
    with growing(made, path, rotated_bytes=500):
        pass
    parts = [path.with_name(f"trace.jsonl.{n}") for n in range(1, len(list(tmp_path.iterdir())))]
    assert len(parts) > 2
    assert all(500 <= part.stat().st_size < 600 for part in parts)
    assert [order for part in [*parts, path] for order in orders(part)] == list(range(40))


class FullDisk(io.BytesIO):
    """A file whose bytes do not reach the disk."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.flush()


def test_a_full_disk_ends_the_journal_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, path = journal(1), tmp_path / "trace.jsonl"
    real = Path.open

    def opened(self: Path, *args: Any, **more: Any) -> Any:
        return FullDisk() if self == path else real(self, *args, **more)

    monkeypatch.setattr(Path, "open", opened)
    with caplog.at_level(logging.ERROR), growing(made, path) as flush:
        flush()
        grow(made, 1)
        flush()
    assert [record.getMessage() for record in caplog.records] == [
        f"the journal {path} ends: No space left on device; all else goes on"
    ]


def test_a_folder_that_is_missing_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), growing(journal(1), tmp_path / "no" / "trace.jsonl"):
        pass
