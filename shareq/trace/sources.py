"""What a view may be opened on: a journal, what has one, what serves such, or the address of a Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Observe = Callable[[str, str, "list[str] | None"], Any]

_observe: list[Observe] = []


def register_observer(observe: Observe) -> None:
    """Let `observe(bootstrap_servers, group, topics)` watch a Kafka from outside: this room knows no brokers."""
    _observe[:] = [observe]


def opened(source: Any, group: str, topic: str | None = None) -> tuple[Any, Callable[[], None] | None]:
    """The source to read, and what closes it where it was made for this: an observer for a bootstrap address.

    KafkaException for an address that is none.
    """
    if isinstance(source, str):
        assert _observe, "shareq/__init__.py registers an observer"
        observer = _observe[0](source, group, None if topic is None else [topic])
        return observer, observer.close
    return getattr(source, "cluster", source), None
