"""Every difference from Kafka names a test, and that test exists."""

from __future__ import annotations

import re
from fnmatch import filter as matching
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROWS = [
    line
    for line in (TESTS.parent / "DIFFERENCES.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| What")
]


def test_every_row_names_tests_that_exist() -> None:
    files = {path.relative_to(TESTS).with_suffix("").as_posix(): path.read_text() for path in TESTS.rglob("test_*.py")}
    names = {name for text in files.values() for name in re.findall(r"def (test_\w+)", text)}
    assert len(ROWS) > 30
    missing = []
    for row in ROWS:
        for reference in re.findall(r"`((?:[\w/*]+/)?\*?(?:test_)[\w*]+(?:::[\w*]+)?)`", row):
            path, _, name = reference.rpartition("::")
            if not path and "/" in name:
                path, name = name, ""
            if path and not matching(files, path):
                missing.append(reference)
            if name and not matching(names, name):
                missing.append(reference)
    assert missing == []


def test_every_row_has_a_last_column() -> None:
    assert [row for row in ROWS if not row.rstrip(" |").rpartition("|")[2].strip()] == []
