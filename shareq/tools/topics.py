"""`shareq topics`: Kafka's kafka-topics. It creates, alters, deletes, describes and lists topics.

Source: the options and output of Kafka 4.4's tool.
"""

from __future__ import annotations

import click

from shareq.tools.connection import Connection, connection_options
from shareq.tools.options import is_given, only_with, the_one
from shareq.tools.topic_actions import ACTIONS, REPORTS, Options


@click.command()
@connection_options
@click.option("--list", "list_", is_flag=True, help="List the names of topics.")
@click.option("--describe", is_flag=True, help="Describe topics: their configurations and partitions.")
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--alter", is_flag=True, help="Add partitions to topics. (`shareq configs` alters configurations.)")
@click.option("--delete", is_flag=True, help="Delete topics.")
@click.option("--topic", metavar="TOPIC", help="The topic; except with --create a regular expression for whole names.")
@click.option("--topic-id", metavar="ID", help="With --describe: the id of the topic; --topic has no effect then.")
@click.option("--partitions", type=int, metavar="N", help="The number of partitions.")
@click.option("--replication-factor", type=int, metavar="N", help="With --create: the replicas of each partition.")
@click.option(
    "--replica-assignment",
    metavar="0:1,1:2,...",
    help="The brokers of each partition's replicas; with --alter those of the present partitions are skipped.",
)
@click.option("--config", multiple=True, metavar="KEY=VALUE", help="With --create: a configuration; repeatable.")
@click.option("--delete-config", multiple=True, hidden=True)
@click.option("--if-exists", is_flag=True, help="Topics that do not exist are no error.")
@click.option("--if-not-exists", is_flag=True, help="With --create: a topic that exists is no error.")
@click.option("--exclude-internal", is_flag=True, help="With --list and --describe: no internal topics.")
@click.option("--topics-with-overrides", is_flag=True, help="With --describe: topics with configurations of their own.")
@click.option("--under-replicated-partitions", is_flag=True, help="With --describe: partitions with too few in sync.")
@click.option("--unavailable-partitions", is_flag=True, help="With --describe: partitions without an available leader.")
@click.option("--under-min-isr-partitions", is_flag=True, help="With --describe: partitions below min.insync.replicas.")
@click.option("--at-min-isr-partitions", is_flag=True, help="With --describe: partitions at min.insync.replicas.")
@click.option(
    "--partition-size-limit-per-response",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    metavar="N",
    help="With --describe: the most partitions in a response.",
)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def topics(connection: Connection, **given: object) -> None:
    """Create, alter, delete, describe and list topics, as kafka-topics does."""
    options = _checked(connection, given)
    with connection.admin() as admin:
        ACTIONS[options.action](admin, options)


def _checked(connection: Connection, given: dict[str, object]) -> Options:
    """The options of the call. UsageError: they contradict each other, or one is missing."""
    action = the_one(given, ("list_", "describe", "create", "alter", "delete"), "one action is needed")
    if given.pop("delete_config"):
        raise click.UsageError("--delete-config has no effect in Kafka 4: `shareq configs` deletes configurations")
    if action in {"create", "alter", "delete"} and not given["topic"]:
        raise click.UsageError(f"--{action} needs --topic")
    if action == "alter" and given["partitions"] is None:
        raise click.UsageError("--alter needs --partitions")
    if action == "describe" and given["if_exists"] and not (given["topic"] or given["topic_id"]):
        raise click.UsageError("--describe --if-exists needs --topic or --topic-id")
    only_with(given, ("config", "replication_factor", "if_not_exists"), ("create",))
    only_with(given, ("partitions", "replica_assignment"), ("create", "alter"))
    only_with(given, ("if_exists",), ("alter", "delete", "describe"))
    only_with(given, ("exclude_internal",), ("list_", "describe"))
    only_with(given, ("topic_id", "topics_with_overrides", *REPORTS), ("describe",))
    if action == "create" and given["replica_assignment"] and (given["partitions"] or given["replication_factor"]):
        raise click.UsageError("--replica-assignment excludes --partitions and --replication-factor")
    reports = [name for name in REPORTS if is_given(given, name)]
    if reports and given["topics_with_overrides"]:
        raise click.UsageError("--topics-with-overrides shows no partitions")
    text = str(given["replica_assignment"] or "")
    return Options(
        action=action,
        topic=_text(given["topic"]),
        topic_id=_text(given["topic_id"]),
        partitions=_number(given["partitions"]),
        replication_factor=_number(given["replication_factor"]),
        replica_assignment=_assignment(text) if text else [],
        configs=_configs(given["config"]),
        if_exists=bool(given["if_exists"]),
        if_not_exists=bool(given["if_not_exists"]),
        exclude_internal=bool(given["exclude_internal"]),
        overrides_only=bool(given["topics_with_overrides"]),
        reports=reports,
        page_size=_number(given["partition_size_limit_per_response"]) or 2000,
        as_json=bool(given["as_json"]),
        timeout_s=connection.timeout_s,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _configs(given: object) -> dict[str, str]:
    """The configurations of key=value; the value may have further signs of equality, in contrast to Kafka's tool."""
    assert isinstance(given, tuple)
    pairs = [(key.strip(), sign, value.strip()) for key, sign, value in (str(text).partition("=") for text in given)]
    for text, (key, sign, _) in zip(given, pairs, strict=True):
        if not key or not sign:
            raise click.UsageError(f'--config {text}: must be in the format "key=val"')
    return {key: value for key, _, value in pairs}


def _assignment(text: str) -> list[list[int]]:
    """The brokers of each partition, from 0:1,1:2."""
    try:
        found = [[int(broker) for broker in brokers.split(":")] for brokers in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--replica-assignment {text}: must be ids of brokers such as 0:1,1:2") from None
    for index, brokers in enumerate(found):
        if len(set(brokers)) < len(brokers):
            raise click.UsageError(f"--replica-assignment {text}: partition {index} has a broker twice")
        if len(brokers) != len(found[0]):
            raise click.UsageError(f"--replica-assignment {text}: partition {index} has a different replication factor")
    return found
