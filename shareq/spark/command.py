"""What the commands on Spark share: a session that starts quickly and quietly, and errors as sentences."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Never

import click

from shareq.extras import install_command
from shareq.jvm import JavaNotFound
from shareq.model.errors import in_words
from shareq.spark.register import is_remote
from shareq.spark.session import JAVA_OPTIONS, archiving, drop_draft, unregistered
from shareq.spark.versions import SparkDoesNotFit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java without its second compiler, which takes half of the processor time of a run of seconds and saves none; with the
room for compiled code that Java reserves otherwise, as Spark fills the fifth that is the default then."""

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the messages of Spark and Java.")


INTERRUPTED = 130
"""The exit code after Ctrl-C, as of a shell's commands."""

STOPPED_S = 10
"""How long Spark's Java may take to end after Ctrl-C, in seconds."""


@contextmanager
def spark_of_command(
    master: str | None, *, verbose: bool, brief: bool, progress: bool, interrupted: Callable[[], str]
) -> Iterator[SparkSession]:
    """The session of a command. `brief`: Spark's Java has little to do. `interrupted` is called after Ctrl-C, when
    Spark has ended: it removes what is half done, and returns a sentence.

    Errors that a user can do something about become a ClickException.
    """
    if progress:
        click.echo("Starting Spark ...", err=True)
    try:
        with archiving(), _ended_by_ctrl_c(interrupted):
            with quiet_java(enabled=not verbose), _keeping_our_handler():
                spark = unregistered(master=master, **({JAVA_OPTIONS: BRIEF} if brief else {}))
            if not verbose and not is_remote(spark):
                spark.sparkContext.setLogLevel("OFF")  # errors are raised, and become sentences
            yield spark
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"the package {missing.name} is missing: {install_command('spark')}") from missing
    except (JavaNotFound, OSError, SparkDoesNotFit, ValueError) as problem:
        raise click.ClickException(in_words(problem)) from problem
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise click.ClickException(f"Spark failed: {_reason(problem)}") from problem


@contextmanager
def _ended_by_ctrl_c(interrupted: Callable[[], str]) -> Iterator[None]:
    """SIGINT ends the process, with a sentence: an exception would meet Spark's threads, each of which prints a
    trace."""
    terminal = os.dup(2)  # while Spark starts, the standard error is kept from it

    def end(*_: object) -> Never:
        with quiet_java(enabled=True):
            _stop_java()
            drop_draft()
            sentence = interrupted()
        os.write(terminal, f"\n{sentence}\n".encode())
        os._exit(INTERRUPTED)

    former = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        os.close(terminal)


@contextmanager
def _keeping_our_handler() -> Iterator[None]:
    """PySpark replaces the handler of SIGINT when it starts, without a setting, and its own raises in the midst of a
    call: inside the block that has no effect."""
    install = signal.signal

    def others(number: int, handler: Any) -> Any:
        return signal.getsignal(number) if number == signal.SIGINT else install(number, handler)

    signal.signal = others  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = install


def _stop_java() -> None:
    """End Spark's Java, so that it writes nothing more; it removes its temporary files."""
    from pyspark import SparkContext

    java = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001    # PySpark has no other name for it
    if java is None:
        return
    java.terminate()
    try:
        java.wait(STOPPED_S)
    except TimeoutExpired:
        java.kill()
        java.wait()


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
