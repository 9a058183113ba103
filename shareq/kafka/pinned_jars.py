"""The jars that shareq downloads, by their SHA-256.

A checksum that the repository publishes beside a jar says that the download is complete; the pinned one, that the jar
is the same as when the release was added here. `list_of(releases, cache_folder())` makes the list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("pinned_jars.txt")


class Pinned(NamedTuple):
    """A jar: its SHA-256 as hexadecimal digits, and the releases of Kafka that have it."""

    sha256: str
    releases: frozenset[str]


def pinned_jars() -> dict[str, Pinned]:
    """The list, by file name."""
    lines = (line.split() for line in LIST.read_text().splitlines() if not line.startswith("#"))
    return {name: Pinned(sha256, frozenset(releases.split(","))) for sha256, name, releases in lines}


def pinned_releases() -> list[str]:
    """The releases of Kafka whose jars the list has, newest first."""
    releases = {release for jar in pinned_jars().values() for release in jar.releases}
    return sorted(releases, key=lambda release: [int(number) for number in re.findall(r"\d+", release)], reverse=True)


def is_pinned(release: str) -> bool:
    """True if the list has the jars of this release."""
    return release in pinned_releases()


def unexpected(release: str, folder: Path) -> list[str]:
    """What is wrong with the jars of a release, one line for each. If the list does not have the release, only jars
    that it has in common with others have a pinned hash: the name of a jar has its version."""
    pinned, complete = pinned_jars(), is_pinned(release)
    checks = (_unexpected(file, pinned.get(file.name), complete=complete) for file in sorted(folder.iterdir()))
    return [found for found in checks if found]


def _unexpected(file: Path, pinned: Pinned | None, *, complete: bool) -> str:
    if pinned is None:
        return f"{file.name} is not a jar of this release" if complete else ""
    return differing(file, pinned.sha256)


def differing(file: Path, sha256: str) -> str:
    """How the hash of a file differs from its pinned one; empty if they are equal."""
    found = _sha256(file)
    return "" if found == sha256 else f"{file.name} has the SHA-256 {found} instead of {sha256}"


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def list_of(releases: Iterable[str], cache: Path) -> str:
    """The list for these releases, from the jars in the cache."""
    jars: dict[tuple[str, str], list[str]] = {}
    for release in releases:
        for file in sorted((cache / f"kafka-{release}").iterdir()):
            jars.setdefault((file.name, _sha256(file)), []).append(release)
    return "".join(f"{sha256}  {name}  {','.join(found)}\n" for (name, sha256), found in sorted(jars.items()))
