"""Apache Kafka: one or three brokers in one call, and Kafka's command-line tools.

    with LocalKafka() as kafka:
        consumer = ShareConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "payments"})

Requires only the optional dependencies `shareq[kafka]`. Linux and macOS; on Windows use WSL.
"""

from shareq.kafka.jars import KafkaJars, KafkaNotFound, kafka_jars
from shareq.kafka.local import LocalKafka, LocalKafkaError

__all__ = ["KafkaJars", "KafkaNotFound", "LocalKafka", "LocalKafkaError", "kafka_jars"]
