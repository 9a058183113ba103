"""A tour of lesson 00 takes a second, and equal arguments give equal tours: each runs once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol

import pytest

from shareq.lessons.exercises import lesson_00
from shareq.lessons.small_tour import Toured, small_tour


class Tours(Protocol):
    """The parameters of `small_tour`."""

    def __call__(self, configs: Mapping[str, object] | None = None, *, dead_clerks: int = 1) -> Toured: ...


@pytest.fixture(scope="session", autouse=True)
def tours() -> Iterator[Tours]:
    """`small_tour` with a memory, which the judges of the exercises use, too."""

    @cache
    def tour(configs: frozenset[tuple[str, object]], dead_clerks: int) -> Toured:
        return small_tour(dict(configs), dead_clerks=dead_clerks)

    def remembered(configs: Mapping[str, object] | None = None, *, dead_clerks: int = 1) -> Toured:
        return tour(frozenset((configs or {}).items()), dead_clerks)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lesson_00, "small_tour", remembered)
        yield remembered
