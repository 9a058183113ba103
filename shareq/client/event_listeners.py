"""Events of the clients of this process that are not connected to a cluster with a journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shareq.model.events import Event

_listeners: list[Callable[[int, Event], None]] = []


def listen(listener: Callable[[int, Event], None]) -> Callable[[], None]:
    """Subscribe to the events. Returns a function that ends the subscription; its second call has no effect.

    `listener(now_ms, event)` is called in the thread of the client; it must return quickly and must not call clients.
    """
    _listeners.append(listener)

    def end() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return end


def emit(now_ms: int, event: Event) -> None:
    """Pass a client's event to all listeners."""
    for listener in tuple(_listeners):
        listener(now_ms, event)
