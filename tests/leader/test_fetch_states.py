"""The tables of the fetch lock and of a fetch are those that ARCHITECTURE.md draws."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from shareq.leader.fetch_states import (
    FETCH_TRANSITIONS,
    LOCK_TRANSITIONS,
    FetchEvent,
    FetchState,
    LockEvent,
    LockState,
)

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def drawn(corner: str) -> list[list[str]]:
    """The fields of the table whose first field is `corner`, by row, without the line below the heading."""
    lines = ARCHITECTURE.read_text().splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(f"| {corner} |"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([field.strip() for field in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


@pytest.mark.parametrize(
    ("corner", "states", "events", "transitions"),
    [
        pytest.param("fetch lock", LockState, LockEvent, LOCK_TRANSITIONS, id="fetch lock"),
        pytest.param("fetch", FetchState, FetchEvent, FETCH_TRANSITIONS, id="fetch"),
    ],
)
def test_architecture_draws_the_tables(
    corner: str, states: type[StrEnum], events: type[StrEnum], transitions: Mapping[tuple[str, str], str]
) -> None:
    rows = [[state, *(transitions.get((state, event), "") for event in events)] for state in states]
    assert drawn(corner) == [[corner, *events], *rows]
