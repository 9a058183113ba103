"""Numbers of numpy, such as those of a DataFrame: they index like Python's, but neither JSON nor Arrow takes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from numbers import Real
from operator import index
from typing import Any, SupportsIndex, TypeVar

T = TypeVar("T")


def plain(value: T) -> T:
    """Python's own number, or truth value, for one of numpy; anything else as it is.

    Every argument of a public call passes here before it is checked and kept.
    """
    made: Any = value
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        made = float(value)
    elif type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        made = bool(value)
    elif isinstance(value, SupportsIndex):
        try:
            made = index(value)
        except TypeError:  # an array
            return value
    elif isinstance(value, Real) and hasattr(value, "dtype"):
        made = float(value)
    return made  # type: ignore[no-any-return]


def plain_each(values: Iterable[T]) -> list[T]:
    """The values of a list or an array, each as Python's own."""
    return [plain(value) for value in values]


def plain_fields(made: Any) -> None:
    """Give a new dataclass, even a frozen one, Python's own numbers."""
    for field in fields(made):
        object.__setattr__(made, field.name, plain(getattr(made, field.name)))
