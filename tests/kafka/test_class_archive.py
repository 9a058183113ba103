"""The first orderly end of a local Kafka leaves an archive of classes, which later brokers use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from shareq.jvm import ClassArchive, Java, find_java
from shareq.kafka import LocalKafka
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import KafkaJars, kafka_jars


def archive_of(jars: KafkaJars) -> ClassArchive:
    return KafkaCommand(find_java(), jars).archive


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that has only the jars."""
    jars = kafka_jars()
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / jars.folder.name).symlink_to(jars.folder)
    monkeypatch.setenv("SHAREQ_CACHE", str(cache))
    return cache


def mapped_files(kafka: LocalKafka) -> set[str]:
    """The files that the broker's Java has mapped into its memory; Java ignores an archive that does not fit."""
    process = kafka._brokers[0]._process
    assert process is not None
    (java,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {line.split()[-1] for line in Path(f"/proc/{java}/maps").read_text().splitlines()}


@pytest.mark.kafka
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the mapped files of a process")
def test_the_first_stop_writes_the_archive_that_later_brokers_use(empty_cache: Path) -> None:
    archive = archive_of(kafka_jars())
    draft = empty_cache / "draft"
    assert archive.use() == ()
    assert archive.use_or_write(draft)[0] == f"-XX:ArchiveClassesAtExit={draft}"
    with LocalKafka(timeout=240):
        pass
    assert sorted(path.name for path in empty_cache.glob("*.jsa*")) == [archive.path.name]
    assert archive.use_or_write(draft) == archive.use()
    assert archive.use()[0] == f"-XX:SharedArchiveFile={archive.path}"
    written = archive.path.stat()
    with LocalKafka(timeout=240) as kafka:
        assert str(archive.path) in mapped_files(kafka)
    assert archive.path.stat().st_mtime_ns == written.st_mtime_ns


def test_another_java_or_kafka_has_another_archive() -> None:
    places = [("/libs", "4.3.0"), ("/other", "4.3.0"), ("/libs", "4.2.0")]
    paths = {archive_of(KafkaJars(Path(folder), version, "cache")).path for folder, version in places}
    paths.add(ClassArchive(Java(Path("/java"), Path("/java/bin/java"), 25, "PATH"), "kafka-4.3.0", "/libs").path)
    assert len(paths) == 4


def test_the_archive_of_jars_that_were_installed_again_replaces_the_former_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java ignores an archive of jars with another time, and would start without one for good."""
    cache, libs, draft = tmp_path / "cache", tmp_path / "libs", tmp_path / "draft"
    monkeypatch.setenv("SHAREQ_CACHE", str(cache))
    libs.mkdir()
    (jar := libs / "a.jar").write_bytes(b"classes")
    draft.write_bytes(b"archive")
    archive = ClassArchive(find_java(), "kafka-4.3.0", f"{libs}/*")
    other = ClassArchive(find_java(), "kafka-4.3.0", f"{tmp_path}/others/*")
    for each in (archive, other):
        each.keep(draft)
    former = archive.path
    os.utime(jar, (1, 1))
    assert archive.missing
    archive.keep(draft)
    assert not former.exists()
    assert {archive.path, other.path} == set(cache.glob("*.jsa"))
    jar.write_bytes(b"other classes")
    os.utime(jar, (1, 1))
    assert archive.missing


def test_a_draft_that_was_not_written_is_no_error(empty_cache: Path) -> None:
    archive = archive_of(kafka_jars())
    archive.keep(empty_cache / "no draft")
    assert archive.missing
    assert not list(empty_cache.glob("*.jsa*"))
