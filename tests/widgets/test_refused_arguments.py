"""Views with arguments that are refused: the error names the function, and nothing is left for the collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import shareq_widgets as widgets
from shareq.broker import Cluster
from shareq_widgets.room import ControlRoom
from tests.browser.busy import GROUP, TOPIC, busy

OF_A_GROUP = ("charts", "cluster", "group", "locks", "messages", "states", "timeline", "what_if")
OF_A_TOPIC = ("control_room", "raster", "record", "state_topic", "strip")


@pytest.fixture(scope="module")
def source() -> Iterator[Cluster]:
    """The objects of the tests before are frozen, so that a collection looks at those of this module only."""
    cluster = busy()
    gc.collect()
    gc.freeze()
    yield cluster
    gc.unfreeze()


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the collector could not raise."""
    gc.collect()
    found: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: found.append(repr(raised.exc_value)))
    return found


def place(name: str) -> dict[str, Any]:
    return {"group": GROUP, "topic": TOPIC} if name in OF_A_TOPIC else {"group": GROUP}


@pytest.mark.parametrize("name", [*OF_A_GROUP, *OF_A_TOPIC])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"sped": 2}, r"{name}\(\) got an unexpected keyword argument 'sped'"),
        ({"theme": "blue"}, "theme|auto"),
        ({"group": "missing"}, "missing"),
    ],
    ids=["misspelt", "theme", "group"],
)
def test_a_refused_argument_leaves_nothing(
    source: Cluster, noise: list[str], name: str, wrong: dict[str, Any], error: str
) -> None:
    make: Callable[..., Any] = getattr(widgets, name)
    with pytest.raises(Exception, match=error.format(name=name)) as raised:
        make(source, **{**place(name), **wrong})
    assert isinstance(raised.value, TypeError) == ("sped" in wrong)
    del raised
    gc.collect()
    assert noise == []


def test_other_constructors(source: Cluster, noise: list[str]) -> None:
    with pytest.raises(TypeError, match=r"race\(\) got an unexpected keyword argument 'worker'"):
        widgets.race(worker=2)
    constructors: tuple[Any, ...] = (ControlRoom, widgets.PartitionStrip, widgets.WhatIf)
    for make in constructors:
        with pytest.raises((TypeError, AttributeError)):
            make(source)
    gc.collect()
    assert noise == []
