"""`shareq acls`: Kafka's kafka-acls. It adds, removes and lists access control lists.

Source: the options and output of Kafka 4.4's tool. In contrast to it, options that have no effect on the action are
refused.
"""

from __future__ import annotations

import click

from shareq.model.acls import AclOperation, ResourcePatternType
from shareq.tools.acl_actions import ACTIONS, Options
from shareq.tools.acl_plan import of_options, principal, resources
from shareq.tools.connection import Connection, connection_options
from shareq.tools.options import flag, is_given, only_with, texts, the_one

_PATTERN_TYPES = ("any", "match", "literal", "prefixed")
_OPERATIONS = ", ".join(each.name for each in AclOperation if each > AclOperation.ANY)


@click.command()
@connection_options
@click.option("--add", is_flag=True, help="Add access control lists.")
@click.option("--remove", is_flag=True, help="Remove those that are named, or all of the resources.")
@click.option("--list", "list_", is_flag=True, help="List those of the resources; without a resource, all.")
@click.option("--topic", multiple=True, metavar="NAME", help="A topic; '*': all topics; repeatable.")
@click.option("--group", multiple=True, metavar="ID", help="A group; '*': all groups; repeatable.")
@click.option("--cluster", is_flag=True, help="The cluster.")
@click.option("--transactional-id", multiple=True, metavar="ID", help="A transactional id; '*': all; repeatable.")
@click.option("--delegation-token", multiple=True, metavar="ID", help="A delegation token; '*': all; repeatable.")
@click.option(
    "--user-principal", multiple=True, metavar="TYPE:NAME", help="A user whose tokens it is about; repeatable."
)
@click.option(
    "--resource-pattern-type",
    type=click.Choice(_PATTERN_TYPES, case_sensitive=False),
    default="literal",
    show_default=True,
    help="What the names are: names, or prefixes of names. With --remove and --list also any (of this name, literal "
    "and prefixed) and match (all that apply to the resource).",
)
@click.option("--operation", multiple=True, metavar="NAME", help=f"One of {_OPERATIONS}; repeatable.  [default: ALL]")
@click.option("--allow-principal", multiple=True, metavar="TYPE:NAME", help="Allowed principal; User:* is every user.")
@click.option("--deny-principal", multiple=True, metavar="TYPE:NAME", help="Denied principal; a denial outranks.")
@click.option("--allow-host", multiple=True, metavar="ADDRESS", help="From where it is allowed.  [default: anywhere]")
@click.option("--deny-host", multiple=True, metavar="ADDRESS", help="From where it is denied.  [default: anywhere]")
@click.option("--producer", is_flag=True, help="What a producer needs: WRITE, DESCRIBE and CREATE on topics.")
@click.option("--idempotent", is_flag=True, help="With --producer: IDEMPOTENT_WRITE on the cluster, too.")
@click.option("--consumer", is_flag=True, help="What a consumer needs: READ and DESCRIBE on topics, READ on groups.")
@click.option("--principal", multiple=True, metavar="TYPE:NAME", help="With --list: only those of it; repeatable.")
@click.option("--force", is_flag=True, help="With --remove: ask no questions.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def acls(connection: Connection, **given: object) -> None:
    """Add, remove and list access control lists, as kafka-acls does."""
    options = _checked(connection, given)
    with connection.admin() as admin:
        ACTIONS[options.action](admin, options)


def _checked(connection: Connection, given: dict[str, object]) -> Options:
    """The options of the call. UsageError: they contradict each other, or one is missing."""
    action = the_one(given, ("add", "remove", "list_"), "one action is needed")
    pattern_type = ResourcePatternType[str(given["resource_pattern_type"]).upper()]
    names = ("allow_principal", "deny_principal", "allow_host", "deny_host", "operation", "producer", "consumer")
    only_with(given, names, ("add", "remove"))
    only_with(given, ("principal",), ("list_",))
    only_with(given, ("force",), ("remove",))
    only_with(given, ("idempotent",), ("producer",))
    only_with(given, ("allow_host",), ("allow_principal",))
    only_with(given, ("deny_host",), ("deny_principal",))
    _check_roles(given)
    if action == "add" and pattern_type not in (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED):
        raise click.UsageError("--add needs the --resource-pattern-type literal or prefixed")
    if action == "add" and not (given["allow_principal"] or given["deny_principal"]):
        raise click.UsageError("--add needs --allow-principal or --deny-principal")
    only_with(given, ("operation",), ("allow_principal", "deny_principal"))
    only_with(given, ("producer", "consumer"), ("allow_principal",))
    found = resources(given, pattern_type)
    if not found and action != "list_":
        raise click.UsageError(f"{flag(action)} needs a resource, such as --topic, --group or a literal --cluster")
    return Options(
        action=action,
        resources=found,
        wanted={} if action == "list_" else of_options(given, found),
        principals=tuple(map(principal, texts(given["principal"]))),
        force=bool(given["force"]),
        as_json=bool(given["as_json"]),
        timeout_s=connection.timeout_s,
    )


def _check_roles(given: dict[str, object]) -> None:
    """UsageError: a role has other options than it needs."""
    for role in ("producer", "consumer"):
        if given[role]:
            for name in ("operation", "deny_principal", "deny_host"):
                if is_given(given, name):
                    raise click.UsageError(f"{flag(role)} excludes {flag(name)}")
    if given["producer"] and not given["topic"]:
        raise click.UsageError("--producer needs --topic")
    if given["consumer"] and not (given["topic"] and given["group"]):
        raise click.UsageError("--consumer needs --topic and --group")
    if given["consumer"] and not given["producer"] and (given["cluster"] or given["transactional_id"]):
        raise click.UsageError("--consumer excludes --cluster and --transactional-id")
