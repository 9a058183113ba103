"""`shareq configs`: Kafka's kafka-configs. It describes and alters the configurations of topics, groups and brokers,
the quotas of users, clients and addresses, and the SCRAM credentials of users.

Source: the options and output of Kafka 4.4's tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from shareq.admin import Admin, Results
from shareq.admin.results import ConfigEntry
from shareq.client.properties import properties_of
from shareq.tools import client_configs
from shareq.tools.client_configs import QUOTA_TYPES
from shareq.tools.connection import Connection, connection_options
from shareq.tools.options import the_one
from shareq.tools.rows import Row, print_json


class EntityType(NamedTuple):
    """What the admin client and the output call one of them, and the source of its dynamic configurations."""

    kind: str
    dynamic: str


ENTITY_TYPES = {
    "topics": EntityType("topic", "topic"),
    "groups": EntityType("group", "group"),
    "brokers": EntityType("broker", "dynamic_broker"),
    "broker-loggers": EntityType("broker-logger", "broker_logger"),
    "client-metrics": EntityType("client-metrics", "client_metrics"),
}
_EVERY_TYPE = (*ENTITY_TYPES, *QUOTA_TYPES)
_BROKER_DEFAULT = "dynamic_default_broker"
_FLAGS = {
    "topic": "topics",
    "group": "groups",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "client_metrics": "client-metrics",
    "client": "clients",
    "user": "users",
    "ip": "ips",
}
"""The options that name an entity, and its type, in the order of Kafka's tool: of two, it reports the first."""

_DEFAULT_FLAGS = {
    "broker_defaults": "brokers",
    "client_defaults": "clients",
    "user_defaults": "users",
    "ip_defaults": "ips",
}
"""The options that stand for the default of a type."""

_JAVA_SOURCES = {
    "topic": "DYNAMIC_TOPIC_CONFIG",
    "dynamic_broker": "DYNAMIC_BROKER_CONFIG",
    "dynamic_default_broker": "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "static_broker": "STATIC_BROKER_CONFIG",
    "default": "DEFAULT_CONFIG",
    "broker_logger": "DYNAMIC_BROKER_LOGGER_CONFIG",
    "client_metrics": "DYNAMIC_CLIENT_METRICS_CONFIG",
    "group": "DYNAMIC_GROUP_CONFIG",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one call. `names`: the name by entity type; None stands for all entities of the type, "" for its
    default."""

    alter: bool
    names: dict[str, str | None]
    every: bool
    add: dict[str, str]
    delete: tuple[str, ...]
    as_json: bool
    timeout_s: float

    @property
    def entity_type(self) -> str:
        return next(iter(self.names))

    @property
    def name(self) -> str | None:
        return self.names[self.entity_type]


@click.command()
@connection_options
@click.option("--alter", is_flag=True, help="Alter configurations.")
@click.option("--describe", is_flag=True, help="Describe configurations.")
@click.option("--all", "every", is_flag=True, help="With --describe: all configurations, not only the dynamic ones.")
@click.option(
    "--entity-type", metavar="TYPE", multiple=True, help=f"One of {', '.join(_EVERY_TYPE)}; users with clients as well."
)
@click.option("--entity-name", "entity_names", multiple=True, metavar="NAME", help="The name of the entity.")
@click.option(
    "--entity-default",
    "entity_names",
    multiple=True,
    flag_value="",
    help="Instead of --entity-name: the default of brokers, users, clients or ips.",
)
@click.option("--topic", metavar="NAME", help="Instead of --entity-type topics --entity-name NAME.")
@click.option("--group", metavar="ID", help="Instead of --entity-type groups --entity-name ID.")
@click.option("--broker", metavar="ID", help="Instead of --entity-type brokers --entity-name ID.")
@click.option("--broker-defaults", is_flag=True, help="Instead of --entity-type brokers --entity-default.")
@click.option("--broker-logger", metavar="ID", help="Instead of --entity-type broker-loggers --entity-name ID.")
@click.option("--client-metrics", metavar="NAME", help="Instead of --entity-type client-metrics --entity-name NAME.")
@click.option("--user", metavar="NAME", help="Instead of --entity-type users --entity-name NAME.")
@click.option("--user-defaults", is_flag=True, help="Instead of --entity-type users --entity-default.")
@click.option("--client", metavar="ID", help="Instead of --entity-type clients --entity-name ID.")
@click.option("--client-defaults", is_flag=True, help="Instead of --entity-type clients --entity-default.")
@click.option("--ip", metavar="ADDRESS", help="Instead of --entity-type ips --entity-name ADDRESS.")
@click.option("--ip-defaults", is_flag=True, help="Instead of --entity-type ips --entity-default.")
@click.option("--add-config", metavar="K=V,...", help="Configurations to set; [a,b] is a value with a comma.")
@click.option(
    "--add-config-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A properties file with configurations to set.",
)
@click.option("--delete-config", metavar="K,...", help="Configurations to set to their defaults.")
@click.option("--force", is_flag=True, hidden=True, help="No effect, as in Kafka's tool: there are no questions.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def configs(connection: Connection, **given: object) -> None:
    """Describe and alter configurations, quotas and SCRAM credentials, as kafka-configs does."""
    options = _checked(connection, given)
    with connection.admin() as admin:
        (_alter if options.alter else _describe)(admin, options)


# ---- options ---------------------------------------------------------------------------------------------------------


def _checked(connection: Connection, given: dict[str, object]) -> Options:
    action = the_one(given, ("alter", "describe"), "one action is needed")
    names = _names_by_type(given)
    if names.keys() <= QUOTA_TYPES.keys():
        client_configs.check_entity(_entity(names), alter=action == "alter")
    else:
        _check_resource(names, action)
    changes = [option for option in ("add_config", "add_config_file", "delete_config") if given[option] is not None]
    if action == "describe" and changes:
        raise click.UsageError("--describe changes nothing: --add-config and --delete-config need --alter")
    if action == "alter" and not changes:
        raise click.UsageError("--alter needs --add-config, --add-config-file or --delete-config")
    if {"add_config", "add_config_file"} <= {*changes}:
        raise click.UsageError("only one is possible of --add-config, --add-config-file")
    file = given["add_config_file"]
    return Options(
        alter=action == "alter",
        names=names,
        every=bool(given["every"]),
        add=properties_of(file) if isinstance(file, Path) else _pairs(str(given["add_config"] or "")),
        delete=tuple(key.strip() for key in str(given["delete_config"] or "").split(",") if key.strip()),
        as_json=bool(given["as_json"]),
        timeout_s=connection.timeout_s,
    )


def _entity(names: dict[str, str | None]) -> client_configs.EntityNames:
    return {QUOTA_TYPES[entity_type]: name for entity_type, name in names.items()}


def _check_resource(names: dict[str, str | None], action: str) -> None:
    """Check the type and the name of topics, groups, brokers, loggers or metrics."""
    if len(names) > 1:
        raise click.UsageError("only one entity is possible, or a user and a client")
    ((entity_type, name),) = names.items()
    if name == "" and entity_type != "brokers":
        raise click.UsageError("--entity-default is possible only with brokers, users, clients and ips")
    if name and ENTITY_TYPES[entity_type].kind in {"broker", "broker-logger"} and not name.isdecimal():
        raise click.UsageError(f"the name of {entity_type} must be the id of a broker, and is {name!r}")
    if action == "describe" and entity_type == "broker-loggers" and not name:
        raise click.UsageError("--describe of broker-loggers needs a name")
    if action == "alter" and name is None:
        raise click.UsageError(f"--alter of {entity_type} needs a name")


def _names_by_type(given: dict[str, object]) -> dict[str, str | None]:
    """The names by entity type, in the order of the options."""
    types, names = _texts(given["entity_type"]), _texts(given["entity_names"])
    flags = [(_FLAGS[flag], str(given[flag])) for flag in _FLAGS if given[flag] is not None]
    flags += [(entity_type, "") for flag, entity_type in _DEFAULT_FLAGS.items() if given[flag]]
    if (types or names) and flags:
        raise click.UsageError("--entity-{type,name,default} exclude the options of one entity, such as --topic")
    if flags:
        if len({entity_type for entity_type, _ in flags}) < len(flags):
            raise click.UsageError("only one entity is possible, or a user and a client")
        return dict(flags)
    if not types or not {*types} <= {*_EVERY_TYPE} or len({*types}) < len(types):
        unknown = "".join(f" {name}:" for name in types if name not in _EVERY_TYPE)
        raise click.UsageError(f"--entity-type{unknown} must be one of {', '.join(_EVERY_TYPE)}")
    if len(names) > len(types):
        raise click.UsageError("only one --entity-name or --entity-default is possible for each --entity-type")
    return dict(zip(types, [*names, *[None] * (len(types) - len(names))], strict=True))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else ()


def _pairs(text: str) -> dict[str, str]:
    """The configurations of k1=v1,k2=[v2,v3]: commas in brackets belong to a value."""
    found: dict[str, str] = {}
    for pair in re.split(r",(?=[^\]]*(?:\[|$))", text) if text else ():
        key, sign, value = pair.partition("=")
        if not key.strip() or not sign:
            raise click.UsageError(f'--add-config {text}: all configs to be added must be in the format "key=val"')
        found[key.strip()] = value.strip().removeprefix("[").removesuffix("]").strip()
    return found


# ---- actions ---------------------------------------------------------------------------------------------------------


def _alter(admin: Admin, options: Options) -> None:
    name = options.name or ""
    if options.entity_type in QUOTA_TYPES:
        entity = _entity(options.names)
        done = client_configs.alter(admin, entity, options.add, options.delete, options.timeout_s)
    else:
        changes: dict[str, object] = {**options.add, **dict.fromkeys(options.delete)}
        kind = ENTITY_TYPES[options.entity_type].kind
        admin.incremental_alter_configs(kind, name, changes, timeout=options.timeout_s)
        done = {"entity_type": options.entity_type, "name": name, "changes": changes}
    if options.as_json:
        print_json([done])
    elif name:
        click.echo(f"Completed updating config for {options.entity_type.removesuffix('s')} {name}.")
    else:
        click.echo(f"Completed updating default config for {options.entity_type} in the cluster.")


def _describe(admin: Admin, options: Options) -> None:
    if options.entity_type in QUOTA_TYPES:
        entity = _entity(options.names)
        client_configs.describe(admin, entity, as_json=options.as_json, timeout_s=options.timeout_s)
        return
    one = ENTITY_TYPES[options.entity_type].kind
    if options.name and not options.every and not _exists(admin, options):
        if options.as_json:
            print_json([])
        else:
            click.echo(f"The {one} '{options.name}' doesn't exist and doesn't have dynamic config.")
        return
    rows: list[Row] = []
    for name in _names(admin, options) if options.name is None else [options.name]:
        entries = _entries(admin, options, name)
        if options.as_json:
            rows += [_row(options.entity_type, name, entry) for entry in entries]
            continue
        what = "All" if options.every else "Dynamic"
        head = f"{what} configs for {one} {name} are:"
        click.echo(head if name else f"Default configs for {options.entity_type} in the cluster are:")
        for entry in entries:
            click.echo(
                f"  {entry.name}={_null(entry.value)} sensitive={str(entry.sensitive).lower()} "
                f"synonyms={{{', '.join(map(str, _synonyms(entry)))}}}"
            )
    if options.as_json:
        print_json(rows)


def _names(admin: Admin, options: Options) -> list[str]:
    """The entities of a type, the defaults of brokers last."""
    timeout = options.timeout_s
    if options.entity_type == "topics":
        return list(admin.list_topics(timeout=timeout))
    if options.entity_type == "groups":
        listed = admin.list_groups(timeout=timeout).check()
        return sorted({*listed, *admin.list_config_resources("group", timeout=timeout)})
    if options.entity_type == "brokers":
        return [*(str(node.id) for node in admin.describe_cluster(timeout=timeout).nodes), ""]
    return admin.list_config_resources(ENTITY_TYPES[options.entity_type].kind, timeout=timeout)


def _exists(admin: Admin, options: Options) -> bool:
    if options.entity_type == "broker-loggers":
        return options.name in {str(node.id) for node in admin.describe_cluster(timeout=options.timeout_s).nodes}
    return options.name in _names(admin, options)


def _entries(admin: Admin, options: Options, name: str) -> list[ConfigEntry]:
    """Sorted by name: those that are set for this entity, or all."""
    entity_type = ENTITY_TYPES[options.entity_type]
    found: Results[str, ConfigEntry] = admin.describe_configs(entity_type.kind, name, timeout=options.timeout_s)
    dynamic = _BROKER_DEFAULT if options.entity_type == "brokers" and not name else entity_type.dynamic
    return [entry for _, entry in sorted(found.items()) if options.every or entry.source == dynamic]


def _synonyms(entry: ConfigEntry) -> list[str]:
    return [f"{_JAVA_SOURCES[synonym.source]}:{synonym.name}={_null(synonym.value)}" for synonym in entry.synonyms]


def _null(value: str | None) -> str:
    """As Java prints it."""
    return "null" if value is None else value


def _row(entity_type: str, name: str, entry: ConfigEntry) -> Row:
    return {
        "entity_type": entity_type,
        "entity_name": name,
        "name": entry.name,
        "value": entry.value,
        "sensitive": entry.sensitive,
        "source": _JAVA_SOURCES[entry.source],
        "read_only": entry.read_only,
        "synonyms": [
            {"name": synonym.name, "value": synonym.value, "source": _JAVA_SOURCES[synonym.source]}
            for synonym in entry.synonyms
        ],
    }
