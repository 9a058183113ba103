"""What `shareq acls` does: each action calls the admin client and prints what kafka-acls prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import click

from shareq.admin import Admin
from shareq.model.acls import AclBinding, AclBindingFilter
from shareq.tools.acl_plan import Entries, Entry, Pattern, binding_of, filter_of, parts_of
from shareq.tools.rows import Row, print_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one call. `wanted`: the entries of each resource; none at all, with --remove, stand for every
    entry."""

    action: str
    resources: Sequence[Pattern]
    wanted: Entries
    principals: Sequence[str]
    force: bool
    as_json: bool
    timeout_s: float


def _add(admin: Admin, options: Options) -> None:
    rows: list[Row] = []
    for pattern, entries in options.wanted.items():
        present = set(admin.describe_acls(filter_of(pattern), timeout=options.timeout_s))
        missing = [entry for entry in entries if binding_of(pattern, entry) not in present]
        rows += [_row(binding_of(pattern, entry)) | {"added": entry in missing} for entry in entries]
        if not options.as_json:
            for entry in entries:
                if entry not in missing:
                    click.echo(f"Acl (pattern={pattern}, entry={entry}) already exists.")
            if missing:
                click.echo(f"Adding ACLs for resource `{pattern}`: \n {_lines(missing)}\n")
        if missing:
            added = [binding_of(pattern, entry) for entry in missing]
            admin.create_acls(added, timeout=options.timeout_s).check()
    if options.as_json:
        print_json(rows)


def _remove(admin: Admin, options: Options) -> None:
    removed: list[AclBinding] = []
    for pattern, entries in options.wanted.items():
        question = f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"
        if entries:
            question = (
                f"Are you sure you want to remove ACLs: \n {_lines(entries)}\n from resource filter `{pattern}`? (y/n)"
            )
        if options.force or _agreed(question, err=options.as_json):
            filters = [filter_of(pattern, entry) for entry in entries] or [filter_of(pattern)]
            done = admin.delete_acls(filters, timeout=options.timeout_s).check()
            removed += [binding for row in done.values() for binding in row.acls]
    if options.as_json:
        print_json([_row(binding) for binding in dict.fromkeys(removed)])


def _agreed(question: str, *, err: bool) -> bool:
    """The answer to a question; the end of the input is no."""
    click.echo(question, err=err)
    return sys.stdin.readline().strip().lower() == "y"


def _list(admin: Admin, options: Options) -> None:
    filters = [filter_of(pattern) for pattern in options.resources] or [AclBindingFilter()]
    found = dict.fromkeys(
        binding for wanted in filters for binding in admin.describe_acls(wanted, timeout=options.timeout_s)
    )
    chosen = [binding for binding in found if not options.principals or binding.principal in options.principals]
    if options.as_json:
        print_json([_row(binding) for binding in chosen])
    elif not options.principals:
        _print(chosen)
    for name in () if options.as_json else dict.fromkeys(options.principals):
        click.echo(f"ACLs for principal `{name}`")
        _print(binding for binding in chosen if binding.principal == name)


def _print(bindings: Iterable[AclBinding]) -> None:
    entries: dict[Pattern, list[Entry]] = {}
    for binding in bindings:
        pattern, entry = parts_of(binding)
        entries.setdefault(pattern, []).append(entry)
    for pattern, found in entries.items():
        click.echo(f"Current ACLs for resource `{pattern}`:\n{_lines(found)}\n")


def _lines(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


def _row(binding: AclBinding) -> dict[str, object]:
    return {
        "resource_type": binding.restype.name,
        "resource_name": binding.name,
        "pattern_type": binding.resource_pattern_type.name,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation.name,
        "permission_type": binding.permission_type.name,
    }


ACTIONS: dict[str, Callable[[Admin, Options], None]] = {"add": _add, "remove": _remove, "list_": _list}
