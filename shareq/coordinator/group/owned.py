"""State of the rooms of this package, carried by what they share."""

from __future__ import annotations

from typing import TypeVar

S = TypeVar("S")


class Owned:
    """Carries the state of rooms that it does not know: one object of each class, made when it is first asked for."""

    def __init__(self) -> None:
        self._owned: dict[type, object] = {}

    def own(self, kind: type[S]) -> S:
        """The object of this class, which is made without arguments."""
        found = self._owned.get(kind)
        if found is None:
            found = self._owned[kind] = kind()
        assert isinstance(found, kind)
        return found
