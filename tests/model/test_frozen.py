"""Frozen classes behave as frozen, slotted, keyword-only dataclasses do, and compile their constructors late."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from inspect import isfunction, signature
from typing import Any

import pytest

from shareq.model.frozen import frozen


@frozen
class Base:
    error: str | None = None


@frozen
class Made(Base):
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBase:
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(PlainBase):
    name: str
    sizes: tuple[int, ...] = ()


def test_the_constructor_is_compiled_when_it_is_first_needed() -> None:
    @frozen
    class Late:
        name: str

    assert not isfunction(vars(Late)["__init__"])
    assert Late(name="a").name == "a"
    assert isfunction(vars(Late)["__init__"])


def test_the_constructor_is_that_of_a_dataclass() -> None:
    made, plain = (
        [(one.name, one.kind, one.default) for one in signature(kind).parameters.values()] for kind in (Made, Plain)
    )
    assert made == plain


def test_values_compare_hash_and_copy_as_those_of_a_dataclass() -> None:
    one = Made(name="a", sizes=(1, 2))
    assert one == Made(name="a", sizes=(1, 2))
    assert one != Made(name="a")
    assert one != Made(name="a", sizes=(1, 2), error="x")
    assert hash(one) == hash(Made(name="a", sizes=(1, 2)))
    assert replace(one, error="x") == Made(name="a", sizes=(1, 2), error="x")
    assert copy.copy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("given", [{}, {"name": "a", "other": 1}], ids=["too few", "too many"])
def test_arguments_that_do_not_fit_are_refused(given: dict[str, Any]) -> None:
    for kind in (Made, Plain):
        with pytest.raises(TypeError, match="argument"):
            kind(**given)


def test_instances_are_immutable() -> None:
    made = Made(name="a")
    with pytest.raises(FrozenInstanceError, match=r"Made\.name"):
        made.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del made.name
    with pytest.raises(FrozenInstanceError):
        made.other = 1  # type: ignore[attr-defined]
