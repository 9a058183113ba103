"""What the commands on Spark share: a session that starts quickly and quietly, and errors as sentences."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from shareq.extras import install_command
from shareq.jvm import JavaNotFound
from shareq.spark.session import JAVA_OPTIONS, archiving, unregistered
from shareq.spark.versions import SparkDoesNotFit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java without its second compiler, which takes half of the processor time of a run of seconds and saves none; with the
room for compiled code that Java reserves otherwise, as Spark fills the fifth that is the default then."""

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the messages of Spark and Java.")


@contextmanager
def spark_of_command(master: str | None, *, verbose: bool, brief: bool) -> Iterator[SparkSession]:
    """The session of a command. `brief`: Spark's Java has little to do.

    Errors that a user can do something about become a ClickException.
    """
    try:
        with archiving():
            with quiet_java(enabled=not verbose):
                spark = unregistered(master=master, **({JAVA_OPTIONS: BRIEF} if brief else {}))
            yield spark
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"the package {missing.name} is missing: {install_command('spark')}") from missing
    except (JavaNotFound, OSError, SparkDoesNotFit, ValueError) as problem:
        raise click.ClickException(str(problem)) from problem
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise click.ClickException(f"Spark failed: {_reason(problem)}") from problem


@contextmanager
def quiet_java(*, enabled: bool) -> Iterator[None]:
    """Keep from the terminal what a Java that is started in this context writes to its standard error, unless the
    start fails."""
    if not enabled:
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(terminal, kept.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _reason(problem: Exception) -> str:
    """The first line of Spark's error, or of its cause, without a stack trace."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0]).removeprefix("Caused by: ")
