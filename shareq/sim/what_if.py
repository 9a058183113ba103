"""What a group's lock duration and limits cost: p99, redeliveries, archived records and throughput by setting.

The table is computed beforehand, by `shareq what-if`, and kept in `what_if.json` beside this module. A run is
deterministic, so that every figure can be computed again and compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from math import isnan, log, prod
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from shareq.model.errors import ConfigException
from shareq.sim.scenario import Scenario

SCHEMA: Final = 1
"""The version of the file's form."""

STORED: Final = Path(__file__).with_name("what_if.json")

DIGITS: Final = 4
"""Significant digits of a figure in the file."""


class Setting(NamedTuple):
    """The configurations that a table varies, named as in `Scenario`."""

    lock_duration_ms: int = 30_000
    record_locks: int = 2000
    delivery_count_limit: int = 5


KEYS: Final = {
    "lock_duration_ms": "share.record.lock.duration.ms",
    "record_locks": "share.partition.max.record.locks",
    "delivery_count_limit": "share.delivery.count.limit",
}
"""Field of a setting -> key of a group's configuration."""

Grid = dict[str, tuple[int, ...]]

GRID: Final[Grid] = {
    "lock_duration_ms": (5000, 10_000, 15_000, 20_000, 30_000, 60_000, 120_000),
    "record_locks": (100, 500, 2000, 4000),
    "delivery_count_limit": (2, 5, 10),
}
"""The range that brokers allow by default, and more; Kafka's defaults are among the values."""

SEEDS: Final = 3


class Workload(NamedTuple):
    """`about`: the work in a sentence. `scenario`: its work and failures; its configurations are those of the grid."""

    name: str
    about: str
    scenario: Scenario


WORK: Final = Scenario(
    records=3000, consumers=12, max_poll_records=20, batch_records=20, acquire_mode="record_limit", arrival_rate=40.0,
    service_ms=150.0, slow_factor=40,
)  # fmt: skip
"""Work without failures: 3 s for a poll of 20 records, with a slow record 9 s, with two of them 15 s."""

WORKLOADS: Final = (
    Workload(
        "mixed",
        "1 record in 100 takes 40 times as long, 1 attempt in 50 fails, 1 poll in 50 ends in a crash.",
        replace(WORK, slow_rate=0.01, failure_rate=0.02, crash_rate=0.02),
    ),
    Workload("slow records", "1 record in 100 takes 40 times as long.", replace(WORK, slow_rate=0.01)),
    Workload("crashes", "1 poll in 50 ends in a crash half-way.", replace(WORK, crash_rate=0.02)),
    Workload("failures", "1 attempt in 10 fails and releases its record.", replace(WORK, failure_rate=0.1)),
)
"""No broker notices a crash: the locks of the consumer expire."""


class Figure(NamedTuple):
    """A figure over the seeds."""

    median: float
    lowest: float
    highest: float


FIGURES: Final[dict[str, Callable[[Mapping[str, Any]], float]]] = {
    "p99_ms": lambda row: float(row["latency_p99_ms"]),
    "redeliveries": lambda row: float(row["redeliveries"] / row["records"]),
    "archived": lambda row: float(row["archived"] / row["records"]),
    "throughput": lambda row: float(row["throughput_loaded"]),
}
"""From a row of a sweep: the p99 of the time from produce to accept, of accepted records; further deliveries and
archived records by the number of all records; records accepted per second while records arrive."""


def figure(name: str, rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """A figure over the runs of one setting; None if a run lacks it, because it accepted no record.

    AssertionError if a run failed.
    """
    failed = [row["error"] for row in rows if row["error"]]
    assert not failed, failed[0]
    values = [FIGURES[name](row) for row in rows]
    if any(isnan(value) for value in values):
        return None
    return Figure(*(float(f"{value:.{DIGITS}g}") for value in (median(values), min(values), max(values))))


class Table:
    """The figures of each workload at each setting of a grid. `seeds`: the number of runs of each."""

    def __init__(
        self,
        workloads: Sequence[Workload],
        grid: Grid,
        seeds: int,
        figures: Mapping[str, Mapping[str, Sequence[Figure | None]]],
    ) -> None:
        """`figures`: workload -> name of a figure -> its values, in the order of `settings`."""
        self.workloads = {workload.name: workload for workload in workloads}
        self.grid = grid
        self.seeds = seeds
        self._figures = figures
        self._places = {setting: place for place, setting in enumerate(settings(grid))}

    def figure(self, workload: str, setting: Setting, name: str) -> Figure | None:
        """A figure at a setting of the grid; None if no record is accepted there."""
        return self._figures[workload][name][self._places[setting]]

    def all(self, workload: str, name: str) -> list[Figure]:
        """A figure at all settings that have it."""
        return [found for found in self._figures[workload][name] if found is not None]

    def nearest(self, setting: Setting) -> Setting | None:
        """The setting of the grid with the smallest ratios to this one; None if one value is outside the grid."""
        found = {}
        for name, value in setting._asdict().items():
            values = self.grid[name]
            if not values[0] <= value <= values[-1]:
                return None
            found[name] = min(values, key=lambda one: abs(log(one / value)))
        return Setting(**found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]    # as of a list

    def __repr__(self) -> str:
        count = prod(len(values) for values in self.grid.values())
        return f"<Table of {', '.join(self.workloads)}: {count} settings, {self.seeds} seeds each>"

    # ---- the file ----------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The contents of a file."""
        workloads = [{**one._asdict(), "scenario": asdict(one.scenario)} for one in self.workloads.values()]
        head = {"schema": SCHEMA, "seeds": self.seeds, "grid": self.grid, "workloads": workloads}
        figures = {
            workload: {name: [one and list(one) for one in found] for name, found in by_name.items()}
            for workload, by_name in self._figures.items()
        }
        return json.dumps({**head, "figures": figures}, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str = "the file") -> Table:
        """The table in a file; ConfigException for other contents. `name`: how the error names the file."""
        try:
            found = json.loads(text)
            if found["schema"] != SCHEMA:
                raise ConfigException(f"schema={found['schema']!r}: must be {SCHEMA}")
            workloads = [Workload(w["name"], w["about"], Scenario(**w["scenario"])) for w in found["workloads"]]
            grid = {key: tuple(found["grid"][key]) for key in KEYS}
            figures = {
                workload: {key: [one and Figure(*one) for one in by_name[key]] for key in FIGURES}
                for workload, by_name in found["figures"].items()
            }
            return cls(workloads, grid, found["seeds"], figures)
        except ConfigException as problem:
            raise ConfigException(f"{name}: {problem}") from problem
        except (KeyError, TypeError, ValueError) as problem:
            raise ConfigException(f"{name}: must be a file of shareq what-if ({problem!r})") from problem


def settings(grid: Grid) -> Iterator[Setting]:
    """All settings of a grid, the last field varying fastest, as in a sweep."""
    return (Setting(*values) for values in product(*(grid[name] for name in KEYS)))


def stored_table(path: str | Path = STORED) -> Table:
    """The table in a file, without an argument the one that comes with shareq. OSError if the file cannot be read."""
    return Table.from_json(Path(path).read_text(), str(path))
