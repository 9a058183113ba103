"""Many runs: every combination of a grid, one row of results each, in this process.

found = sweep({"consumers": range(1, 9), "record_locks": [200, 2000]}, seeds=10, scenario=Scenario(service_ms=20))
found.plot(x="consumers", y="throughput", color="record_locks")

`shareq.spark.sweep` does the same on all machines of a Spark cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from shareq.extras import require
from shareq.model.errors import ConfigException
from shareq.sim.scenario import Scenario
from shareq.sim.sweep_grid import FIGURES, PARAMETERS, SweepRun, expand
from shareq.sim.sweep_rows import SweepCheckpoint, keys_of, schema, table_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shareq.trace import Plot

RUNS_KEPT_AT_ONCE = 16
"""The most runs that a kill loses: the number of runs per file of a checkpoint."""

Compute = Callable[[list[SweepRun]], Iterator[Any]]
"""Computes runs: yields Arrow tables of some rows at a time, in any order."""


class Sweep:
    """The rows of a sweep in the order of its grid. `table`: in Arrow; `computed`: the number not from the
    checkpoint."""

    def __init__(self, table: Any, varied: tuple[str, ...], computed: int) -> None:
        self.table = table
        self.varied = varied
        self.computed = computed

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def failed(self) -> int:
        """The number of runs that ended in an error; the column `error` has the errors."""
        return len(self) - int(self.table["error"].null_count)

    def to_frame(self) -> Any:
        """All parameters, the seed, all figures and `error`, as a pandas DataFrame."""
        return self.table.to_pandas()

    def plot(
        self, x: str | None = None, y: str = "throughput", color: str | None = None, ax: Axes | None = None
    ) -> Plot:
        """A figure over a parameter, one line per value of another: the median of all seeds, in a band from the lowest
        to the highest. `x`, `color`: by default the first and second parameter of the grid. Each combination of the
        other varied parameters has a panel of its own; with `ax` there must be none.
        """
        from shareq.sim.sweep_plot import draw

        over = x or (self.varied[0] if self.varied else "seed")
        others = [name for name in self.varied if name != over]
        by = color or (others[0] if others else None)
        for role, name, allowed in (("x", over, (*PARAMETERS, "seed")), ("y", y, FIGURES), ("color", by, PARAMETERS)):
            if name is not None and name not in allowed:
                raise ConfigException(f"{role}={name!r}: must be one of {', '.join(allowed)}")
        facets = [name for name in self.varied if name not in (over, by)]
        if facets and ax is not None:
            raise ConfigException(f"ax: one panel cannot show {', '.join(facets)}, too")
        return draw(self.table, over, y, color=by, facets=facets, ax=ax)

    def __repr__(self) -> str:
        over = f" over {' x '.join(self.varied)}" if self.varied else ""
        return f"<Sweep {len(self):,} runs{over}, {self.computed:,} computed now, {self.failed:,} failed>"

    def _repr_html_(self) -> str:
        shown = [*self.varied, "seed", *FIGURES, *(["error"] if self.failed else [])]
        html = self.table.select(shown).slice(0, 20).to_pandas().to_html(index=False)
        return f"{html}<p>{repr(self).strip('<>')}; to_frame() has all rows and columns</p>"


def sweep(
    grid: Mapping[str, Iterable[Any]],
    seeds: int | Iterable[int] = 1,
    scenario: Scenario | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Sweep:
    """Run `scenario` with every combination of the grid's values and every seed.

    `checkpoint`: a folder for finished rows; rows in it are not computed again, also after a kill. `progress`: show a
    progress bar, in a terminal or a notebook. ConfigException names an invalid value before any run.
    """
    return gather(grid, seeds, scenario, checkpoint=checkpoint, progress=progress, compute=_one_after_the_other)


def gather(
    grid: Mapping[str, Iterable[Any]],
    seeds: int | Iterable[int],
    scenario: Scenario | None,
    *,
    checkpoint: str | PathLike[str] | None,
    progress: bool,
    compute: Compute,
) -> Sweep:
    """The common part of all sweeps: skip finished runs, keep new rows, put all in order."""
    require("lab", "pyarrow", "tqdm")
    import pyarrow as pa

    varied = dict(grid)
    settings = expand(varied, seeds, scenario or Scenario())
    kept = None if checkpoint is None else SweepCheckpoint(checkpoint)
    finished = schema().empty_table() if kept is None else kept.read()
    known = set(keys_of(finished))
    owed = [setting for setting in settings if setting.key not in known]
    tables = [finished]
    with _bar(len(settings), len(settings) - len(owed), shown=progress) as bar:
        for table in compute(owed) if owed else ():
            if kept is not None:
                kept.add(table)
            tables.append(table)
            bar.update(table.num_rows)
    everything = pa.concat_tables(tables)
    places = {key: place for place, key in enumerate(keys_of(everything))}
    return Sweep(everything.take([places[setting.key] for setting in settings]), tuple(varied), len(owed))


def _one_after_the_other(settings: list[SweepRun]) -> Iterator[Any]:
    for first in range(0, len(settings), RUNS_KEPT_AT_ONCE):
        yield table_of(setting.row() for setting in settings[first : first + RUNS_KEPT_AT_ONCE])


def _bar(total: int, done: int, *, shown: bool) -> Any:
    from tqdm.auto import tqdm

    return tqdm(desc="runs", total=total, initial=done, unit=" runs", disable=None if shown else True)
