"""Kafka's message schemas, from kio."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shareq.extras import install_command


@contextmanager
def _without(package: str) -> Iterator[None]:
    """Let an import find that an optional package is missing, unless it is loaded already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]    # Python's sign that an import of it fails
    try:
        yield
    finally:
        del sys.modules[package]


try:
    with _without("hypothesis"):  # kio loads it where it is installed, for kio's own tests: half of a tool's start
        from shareq.wire.codec.newer_schemas import newer_schema, older_schema
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "kio":
        raise
    raise ModuleNotFoundError(
        f"Kafka's protocol needs the package kio: {install_command('kafka')}", name="kio"
    ) from missing


def schema(api_key: int, version: int, *, request: bool) -> Any:
    """kio's dataclass for a version of a request or a response; where kio lacks the version, one of the same form.
    UnsupportedVersion: none is known."""
    return newer_schema(api_key, version, request=request) or older_schema(api_key, version, request=request)
