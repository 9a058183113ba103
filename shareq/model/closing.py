"""The end of what is closed: by a call, or with its `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Something with `close()`, which the end of a `with` block calls."""

    @abstractmethod
    def close(self) -> object:
        """Close it. Repeatable."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
