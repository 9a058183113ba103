"""What `shareq groups` does: each action calls the admin client and prints the rows of its result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, KafkaException
from shareq.tools import reset_plan
from shareq.tools.rows import NAME_WIDTH, Row, print_json, print_table

if TYPE_CHECKING:
    from shareq.admin import Admin
    from shareq.admin.results import ShareGroupDescription

STATES = ("Empty", "Stable", "Dead")
EVERY_STATE = "*"
"""The value of --state without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one call; see the help of each."""

    action: str
    groups: tuple[str, ...]
    all_groups: bool
    topics: tuple[str, ...]
    all_topics: bool
    view: str
    state: str | None
    verbose: bool
    execute: bool
    export: bool
    target: tuple[str, object] | None
    as_json: bool
    timeout_s: float


def _list(admin: Admin, options: Options) -> None:
    states = _states(options.state) if options.state not in {None, EVERY_STATE} else ()
    found = admin.list_groups(["share"], states, timeout=options.timeout_s).check()
    rows = [{"group": name, "state": listing.state} for name, listing in found.items()]
    if options.as_json:
        print_json(rows)
    elif options.state is None:
        for name in found:
            click.echo(name)
    else:
        print_table(rows, {"group": "GROUP", "state": "STATE"}, {"group": NAME_WIDTH})


def _states(text: str | None) -> list[str]:
    by_name = {state.lower(): state for state in STATES}
    names = [name.strip().lower() for name in (text or "").split(",")]
    if unknown := [name for name in names if name not in by_name]:
        raise click.UsageError(f"--state {text}: {unknown[0]!r} must be one of {', '.join(STATES)}")
    return [by_name[name] for name in names]


def _describe(admin: Admin, options: Options) -> None:
    names = sorted(admin.list_groups(["share"], timeout=options.timeout_s).check()) if options.all_groups else ()
    found = admin.describe_share_groups(options.groups or names, timeout=options.timeout_s).check()
    rows = [row for group in sorted(found) for row in _VIEWS[options.view](admin, found[group], options)]
    if options.as_json:
        print_json(rows)


def _offsets(admin: Admin, group: ShareGroupDescription, options: Options) -> list[Row]:
    name = group.group_id
    rows: list[Row] = [
        {
            "group": name,
            "topic": place.topic,
            "partition": place.partition,
            "leader_epoch": offset.leader_epoch,
            "start_offset": offset.start_offset,
            "lag": offset.lag,
        }
        for place, offset in sorted(admin.list_share_group_offsets(name, timeout=options.timeout_s).items())
    ]
    if not rows:
        _note(options, f"Share group '{name}' has no offset information.", err=False)
    heads = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION"}
    heads |= {"leader_epoch": "LEADER-EPOCH"} if options.verbose else {}
    widths = {"group": NAME_WIDTH, "topic": NAME_WIDTH, "partition": 10, "leader_epoch": 13, "start_offset": 13}
    return _shown(rows, heads | {"start_offset": "START-OFFSET", "lag": "LAG"}, widths, options)


def _members(admin: Admin, group: ShareGroupDescription, options: Options) -> list[Row]:
    del admin
    name = group.group_id
    rows: list[Row] = [
        {
            "group": name,
            "consumer_id": member.member_id,
            "host": member.host,
            "client_id": member.client_id,
            "partitions": len(member.assignment),
            "member_epoch": member.member_epoch,
            "assignment": _assignment(member.assignment),
        }
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    if not rows:
        _note(options, f"Share group '{name}' has no active members.")
    heads = {"group": "GROUP", "consumer_id": "CONSUMER-ID", "host": "HOST", "client_id": "CLIENT-ID"}
    heads |= {"partitions": "#PARTITIONS"} | ({"member_epoch": "MEMBER-EPOCH"} if options.verbose else {})
    widths = dict.fromkeys(("group", "consumer_id", "host", "client_id"), NAME_WIDTH)
    widths |= {"partitions": 12, "member_epoch": 13}
    return _shown(rows, heads | {"assignment": "ASSIGNMENT"}, widths, options)


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    """For example orders:0,1;payments:0."""
    indexes: dict[str, list[int]] = {}
    for place in sorted(partitions):
        indexes.setdefault(place.topic, []).append(place.partition)
    return ";".join(f"{topic}:{','.join(map(str, found))}" for topic, found in indexes.items())


def _state(admin: Admin, group: ShareGroupDescription, options: Options) -> list[Row]:
    nodes = {node.id: f"{node.host}:{node.port}" for node in admin.describe_cluster(timeout=options.timeout_s).nodes}
    row: Row = {
        "group": group.group_id,
        "coordinator": f"{nodes.get(group.coordinator, '')}  ({group.coordinator})",
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": len(group.members),
    }
    if not group.members:
        _note(options, f"Share group '{group.group_id}' has no active members.")
    heads = {"group": "GROUP", "coordinator": "COORDINATOR (ID)", "state": "STATE"}
    epochs = {"group_epoch": "GROUP-EPOCH", "assignment_epoch": "ASSIGNMENT-EPOCH"}
    heads |= epochs if options.verbose else {}
    widths = {"group": NAME_WIDTH, "coordinator": 25, "state": 15, "group_epoch": 12, "assignment_epoch": 17}
    return _shown([row], heads | {"members": "#MEMBERS"}, widths, options)


def _delete(admin: Admin, options: Options) -> None:
    listed = admin.list_groups(["share"], timeout=options.timeout_s).check()
    names = list(dict.fromkeys(listed if options.all_groups else options.groups))
    failed: dict[str, str] = {}
    for name in names:
        if name not in listed:
            failed[name] = f"Group '{name}' is not a share group."
        elif listed[name].state != "Empty":
            failed[name] = f"Share group '{name}' is not EMPTY."
    wanted = [name for name in names if name not in failed]
    if wanted:
        done = admin.delete_share_groups(wanted, timeout=options.timeout_s)
        failed |= {name: row.error.str() for name, row in done.items() if row.error is not None}
    deleted = ", ".join(f"'{name}'" for name in names if name not in failed)
    if options.as_json:
        print_json([{"group": name, "error": failed.get(name)} for name in names])
    elif not failed:
        click.echo(f"Deletion of requested share groups ({deleted}) was successful.")
    elif deleted:
        click.echo(f"These share groups were deleted successfully: {deleted}")
    if failed:
        lines = [f"* Group '{name}' could not be deleted due to: {reason}" for name, reason in failed.items()]
        raise click.ClickException("\n".join(["Deletion of some share groups failed:", *lines]))


def _delete_offsets(admin: Admin, options: Options) -> None:
    (group,) = options.groups
    done = admin.delete_share_group_offsets(group, options.topics, timeout=options.timeout_s)
    rows: list[Row] = [
        {"topic": topic, "status": "Successful" if row.error is None else f"Error: {row.error.str()}"}
        for topic, row in sorted(done.items())
    ]
    _shown(rows, {"topic": "TOPIC", "status": "STATUS"}, {"topic": NAME_WIDTH}, options)
    if options.as_json:
        print_json(rows)
    done.check()


def _reset_offsets(admin: Admin, options: Options) -> None:
    (group,) = options.groups
    described = admin.describe_share_groups([group], timeout=options.timeout_s)[group]
    if described.error is not None and described.error.code() != Errors.GROUP_ID_NOT_FOUND:
        raise KafkaException(described.error)
    if described.error is None and described.state not in {"Empty", "Dead"}:
        raise click.ClickException(f"Share group '{group}' is not empty.")
    plan = _plan(admin, group, options)
    if options.execute and plan:
        admin.alter_share_group_offsets(group, plan, timeout=options.timeout_s).check()  # type: ignore[arg-type]
    if options.export and not options.as_json:
        import csv

        csv.writer(sys.stdout, lineterminator="\n").writerows((p.topic, p.partition, plan[p]) for p in sorted(plan))
        return
    rows: list[Row] = [
        {"group": group, "topic": place.topic, "partition": place.partition, "new_offset": plan[place]}
        for place in sorted(plan)
    ]
    heads = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION", "new_offset": "NEW-OFFSET"}
    _shown(rows, heads, {"group": NAME_WIDTH, "topic": NAME_WIDTH, "partition": 10}, options)
    if options.as_json:
        print_json(rows)


def _plan(admin: Admin, group: str, options: Options) -> reset_plan.Plan:
    assert options.target is not None
    (kind, value), timeout = options.target, options.timeout_s
    if kind == "from_file":
        assert isinstance(value, Path)
        return reset_plan.within_the_log(admin, reset_plan.read_plan(value, group), timeout)
    moment = reset_plan.moment_of(str(value)) if kind == "to_datetime" else None
    if options.all_topics:
        partitions = list(admin.list_share_group_offsets(group, timeout=timeout))
    else:
        partitions = reset_plan.partitions_of(admin, options.topics, timeout)
    if not partitions:
        return {}
    if kind in {"to_earliest", "to_latest"}:
        return reset_plan.at(admin, partitions, kind.removeprefix("to_"), timeout)
    if kind == "to_offset":
        assert isinstance(value, int)
        return reset_plan.within_the_log(admin, dict.fromkeys(partitions, value), timeout)
    if moment is not None:
        plan, left = reset_plan.at_time(admin, partitions, moment, timeout)
        why = "has no record at or after this time. Falling back to the end of the log."
    else:
        plan, left = reset_plan.current(admin, group, partitions, timeout)
        why = "has no start offset yet. It is left as it is."
    for place in left:
        click.echo(f"Warn: Partition {place.partition} from topic {place.topic} {why}", err=True)
    return plan


def _shown(rows: list[Row], heads: dict[str, str], widths: dict[str, int], options: Options) -> list[Row]:
    if rows and not options.as_json:
        print_table(rows, heads, widths)
    return rows


def _note(options: Options, text: str, *, err: bool = True) -> None:
    """Print a line beside the table, on the stream on which Kafka's tool prints it."""
    if not options.as_json:
        click.echo(f"\n{text}", err=err)


ACTIONS: dict[str, Callable[[Admin, Options], None]] = {
    "list_": _list,
    "describe": _describe,
    "delete": _delete,
    "reset_offsets": _reset_offsets,
    "delete_offsets": _delete_offsets,
}
_VIEWS: dict[str, Callable[[Admin, ShareGroupDescription, Options], list[Row]]] = {
    "offsets": _offsets,
    "members": _members,
    "state": _state,
}
