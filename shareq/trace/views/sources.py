"""Sources of a view: a journal, an object that has one, or the bootstrap address of a Kafka cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.transport import observe


def open_source(source: Any, group: str, topic: str | None = None) -> tuple[Any, Callable[[], None] | None]:
    """The source to read, and a function that closes it if it was made here: an observer of a bootstrap address.

    KafkaException for an invalid address.
    """
    if isinstance(source, str):
        observer = observe(source, group, None if topic is None else [topic])
        return observer, observer.close
    return getattr(source, "cluster", source), None
