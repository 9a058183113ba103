"""Apache Kafka itself, beside ours: a broker or three in one call, and its own command-line tools.

    with LocalKafka() as kafka:
        consumer = ShareConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "payments"})

Nothing needs to be installed but `pip install 'shareq[kafka]'`. Linux and macOS; on Windows use WSL.
"""

from shareq.kafka.jars import KafkaJars, KafkaNotFound, kafka_jars
from shareq.kafka.local import LocalKafka, LocalKafkaError

__all__ = ["KafkaJars", "KafkaNotFound", "LocalKafka", "LocalKafkaError", "kafka_jars"]
