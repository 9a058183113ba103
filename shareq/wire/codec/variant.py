"""The form of a message in a version that differs from Kafka's schema in more than a missing field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Variant(NamedTuple):
    """The form of a message in a version: its class, and the conversions (None: the class is the same)."""

    cls: type
    to_wire: Callable[[Any], Any] | None = None
    from_wire: Callable[[Any], Any] | None = None
