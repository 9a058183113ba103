"""Every public object has a docstring of its own."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import pytest

from tests.house.api_pages import PUBLIC, members, public_objects


def undocumented(objects: list[tuple[str, Any]]) -> list[str]:
    """Names of objects without a docstring; the one that a NamedTuple or a dataclass makes itself does not count."""
    missing = []
    for name, value in objects:
        text = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
        if not text or (inspect.isclass(value) and text.startswith(f"{value.__name__}(")):
            missing.append(name)
    return missing


def test_every_public_object_has_a_docstring() -> None:
    objects = list(public_objects())
    assert len(objects) > 200
    assert undocumented(objects) == []


@pytest.mark.parametrize("module", PUBLIC)
def test_every_module_with_a_page_has_public_objects(module: str) -> None:
    assert [name for name, _ in public_objects() if name.startswith(f"{module}.")]


class Bare(NamedTuple):
    x: int

    @property
    def doubled(self) -> int:
        return 2 * self.x

    def half(self) -> int:
        """Half of it."""
        return self.x // 2


def test_a_missing_docstring_is_found() -> None:
    assert undocumented([("Bare", Bare), *members("Bare", Bare)]) == ["Bare", "Bare.doubled"]
