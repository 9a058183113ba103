"""Solutions of lesson 11."""

from __future__ import annotations

from typing import Any, Final


def worst_route(routes: Any) -> tuple[str, str]:
    return routes[routes.flights >= 1000]["mean"].idxmax()  # type: ignore[no-any-return]


def each_once(rows: Any) -> dict[str, int]:
    flights = rows.drop_duplicates(["topic", "partition", "offset"])
    return flights.groupby("carrier").size().to_dict()  # type: ignore[no-any-return]


SOLUTIONS: Final = {"11.1": worst_route, "11.2": each_once}
