"""The runs of a sweep: every combination of a grid with every seed; and the columns of its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from itertools import product
from typing import Any, NamedTuple

from shareq.model.errors import ConfigException
from shareq.model.near_names import did_you_mean
from shareq.model.numbers import plain, plain_each
from shareq.sim.result import Result
from shareq.sim.run import run
from shareq.sim.scenario import Scenario, check_seed

PARAMETERS = tuple(field.name for field in fields(Scenario))
_RESULT = {field.name: field.type for field in fields(Result) if field.name != "scenario"}
FIGURES = tuple(name for name in _RESULT if name != "seed")
COLUMNS: dict[str, str] = {
    name: str(kind).removesuffix(" | None")
    for name, kind in [*((field.name, field.type) for field in fields(Scenario)), *_RESULT.items(), ("error", "str")]
}
"""Name -> "int", "float", "str" or "bool", in the order of a row."""

SweepRow = dict[str, Any]


class SweepRun(NamedTuple):
    """One run of a sweep. Equal settings give equal rows, on any machine."""

    scenario: Scenario
    seed: int

    @property
    def key(self) -> tuple[Any, ...]:
        """The identity of this run: all parameters and the seed."""
        return (*(getattr(self.scenario, name) for name in PARAMETERS), self.seed)

    def row(self) -> SweepRow:
        """Run it. If the run fails, the row has the `error` and no figures."""
        try:
            return {**run(self.scenario, self.seed).row(), "error": None}
        except Exception as failure:
            failed = f"{type(failure).__name__}: {failure}"
            return {
                **dict.fromkeys(COLUMNS),
                **dict(zip((*PARAMETERS, "seed"), self.key, strict=True)),
                "error": failed,
            }


def expand(grid: Mapping[str, Iterable[Any]], seeds: int | Iterable[int], scenario: Scenario) -> list[SweepRun]:
    """All combinations, the last parameter of the grid varying fastest, then the seeds; each once.

    `seeds`: the seeds, or their number (0, 1, ...). ConfigException names an invalid value before any run.
    """
    values = {name: _values(name, choices) for name, choices in grid.items()}
    chosen = _seeds(seeds)
    scenarios = [replace(scenario, **dict(zip(values, one, strict=True))) for one in product(*values.values())]
    return list({s.key: s for s in (SweepRun(one, seed) for one in scenarios for seed in chosen)}.values())


def _values(name: str, choices: object) -> list[Any]:
    if name not in PARAMETERS:
        raise ConfigException(f"grid[{name!r}]: must be one of {', '.join(PARAMETERS)}{did_you_mean(name, PARAMETERS)}")
    if isinstance(choices, str) or not isinstance(choices, Iterable):
        raise ConfigException(f"grid[{name!r}]={choices!r}: must be a list of values")
    found = plain_each(choices)
    if not found:
        raise ConfigException(f"grid[{name!r}]={choices!r}: must have at least one value")
    return found


def _seeds(seeds: object) -> list[int]:
    seeds = plain(seeds)
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
        return list(range(seeds))
    found = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    if not found:
        raise ConfigException(f"seeds={seeds!r}: must be a number of seeds (>= 1), or the seeds")
    return [check_seed(seed) for seed in found]
