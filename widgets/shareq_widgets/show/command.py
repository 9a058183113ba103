"""`shareq show`: the control room of a cluster or of a journal in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from shareq.extras import require
from shareq.model.errors import ConfigException, KafkaException, in_words
from shareq.signals.end_signals import end_signals
from shareq_widgets.look import THEMES
from shareq_widgets.show.source import NothingToShow, Shown, Wishes, find

LOOK_S = 0.5
"""The interval at which `--wait` looks again."""


@click.command()
@click.argument("source", required=False)
@click.option("--group", help="The share group.  [default: the first one of the source]")
@click.option("--topic", help="The topic of the strip.  [default: the first one of the group]")
@click.option("--partition", type=click.IntRange(0), help="Its partition.  [default: the first one of the group]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="The port; 0: a free one.")
@click.option("--theme", type=click.Choice(["auto", *THEMES]), default="auto", show_default=True)
@click.option("--wait", is_flag=True, help="Wait until the cluster at SOURCE has a share group with a partition.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option("--of-tap", is_flag=True, hidden=True)
def show(
    *,
    source: str | None,
    group: str | None,
    topic: str | None,
    partition: int | None,
    port: int,
    theme: str,
    wait: bool,
    no_browser: bool,
    of_tap: bool,
) -> None:
    """Show the control room of a share group in the browser until Ctrl-C.

    SOURCE: nothing for a new cluster in memory, on a clock that you advance; host:port,... of Apache Kafka or of
    `shareq serve`, which is observed, or of `shareq tap`, which knows holders and locks; or the path of a journal, a
    .jsonl or .parquet file.
    """
    # `--of-tap`: `shareq tap --show` ends this process, and its own lines say so.
    with _plain_errors():
        require("lab", "voila", "ipywidgets", "anywidget")
        found = _found(source, Wishes(group, topic, partition), wait=wait)
        if found is None:
            return
        from shareq_widgets.show.app import serve  # Voila takes seconds: a wrong SOURCE is refused before

        def opened(address: str) -> None:
            click.echo(f"shareq shows {found} at {address}")
            if not of_tap:
                click.echo("Ctrl-C stops it.")

        serve(found.code(theme), port=port, theme=theme, opened=opened, open_browser=not no_browser)
    if not of_tap:
        click.echo("shareq has stopped.")


def _found(source: str | None, wishes: Wishes, *, wait: bool) -> Shown | None:
    """What is shown; None if a signal ends the wait for it."""
    if not wait:
        return find(source, wishes)
    with end_signals() as ended:
        while not ended.is_set():
            with suppress(NothingToShow):
                return find(source, wishes)
            ended.wait(LOOK_S)
    return None


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Show errors of the source and of the system as one line, without a traceback."""
    try:
        yield
    except KafkaException as problem:
        raise click.ClickException(problem.error.str()) from problem
    except (ConfigException, ModuleNotFoundError, OSError, ValueError) as problem:
        raise click.ClickException(in_words(problem)) from problem
