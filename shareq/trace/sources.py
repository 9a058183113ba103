"""What a view may be opened on: a journal, what has one, what serves such, or the address of a Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.transport import observe


def opened(source: Any, group: str, topic: str | None = None) -> tuple[Any, Callable[[], None] | None]:
    """The source to read, and what closes it where it was made for this: an observer for a bootstrap address.

    KafkaException for an address that is none.
    """
    if isinstance(source, str):
        observer = observe(source, group, None if topic is None else [topic])
        return observer, observer.close
    return getattr(source, "cluster", source), None
