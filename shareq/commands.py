"""The commands of `shareq`: each is imported when it is used."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib import import_module
from io import TextIOWrapper
from types import ModuleType
from typing import Any, NamedTuple

import click

from shareq.extras import install_command
from shareq.model.near_names import did_you_mean


class Late(NamedTuple):
    """A command that is imported when it is used. `about`: the first sentence of its help, so that the list of commands
    needs no import."""

    module: str
    about: str


LATE = {
    "acls": Late("shareq.tools.acls", "Add, remove and list access control lists, as kafka-acls does."),
    "browse": Late(
        "shareq.tools.browse", "Show the records of a share group with their states and holders, and acquire none."
    ),
    "configs": Late(
        "shareq.tools.configs",
        "Describe and alter configurations, quotas and SCRAM credentials, as kafka-configs does.",
    ),
    "consume": Late("shareq.tools.consume", "Print the messages of a topic, as kafka-console-share-consumer does."),
    "dlq": Late("shareq.tools.dead_letters", "List dead-letter queues, show their letters, and redrive them."),
    "groups": Late("shareq.tools.groups", "List, describe, reset and delete share groups, as kafka-share-groups does."),
    "kafka": Late("shareq.kafka.command", "Run Apache Kafka on this machine: no installation, no remaining data."),
    "observe": Late(
        "shareq.observer.health.command",
        "Observe share groups of the Kafka at BOOTSTRAP, by reading only, until Ctrl-C.",
    ),
    "perf": Late("shareq.tools.perf.command", "Measure a producer, or the consumers of a share group."),
    "pipeline": Late("shareq.spark.pipeline.command", "Tables of a trace, by Spark: the outcome of every record."),
    "produce": Late("shareq.tools.produce", "Write each line of stdin as a record, as kafka-console-producer does."),
    "serve": Late("shareq.serve_command", "Serve a cluster to Kafka clients until Ctrl-C."),
    "sheet": Late("shareq_widgets.sheet", "Write share groups on one page to FILE, .svg or .png, to print on A4."),
    "show": Late("shareq_widgets.show.command", "Show the control room of a share group in the browser until Ctrl-C."),
    "tap": Late(
        "shareq.proxy.command",
        "Pass clients through to the Kafka at BOOTSTRAP until Ctrl-C, and journal its share groups.",
    ),
    "topics": Late("shareq.tools.topics", "Create, alter, delete, describe and list topics, as kafka-topics does."),
    "verify": Late("shareq.tools.verify", "Consume and check, as kafka-verifiable-share-consumer does."),
    "what-if": Late(
        "shareq.spark.what_if",
        "Compute what lock durations and limits cost: the table OUT for what_if(table=OUT) in a notebook.",
    ),
}

EXTRAS = {"shareq.spark": "spark", "shareq_widgets": "lab"}
"""The extra of these packages; that of the others is kafka."""


FIRST = ("serve", "show", "observe", "tap", "kafka")
"""The commands that a person meets first; the others follow by name."""

YOUNG_OBJECTS = 20_000
"""New objects that are left before Python looks for cycles among them. Imports leave none and requests few: at its
default of 700, the looking takes part of a tool's start and of each request of a server."""

LONG = 1_000
"""More than the characters of any sentence: lines are broken, and sentences are not cut off."""


class Commands(click.Group):
    """The group of the commands of LATE."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command. What the output cannot encode, such as a Japanese name in a code page of Windows, is written
        as Python's escapes, and no reason to end."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
                stream.reconfigure(errors="backslashreplace")
        atexit.register(gc.freeze)  # the end of the process need not look for garbage: all of its memory is returned
        before = gc.get_threshold()
        gc.set_threshold(YOUNG_OBJECTS)
        try:
            return super().main(*args, **extra)
        finally:
            gc.set_threshold(*before)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*FIRST, *sorted(LATE.keys() - set(FIRST))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in LATE:
            return None
        command: click.Command = getattr(needed(LATE[cmd_name].module), cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first argument. UsageError: there is none, with the name that was probably meant."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            hint = did_you_mean(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}{hint}" + "." * (not hint))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all commands by their first sentences, without an import."""
        listed = {name: click.Command(name, help=LATE[name].about) for name in self.list_commands(ctx)}
        rows = [(name, command.get_short_help_str(LONG)) for name, command in listed.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def needed(module: str) -> ModuleType:
    """Import a module of a command. ClickException with the line to run if a package that it needs is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        extra = next((name for room, name in EXTRAS.items() if module.startswith(room)), "kafka")
        raise click.ClickException(f"the package {missing.name} is missing: {install_command(extra)}") from missing
