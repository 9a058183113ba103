"""`shareq pipeline ...`: from a trace to tables and a report."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from shareq.spark.command import spark_of_command, verbose_option
from shareq.spark.pipeline.pipeline import Outcome, follow, is_small, run_with
from shareq.spark.pipeline.small import read_here
from shareq.spark.pipeline.sources import exists
from shareq.spark.pipeline.store import Store


@click.group()
def pipeline() -> None:
    """Tables of a trace, by Spark: the outcome of every record."""


@pipeline.command("run")
@click.argument("trace")
@click.option(
    "--out", required=True, metavar="DIR", help="The folder for tables and report; its contents are replaced."
)
@click.option("--master", metavar="URL", help="The master of Spark.  [default: local[*]]")
@click.option(
    "--follow", "every", metavar="INTERVAL", help='Continue with new events at this interval, such as "1 minute".'
)
@click.option("--report/--no-report", default=True, help="Draw the report, too.", show_default=True)
@click.option("--progress/--no-progress", default=True, help="Show a bar in a terminal, else lines.", show_default=True)
@verbose_option
def run_(
    *, trace: str, out: str, master: str | None, every: str | None, report: bool, progress: bool, verbose: bool
) -> None:
    """Write tables, figures and a report of TRACE: a file or folder of journals, or kafka://HOST:PORT/TOPIC."""
    if not exists(trace):
        raise click.ClickException(f"{trace} does not exist")
    if "://" not in out and Path(out).is_file():
        raise click.ClickException(f"--out {out}: must be a folder, and is a file")
    small = not every and is_small(trace)
    store = Store(out)

    def interrupted() -> str:
        if every:
            return f"shareq pipeline has stopped; the next run continues in {out}."
        store.remove()
        return f"shareq pipeline has stopped; {out} has no tables, and no report."

    with ThreadPoolExecutor(1) as meanwhile:
        meanwhile.submit(_import_pyspark)
        events = meanwhile.submit(read_here, trace) if small else None
        if report:
            meanwhile.submit(_import_charts)
        with spark_of_command(
            master, verbose=verbose, brief=small, progress=progress, interrupted=interrupted
        ) as spark:
            if every:
                follow(trace, out, spark=spark, report=report, processingTime=every).awaitTermination()
            else:
                read = events.result if events else lambda: None
                _print(run_with(spark, trace, out, read, progress=progress, report=report), report=report)


def _print(done: Outcome, *, report: bool) -> None:
    click.echo(f"{done.events:,} events, {done.bad:,} bad lines, in {done.out}{': report.html' if report else ''}")


def _import_pyspark() -> None:
    """The first work beside the start of Spark, because the start of Java waits for it."""
    import pyspark.sql  # noqa: F401


def _import_charts() -> None:
    from matplotlib import figure  # noqa: F401
    from matplotlib.backends import backend_svg  # noqa: F401
