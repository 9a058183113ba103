"""`shareq dlq`: the dead-letter queues of share groups, their letters, and the way back.

Kafka has no such tool. Options and output are in the manner of kafka-share-groups: what changes something shows its
plan, and does it with --execute.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from itertools import islice
from typing import Any

import click

from shareq.admin import Admin
from shareq.admin.dead_letters import DeadLetter, DeadLetterQueue, LetterFilter
from shareq.admin.redrive.ledger import Ledger
from shareq.client.arguments import INT64_MAX
from shareq.model.printable import printable
from shareq.tools.connection import Connection, connection_options
from shareq.tools.rows import NAME_WIDTH, Row, print_json, print_table

WIDTH_OF_FILES = 10_000
"""Where stdout is no terminal, no cell is cut."""


@click.group()
def dlq() -> None:
    """List dead-letter queues, show their letters, and redrive them."""


def _json_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


# ---- filters ---------------------------------------------------------------------------------------------------------


def _range(ctx: click.Context, param: click.Parameter, value: str | None) -> range | None:
    """5, 5-9, 5- or -9: numbers, both ends included."""
    del ctx, param
    if value is None:
        return None
    first, dash, last = value.partition("-")
    if not (first or last) or not all(not part or part.isdecimal() for part in (first, last)):
        raise click.BadParameter(f"{value!r}: must be a number, or a range such as 5-9, 5- or -9")
    low = int(first or 0)
    return range(low, (int(last or INT64_MAX) if dash else low) + 1)


def letter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: the argument GROUP, --queue, and the filters, passed as `letters`."""

    @click.argument("group")
    @click.option("--queue", default="", metavar="TOPIC", help="A queue that the group does not name any more.")
    @click.option("--topic", "topics", multiple=True, help="Letters of records of this topic; repeatable.")
    @click.option("--partition", "partitions", type=int, multiple=True, help="Of this partition of it; repeatable.")
    @click.option(
        "--offset", "offsets", callback=_range, metavar="N[-M]", help="Of records with this offset, or of a range."
    )
    @click.option(
        "--delivery-count", "counts", callback=_range, metavar="N[-M]", help="Of records delivered so many times."
    )
    @click.option("--message", default="", metavar="TEXT", help="Letters whose reason contains TEXT.")
    @click.option(
        "--queue-partition", "queue_partitions", type=int, multiple=True, help="In this partition; repeatable."
    )
    @click.option(
        "--queue-offset", "queue_offsets", callback=_range, metavar="N[-M]", help="With this offset in the queue."
    )
    @wraps(command)
    def filtered(
        connection: Connection,
        *,
        topics: tuple[str, ...],
        partitions: tuple[int, ...],
        offsets: range | None,
        counts: range | None,
        message: str,
        queue_partitions: tuple[int, ...],
        queue_offsets: range | None,
        **options: Any,
    ) -> None:
        letters = LetterFilter(
            topics=topics or None,
            partitions=partitions or None,
            offsets=offsets,
            delivery_counts=counts,
            queue_partitions=queue_partitions or None,
            queue_offsets=queue_offsets,
            message=message,
        )
        command(connection, letters=letters, **options)

    return filtered


# ---- list ------------------------------------------------------------------------------------------------------------


@dlq.command("list")
@connection_options
@click.option("--verbose", is_flag=True, help="Read the queues, and count the letters of each group.")
@_json_option
def list_(connection: Connection, *, verbose: bool, as_json: bool) -> None:
    """List the groups with a dead-letter queue. RECORDS counts those in the topic, of all groups."""
    with connection.admin() as admin:
        queues = admin.list_dead_letter_queues(timeout=connection.timeout_s)
        rows = [_queue_row(admin, queue, connection.timeout_s, verbose=verbose) for queue in queues.values()]
    if as_json:
        print_json(rows)
    elif rows:
        heads = {key: key.upper().replace("_", "-") for key in rows[0] if key != "error"}
        print_table(rows, heads, {"group": NAME_WIDTH, "queue": NAME_WIDTH})
    else:
        click.echo("No share group has a dead-letter queue.", err=True)


def _queue_row(admin: Admin, queue: DeadLetterQueue, timeout: float, *, verbose: bool) -> Row:
    exists = queue.error is None
    row: dict[str, object] = {
        "group": queue.group_id,
        "queue": queue.topic,
        "copies": "yes" if queue.copies else "no",
        "partitions": queue.partitions if exists else None,
        "records": queue.records if exists else None,
    }
    if verbose:
        letters, redriven = _counted(admin, queue, timeout) if exists else (None, None)
        row |= {"letters": letters, "redriven": redriven}
    return row | {"error": None if queue.error is None else queue.error.name()}


def _counted(admin: Admin, queue: DeadLetterQueue, timeout: float) -> tuple[int, int]:
    """The letters of the group, and those of them that were redriven."""
    ledger = Ledger(queue.group_id, admin.describe_topics([queue.topic], timeout=timeout).check()[queue.topic])
    ledger.read(admin, timeout)
    letters = redriven = 0
    for letter in admin.read_dead_letters(queue.group_id, queue=queue.topic, timeout=timeout):
        letters += 1
        redriven += letter.queue_offset in ledger.settled(letter.queue_partition)
    return letters, redriven


# ---- show ------------------------------------------------------------------------------------------------------------


@dlq.command()
@connection_options
@letter_options
@click.option("--max-records", type=click.IntRange(min=1), metavar="N", help="Show the first N letters only.")
@_json_option
def show(
    connection: Connection, *, group: str, queue: str, letters: LetterFilter, max_records: int | None, as_json: bool
) -> None:
    """Show the letters of GROUP, with the reasons and the places of their records."""
    with connection.admin() as admin:
        found = admin.read_dead_letters(group, letters, queue=queue, timeout=connection.timeout_s)
        rows = [_letter_row(letter) for letter in islice(found, max_records)]
    if as_json:
        print_json(rows)
    elif rows:
        _print_letters(rows)


def _letter_row(letter: DeadLetter) -> Row:
    return {
        "queue": letter.queue,
        "queue_partition": letter.queue_partition,
        "queue_offset": letter.queue_offset,
        "time": datetime.fromtimestamp(letter.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "delivery_count": letter.delivery_count,
        "message": letter.message,
        "key": _content(letter.key),
        "value": _content(letter.value),
    }


def _content(data: bytes | None) -> object:
    """Text if the bytes are UTF-8."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data or b"").decode()}


def _print_letters(rows: list[Row]) -> None:
    from rich.console import Console  # at their use: the other commands start faster
    from rich.markup import escape
    from rich.table import Table

    heads = [key for key in rows[0] if key not in {"queue", "queue_partition"}]
    table = Table(*(head.upper().replace("_", "-") for head in heads), box=None, pad_edge=False)
    for row in rows:
        cells = dict(row) | {"queue_offset": f"{row['queue_partition']}:{row['queue_offset']}"}
        table.add_row(*(escape(_cell(cells[head])) for head in heads))
    width = None if sys.stdout.isatty() else WIDTH_OF_FILES
    Console(width=width, highlight=False).print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return printable(str(value["base64"]) if isinstance(value, dict) else str(value))


# ---- redrive ---------------------------------------------------------------------------------------------------------


@dlq.command()
@connection_options
@letter_options
@click.option("--to", default="", metavar="TOPIC", help="Redrive to this topic.  [default: the topic of each record]")
@click.option("--dry-run", is_flag=True, help="Show what would be redriven (default).")
@click.option("--execute", is_flag=True, help="Redrive.")
@_json_option
def redrive(
    connection: Connection,
    *,
    group: str,
    queue: str,
    letters: LetterFilter,
    to: str,
    dry_run: bool,
    execute: bool,
    as_json: bool,
) -> None:
    """Write the records of GROUP's letters back, each of them once: letters that were redriven before are left out.

    A letter without a copy of its record takes the record from its topic, if it is still there. Letters that cannot be
    redriven are named, and the exit code is 1.
    """
    if dry_run and execute:
        raise click.UsageError("only one is possible of --dry-run, --execute")
    with connection.admin() as admin, _progress() as progress:
        done = admin.redrive_dead_letters(
            group,
            letters,
            to=to,
            queue=queue,
            validate_only=not execute,
            progress=progress,
            timeout=connection.timeout_s,
        )
    rows: list[Row] = [
        {"topic": topic, "partition": partition, "to": target, "records": count}
        for (topic, partition, target), count in sorted(done.counts.items())
    ]
    if as_json:
        skipped = [
            {
                "queue_partition": letter.queue_partition,
                "queue_offset": letter.queue_offset,
                "topic": letter.topic,
                "partition": letter.partition,
                "offset": letter.offset,
                "reason": reason,
            }
            for letter, reason in done.skipped
        ]
        found = {"queue": done.queue, "executed": done.executed, "redriven": rows, "markers": done.markers}
        click.echo(json.dumps(found | {"skipped": skipped}, indent=2))
    elif rows:
        heads = {key: key.upper() for key in rows[0]}
        print_table(rows, heads, {"topic": NAME_WIDTH, "partition": 10, "to": NAME_WIDTH})
    if rows and not execute:
        click.echo("\nNothing was written: --execute redrives.", err=True)
    if done.skipped:
        raise click.ClickException(_skipped(done.skipped))


@contextmanager
def _progress() -> Iterator[Callable[[int], object]]:
    """A bar on stderr, if that is a terminal and the work takes more than a second."""
    from tqdm import tqdm

    with tqdm(unit=" records", disable=None, delay=1) as bar:
        yield bar.update


def _skipped(skipped: list[tuple[DeadLetter, str]]) -> str:
    """The letters that were left out, by reason, each reason with its first letter."""
    by_reason: dict[str, list[DeadLetter]] = {}
    for letter, reason in skipped:
        by_reason.setdefault(reason, []).append(letter)
    lines = [f"letters that were not redriven: {len(skipped)}"]
    for reason, letters in by_reason.items():
        first = letters[0]
        lines.append(
            f"* {len(letters)}: {reason} (the first: offset {first.queue_offset} of {first.queue} "
            f"[{first.queue_partition}], for offset {first.offset} of {first.topic} [{first.partition}])"
        )
    return "\n".join(lines)
