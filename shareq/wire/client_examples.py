"""Examples for a terminal or a program that connect clients to a server, or to any other Kafka."""

from __future__ import annotations

from shareq.extras import command_here
from shareq.html import Html, html


def client_examples(
    bootstrap_servers: str, topic: str = "orders", group_id: str = "payments", *, command: str = "shareq"
) -> dict[str, str]:
    """Examples by title: Kafka's command-line tools, Python with confluent-kafka, properties of Java clients.
    `command`: how a shell calls shareq.

    They work in any order: a new share group starts at the end of its topics by default, so the lines of each consumer
    set the group to start at the beginning before its first member joins.
    """
    tool, server = f"{command} kafka run", f"--bootstrap-server {bootstrap_servers}"
    earliest = (
        f"{tool} kafka-configs {server} --alter --entity-type groups --entity-name {group_id} "
        "--add-config share.auto.offset.reset=earliest"
    )
    return {
        "Kafka's tools in a shell": f"""\
{earliest}
{tool} kafka-topics {server} --create --if-not-exists --topic {topic} --partitions 4
echo hello | {tool} kafka-console-producer {server} --topic {topic}
{tool} kafka-console-share-consumer {server} --topic {topic} --group {group_id}
{tool} kafka-share-groups {server} --describe --group {group_id}""",
        "Python (confluent-kafka): a consumer": f"""\
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

servers = {{"bootstrap.servers": "{bootstrap_servers}"}}
entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
group = ConfigResource(ResourceType.GROUP, "{group_id}", incremental_configs=[entry])
admin = AdminClient(servers)
admin.incremental_alter_configs([group])[group].result()

consumer = ShareConsumer({{**servers, "group.id": "{group_id}"}})
consumer.subscribe(["{topic}"])
while True:
    for message in consumer.poll(1):
        print(message.partition(), message.offset(), message.value())""",
        "Python (confluent-kafka): a producer": f"""\
from confluent_kafka import Producer

producer = Producer({{"bootstrap.servers": "{bootstrap_servers}"}})
producer.produce("{topic}", "hello")
producer.flush()""",
        "Java: properties of a share consumer": f"""\
# {earliest}
bootstrap.servers={bootstrap_servers}
group.id={group_id}
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.StringDeserializer""",
    }


def client_examples_text(bootstrap_servers: str) -> str:
    """The examples for a terminal, with the command that works in its shell."""
    examples = client_examples(bootstrap_servers, command=command_here())
    return "\n\n".join(f"# {title}\n{lines}" for title, lines in examples.items())


def client_examples_html(bootstrap_servers: str) -> Html:
    """The examples for a notebook: one fold per example."""
    return Html(
        "".join(
            f"<details><summary>{html(title)}</summary><pre>{html(lines)}</pre></details>"
            for title, lines in client_examples(bootstrap_servers).items()
        )
    )
