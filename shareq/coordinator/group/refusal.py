"""The error of a request that a group coordinator refuses."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.errors import Errors


class Refusal(NamedTuple):
    """An error code and its message."""

    error: Errors
    message: str | None = None
