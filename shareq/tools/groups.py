"""`shareq groups`: Kafka's kafka-share-groups. It lists, describes, resets and deletes share groups.

Source: the options and columns of Kafka 4.4's tool. In contrast to it, a partition of the group that has no start
offset yet is left as it is by --to-current, and --export ends without an empty line.
"""

from __future__ import annotations

from pathlib import Path

import click

from shareq.tools.connection import Connection, connection_options
from shareq.tools.group_actions import ACTIONS, EVERY_STATE, Options
from shareq.tools.options import flag, texts, the_one


@click.command()
@connection_options
@click.option("--list", "list_", is_flag=True, help="List share groups.")
@click.option("--describe", is_flag=True, help="Describe groups: their offsets, members or state.")
@click.option("--delete", is_flag=True, help="Delete groups without members.")
@click.option("--reset-offsets", is_flag=True, help="Set the start offsets of a group without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete the offsets of topics in a group without members.")
@click.option("--group", "groups_", multiple=True, metavar="ID", help="A share group; repeatable.")
@click.option("--all-groups", is_flag=True, help="With --describe and --delete: all share groups.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="With --reset-offsets and --delete-offsets: a topic, or some of its partitions to reset; repeatable.",
)
@click.option("--all-topics", is_flag=True, help="With --reset-offsets: all partitions that the group has.")
@click.option("--offsets", is_flag=True, help="With --describe: start offset and lag of each partition (default).")
@click.option("--members", is_flag=True, help="With --describe: the members and their assignments.")
@click.option(
    "--state",
    is_flag=False,
    flag_value=EVERY_STATE,
    metavar="[STATE,...]",
    help="With --describe: state and coordinator. With --list: the state of groups; those in Empty, Stable, Dead.",
)
@click.option("--verbose", is_flag=True, help="With --describe: epochs, too.")
@click.option("--to-earliest", is_flag=True, help="Reset to the start of the log.")
@click.option("--to-latest", is_flag=True, help="Reset to the end of the log.")
@click.option("--to-current", is_flag=True, help="Reset to the present start offset; where there is none, to the end.")
@click.option("--to-offset", type=int, metavar="N", help="Reset to offset N, or to the nearest end of the log.")
@click.option("--to-datetime", metavar="TIME", help="Reset to the first record at or after TIME (ISO 8601; UTC).")
@click.option(
    "--from-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Reset to the lines topic,partition,offset of a file.",
)
@click.option("--dry-run", is_flag=True, help="With --reset-offsets: show the new offsets only.")
@click.option("--execute", is_flag=True, help="With --reset-offsets: set the new offsets.")
@click.option("--export", is_flag=True, help="With --reset-offsets: print the lines that --from-file reads.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects instead of a table.")
def groups(connection: Connection, **given: object) -> None:
    """List, describe, reset and delete share groups, as kafka-share-groups does."""
    options = _checked(connection, given)
    with connection.admin() as admin:
        ACTIONS[options.action](admin, options)


# ---- options ---------------------------------------------------------------------------------------------------------


def _checked(connection: Connection, given: dict[str, object]) -> Options:
    """The options of the call. UsageError: they contradict each other, or one is missing."""
    action = the_one(given, ("list_", "describe", "delete", "reset_offsets", "delete_offsets"), "one action is needed")
    view = the_one(given, ("offsets", "members", "state"), "", "offsets") if action == "describe" else "offsets"
    if action in {"describe", "delete"} and bool(given["groups_"]) == bool(given["all_groups"]):
        raise click.UsageError(f"--{action} needs --group or --all-groups")
    if action == "describe" and given["state"] not in {None, EVERY_STATE}:
        raise click.UsageError("--describe --state takes no value")
    if action in {"reset_offsets", "delete_offsets"} and len(texts(given["groups_"])) != 1:
        raise click.UsageError(f"{flag(action)} needs one --group")
    if action == "delete_offsets" and not given["topics"]:
        raise click.UsageError("--delete-offsets needs --topic")
    target = _target(given) if action == "reset_offsets" else None
    state = given["state"] if action == "list_" else None
    return Options(
        action=action,
        groups=texts(given["groups_"]),
        all_groups=bool(given["all_groups"]),
        topics=texts(given["topics"]),
        all_topics=bool(given["all_topics"]),
        view=view,
        state=None if state is None else str(state),
        verbose=bool(given["verbose"]),
        execute=bool(given["execute"]),
        export=bool(given["export"]),
        target=target,
        as_json=bool(given["as_json"]),
        timeout_s=connection.timeout_s,
    )


def _target(given: dict[str, object]) -> tuple[str, object]:
    """Where offsets are reset to: an option and its value."""
    the_one(given, ("dry_run", "execute"), "--reset-offsets needs --dry-run or --execute")
    targets = ("to_earliest", "to_latest", "to_current", "to_offset", "to_datetime", "from_file")
    chosen = the_one(given, targets, "--reset-offsets needs a target")
    scope = bool(given["topics"]) + bool(given["all_topics"])
    if chosen == "from_file" and scope:
        raise click.UsageError("--from-file names the partitions: it excludes --topic and --all-topics")
    if chosen != "from_file" and scope != 1:
        raise click.UsageError("--reset-offsets needs --topic or --all-topics")
    return chosen, given[chosen]
