"""The hashes of the jars that the benchmark of Spark's sources downloads (`tests/bench/spark_jars.py`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from shareq.kafka.ivy import IvyFailed
from tests.bench import spark_jars

GOOD = b"reviewed"
CHANGED = b"changed"
JAR = spark_jars.Jar("org", "a", "1", hashlib.sha256(GOOD).hexdigest())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of one pinned jar."""
    monkeypatch.setattr(spark_jars, "cache_folder", lambda: tmp_path)
    (made := tmp_path / "a-1").mkdir()
    return made


def fetching(content: bytes, fetched: list[str]) -> Callable[[spark_jars.Jar, Path, Path], None]:
    """In place of Ivy: a repository with this content."""

    def fetch(jar: spark_jars.Jar, folder: Path, cache: Path) -> None:
        fetched.append(jar.file)
        (folder / jar.file).write_bytes(content)

    return fetch


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "fetched"])
@pytest.mark.parametrize("content", [GOOD, CHANGED], ids=["as reviewed", "changed"])
def test_a_jar_must_have_its_pinned_hash(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, cached: bool
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(spark_jars, "_fetch", fetching(content, fetched))
    if cached:
        (folder / "a-1.jar").write_bytes(content)
    if content == GOOD:
        assert spark_jars.spark_jars([JAR]) == [folder / "a-1.jar"]
    else:
        with pytest.raises(IvyFailed, match=rf"^a-1\.jar has the SHA-256 \w+ instead of {JAR.sha256}\. Remedy: delete"):
            spark_jars.spark_jars([JAR])
    assert fetched == ([] if cached else ["a-1.jar"])
