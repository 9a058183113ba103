"""`shareq pipeline ...`: from a trace to tables and a report."""

from __future__ import annotations

import click

from shareq.extras import install_command
from shareq.jvm import JavaNotFound
from shareq.spark.pipeline.pipeline import follow, run
from shareq.spark.session import session
from shareq.spark.versions import SparkDoesNotFit
from shareq.trace.journal import JournalFileError


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
@click.option("--progress/--no-progress", default=True, help="Show a progress bar.", show_default=True)
def run_(*, trace: str, out: str, master: str | None, every: str | None, report: bool, progress: bool) -> None:
    """Write tables, figures and a report of TRACE: a file or folder of journals, or kafka://HOST:PORT/TOPIC."""
    try:
        spark = session(master=master)
        if every:
            follow(trace, out, spark=spark, report=report, processingTime=every).awaitTermination()
            return
        done = run(trace, out, spark=spark, report=report, progress=progress)
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"the package {missing.name} is missing: {install_command('spark')}") from missing
    except (JavaNotFound, JournalFileError, OSError, SparkDoesNotFit, ValueError) as problem:
        raise click.ClickException(str(problem)) from problem
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise click.ClickException(f"Spark failed: {_reason(problem)}") from problem
    click.echo(f"{done.events:,} events, {done.bad:,} bad lines, in {done.out}{': report.html' if report else ''}")


def _reason(problem: Exception) -> str:
    """The first line of Spark's error, or of its cause, without a stack trace."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0]).removeprefix("Caused by: ")
