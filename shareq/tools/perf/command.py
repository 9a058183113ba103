"""`shareq perf`: the group of both tools."""

from __future__ import annotations

from importlib import import_module

import click


class _Perf(click.Group):
    """Imports the module of the tool that is used, and with it only the client that it measures."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return ["consume", "produce"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"shareq.tools.perf.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Perf)
def perf() -> None:
    """Measure a producer, or the consumers of a share group."""
