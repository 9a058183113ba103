"""Apache Kafka's jars: those of KAFKA_HOME, else of the cache, into which they are downloaded once.

A folder in the cache is complete: it is filled under another name, under a lock, and renamed at the end.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shareq.jvm import cache_folder
from shareq.kafka import ivy
from shareq.kafka.pinned_jars import is_pinned, pinned_releases
from shareq.model.errors import ConfigException

_log = logging.getLogger("shareq.kafka")

KAFKA_VERSION = "4.4.0"
"""The newest release, which runs if none is requested and it can be had."""
TOOLS_VERSION = {"4.4.0": "4.3.1"}
"""The version of the command-line tools for a release whose own kafka-tools is not published."""
_FIRST = (3, 9)
_SHARE_VERSIONS = {(4, 1): 1, (4, 4): 2}
"""Kafka's version -> its highest share.version, ascending; 4.0 had a preview without compatibility."""


class KafkaNotFound(RuntimeError):
    """Apache Kafka is not installed and could not be downloaded; the message has the reason and the remedy.
    `any_release`: no other release can be downloaded either."""

    def __init__(self, message: str, *, any_release: bool = False) -> None:
        super().__init__(message)
        self.any_release = any_release


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """A folder with the jars of a broker and of the command-line tools; `source`: "KAFKA_HOME" or "cache"."""

    folder: Path
    version: str
    source: str

    @property
    def classpath(self) -> str:
        """The value for Java's `-cp`."""
        return str(self.folder / "*")

    @property
    def share_version(self) -> int:
        """The highest level of the feature share.version: 1 from 4.1 on, 2, with dead-letter queues, from 4.4 on; 0
        without share groups."""
        levels = [level for since, level in _SHARE_VERSIONS.items() if _numbers(self.version) >= since]
        return max(levels, default=0)


def kafka_jars(version: str | None = None, *, allow_unpinned: bool = False) -> KafkaJars:
    """Kafka's jars in `version` (default: SHAREQ_KAFKA_VERSION, KAFKA_HOME's or the newest), downloaded if missing.

    The newest is 4.4.0, or with a warning the newest release with pinned hashes that is in the cache or can be fetched.
    Each downloaded jar must have its pinned hash. Of a release without pinned hashes none is fetched, unless
    `allow_unpinned` or SHAREQ_ALLOW_UNPINNED=1 allows it: then the checksums of the repository are all that is checked.
    KAFKA_HOME is an unpacked distribution of Apache Kafka; it is ignored if another version is requested. SHAREQ_CACHE
    sets the cache folder, SHAREQ_IVY_SETTINGS an Ivy settings file. Raises KafkaNotFound, JavaNotFound, and
    ConfigException for a version that is invalid or older than 3.9.0. Those before 4.1.0 have no share groups.
    """
    chosen, installed = _wanted(version)
    if installed or chosen is None:
        return installed or _newest(pinned_releases())
    return _cached(chosen, allow_unpinned=allow_unpinned)


def tools_jars() -> KafkaJars:
    """The jars of the command-line tools: those of `kafka_jars()`, or if its kafka-tools is not published, of the
    release in TOOLS_VERSION. Raises as `kafka_jars` does.
    """
    chosen, installed = _wanted(None)
    if installed or chosen is None:
        return installed or _newest([TOOLS_VERSION.get(version, version) for version in pinned_releases()])
    return _cached(TOOLS_VERSION.get(chosen, chosen))


def _wanted(version: str | None) -> tuple[str | None, KafkaJars | None]:
    """The requested version, and its jars if KAFKA_HOME has it; without a request those of KAFKA_HOME, if it is set."""
    version = version or os.environ.get("SHAREQ_KAFKA_VERSION")
    if version is not None:
        _check(version)
    if home := os.environ.get("KAFKA_HOME"):
        installed = _installed(Path(home))
        if version in {None, installed.version}:
            return installed.version, installed
    return version, None


def _newest(releases: Iterable[str]) -> KafkaJars:
    """The first of these releases that is in the cache or can be fetched. Raises why the first one cannot."""
    failure: KafkaNotFound | None = None
    for version in dict.fromkeys(releases):
        if failure and failure.any_release and not _folder(version).is_dir():
            continue  # each attempt would wait for the network
        try:
            found = _cached(version)
        except KafkaNotFound as why:
            failure = failure or why
            continue
        if failure:
            _log.warning("Apache Kafka %s is used: %s", version, " ".join(str(failure).split()))
        return found
    assert failure is not None
    raise failure


def _check(version: str) -> None:
    if re.fullmatch(r"\d+\.\d+\.\d+(-rc\d+)?", version) is None:
        raise ConfigException(f"version={version!r}: must be a release of Apache Kafka such as {KAFKA_VERSION}")
    if _numbers(version) < _FIRST:
        raise ConfigException(f"version={version!r}: must be 3.9.0 or newer")


def _numbers(version: str) -> tuple[int, int]:
    """The first two numbers of a version."""
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def _installed(home: Path) -> KafkaJars:
    libs = home.expanduser() / "libs"
    named = [match[1] for jar in libs.glob("kafka_2.13-*.jar") if (match := re.fullmatch(r".*-(\d[\d.]*)", jar.stem))]
    if not named:
        raise KafkaNotFound(
            f"KAFKA_HOME={home} is not Apache Kafka: libs/kafka_2.13-*.jar is missing. "
            "Set it to the folder of an unpacked Kafka, or unset it and let shareq fetch one."
        )
    _check(named[0])
    return KafkaJars(libs, named[0], "KAFKA_HOME")


def _cached(version: str, *, allow_unpinned: bool = False) -> KafkaJars:
    folder = _folder(version)
    if not folder.is_dir():
        if not (allow_unpinned or os.environ.get("SHAREQ_ALLOW_UNPINNED") == "1" or is_pinned(version)):
            raise _unpinned(version)
        with _alone(folder.with_name(f"{folder.name}.lock")):
            if not folder.is_dir():  # another process may have fetched it while this one waited
                _fetch(version, folder)
    return KafkaJars(folder, version, "cache")


def _folder(version: str) -> Path:
    return cache_folder() / f"kafka-{version}"


def _unpinned(version: str) -> KafkaNotFound:
    known = ", ".join(pinned_releases())
    return KafkaNotFound(
        f"Apache Kafka {version} is not fetched: shareq has no hashes of its jars, only of {known}. "
        "Remedies: choose one of these; or allow jars that are compared only with the checksums that their repository "
        "publishes, with LocalKafka(allow_unpinned=True), `shareq kafka start --allow-unpinned` or "
        "SHAREQ_ALLOW_UNPINNED=1; or unpack Apache Kafka yourself and set KAFKA_HOME to its folder."
    )


def _fetch(version: str, folder: Path) -> None:
    """Fill `folder`. Ivy's cache keeps the downloads of an interrupted attempt for the next one."""
    draft, ivy_cache = folder.with_name(f"{folder.name}.part"), folder.with_name(f"{folder.name}.ivy")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        ivy.retrieve(version, TOOLS_VERSION.get(version, version), draft, ivy_cache)
    except ivy.IvyFailed as failure:
        raise KafkaNotFound(
            f"Apache Kafka {version} could not be fetched: {failure}", any_release=isinstance(failure, ivy.NoRepository)
        ) from None
    draft.rename(folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock between processes. The operating system frees the lock of a process that dies."""
    if sys.platform == "win32":
        raise KafkaNotFound(
            "Apache Kafka is fetched on Linux and macOS: on Windows use WSL, or set KAFKA_HOME.", any_release=True
        )
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
