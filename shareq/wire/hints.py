"""How to connect: lines that can be pasted as they stand, for a served cluster or any other Kafka."""

from __future__ import annotations

from shareq.model.html import Html, html


def hints(bootstrap_servers: str, topic: str = "orders", group_id: str = "payments") -> dict[str, str]:
    """By title: Python with confluent-kafka, properties of Java clients, Kafka's own console tools."""
    return {
        "Python (confluent-kafka)": f"""\
from confluent_kafka import Producer, ShareConsumer

producer = Producer({{"bootstrap.servers": "{bootstrap_servers}"}})
producer.produce("{topic}", "hello")
producer.flush()
consumer = ShareConsumer({{"bootstrap.servers": "{bootstrap_servers}", "group.id": "{group_id}"}})
consumer.subscribe(["{topic}"])
for message in consumer.poll(10):
    print(message.value())
consumer.close()""",
        "Java (properties)": f"""\
bootstrap.servers={bootstrap_servers}
group.id={group_id}
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.StringDeserializer""",
        "Kafka's tools": f"""\
kafka-console-producer.sh --bootstrap-server {bootstrap_servers} --topic {topic}
kafka-console-share-consumer.sh --bootstrap-server {bootstrap_servers} --topic {topic} --group {group_id}
kafka-share-groups.sh --bootstrap-server {bootstrap_servers} --describe --group {group_id}""",
    }


def hints_text(bootstrap_servers: str) -> str:
    """For a terminal."""
    return "\n\n".join(f"# {title}\n{lines}" for title, lines in hints(bootstrap_servers).items())


def hints_html(bootstrap_servers: str) -> Html:
    """For a notebook: one fold for each kind of client."""
    return Html(
        "".join(
            f"<details><summary>{html(title)}</summary><pre>{html(lines)}</pre></details>"
            for title, lines in hints(bootstrap_servers).items()
        )
    )
