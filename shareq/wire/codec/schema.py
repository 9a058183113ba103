"""Kafka's message schemas, as kio has them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def schema(api_key: int, version: int, *, request: bool) -> Any:
    """The dataclass that kio has for a version of a request or a response."""
    load_request, load_response = _loaders()
    return (load_request if request else load_response)(api_key, version)


@cache
def _loaders() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """kio offers strategies to Hypothesis where that is installed, and for that loads all of it: half a second that a
    process which tests nothing need not wait."""
    hidden = "hypothesis" not in sys.modules
    if hidden:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]    # how Python says that a module is not there
    try:
        from kio.index import load_request_schema, load_response_schema
    finally:
        if hidden:
            del sys.modules["hypothesis"]
    return load_request_schema, load_response_schema
