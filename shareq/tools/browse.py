"""`shareq browse`: the records of a share group with their states and holders, without acquiring them (an experiment).

Kafka has no such tool. Options and columns are in the style of its others.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from shareq.admin import Admin
from shareq.model.messages.share_browse import FROM_SPSO
from shareq.tools.connection import Connection, connection_options
from shareq.tools.rows import Row, print_json, print_table

_STATE = {
    "state": "STATE",
    "delivery_count": "DELIVERY-COUNT",
    "member_id": "MEMBER-ID",
    "remaining_ms": "REMAINING-MS",
    "reason": "REASON",
}
_RUNS = {"partition": "PARTITION", "first_offset": "FIRST-OFFSET", "last_offset": "LAST-OFFSET", **_STATE}
_RECORDS = {"partition": "PARTITION", "offset": "OFFSET", **_STATE, "key": "KEY", "value": "VALUE"}


@click.command()
@connection_options
@click.option("--group", required=True, metavar="ID", help="The share group.")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="The partition.  [default: all]")
@click.option(
    "--from-offset",
    type=click.IntRange(min=0),
    metavar="N",
    help="Begin at offset N.  [default: the share-partition start offset]",
)
@click.option("--records", is_flag=True, help="Print each record with key and value, not ranges of offsets.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects instead of a table.")
def browse(
    connection: Connection,
    *,
    group: str,
    topic: str,
    partition: int | None,
    from_offset: int | None,
    records: bool,
    as_json: bool,
) -> None:
    """Show the records of a share group with their states and holders, and acquire none. An experiment of shareq's
    brokers."""
    heads = _RECORDS if records else _RUNS
    rows: list[Row] = []
    with connection.admin() as admin:
        for index in _partitions(admin, topic, connection.timeout_s) if partition is None else [partition]:
            first = FROM_SPSO if from_offset is None else from_offset
            browsed = admin.browse(group, topic, index, from_offset=first, timeout=connection.timeout_s)
            rows += [
                {key: _shown(index if key == "partition" else getattr(found, key)) for key in heads}
                for found in (browsed if records else browsed.runs())
            ]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, heads, {})


def _partitions(admin: Admin, topic: str, timeout_s: float) -> Iterator[int]:
    described = admin.describe_topics([topic], timeout=timeout_s).check()[topic]
    return (found.partition for found in described.partitions)


def _shown(value: object) -> object:
    """Keys and values as text; what is no UTF-8 has replacement characters."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
