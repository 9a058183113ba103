"""How to connect: lines that can be pasted as they stand, for a served cluster or any other Kafka."""

from __future__ import annotations

from shareq.model.html import Html, html


def client_examples(bootstrap_servers: str, topic: str = "orders", group_id: str = "payments") -> dict[str, str]:
    """By title: Python with confluent-kafka, properties of Java clients, Kafka's own console tools.

    A new share group starts at the end of its topics, so whoever is to see records is shown first.
    """
    tool = f"--bootstrap-server {bootstrap_servers}"
    return {
        "Python (confluent-kafka), for who takes records": f"""\
from confluent_kafka import ShareConsumer

consumer = ShareConsumer({{"bootstrap.servers": "{bootstrap_servers}", "group.id": "{group_id}"}})
consumer.subscribe(["{topic}"])
while True:
    for message in consumer.poll(1):
        print(message.partition(), message.offset(), message.value())""",
        "Python (confluent-kafka), for who sends them": f"""\
from confluent_kafka import Producer

producer = Producer({{"bootstrap.servers": "{bootstrap_servers}"}})
producer.produce("{topic}", "hello")
producer.flush()""",
        "Java (properties of a share consumer)": f"""\
bootstrap.servers={bootstrap_servers}
group.id={group_id}
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
value.deserializer=org.apache.kafka.common.serialization.StringDeserializer""",
        "Kafka's own tools": f"""\
kafka-topics.sh {tool} --create --topic {topic} --partitions 4
kafka-configs.sh {tool} --alter --entity-type groups --entity-name {group_id} \\
    --add-config share.auto.offset.reset=earliest
kafka-console-producer.sh {tool} --topic {topic}
kafka-console-share-consumer.sh {tool} --topic {topic} --group {group_id}
kafka-share-groups.sh {tool} --describe --group {group_id}""",
    }


def client_examples_text(bootstrap_servers: str) -> str:
    """For a terminal."""
    return "\n\n".join(f"# {title}\n{lines}" for title, lines in client_examples(bootstrap_servers).items())


def client_examples_html(bootstrap_servers: str) -> Html:
    """For a notebook: one fold for each kind of client."""
    return Html(
        "".join(
            f"<details><summary>{html(title)}</summary><pre>{html(lines)}</pre></details>"
            for title, lines in client_examples(bootstrap_servers).items()
        )
    )
