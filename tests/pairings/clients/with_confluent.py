"""Writes a transaction, and consumes it in a group, with the confluent-kafka of PYTHONPATH. Arguments: an address, a
topic. Prints the version of librdkafka, the values, and the committed offset."""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

address, topic = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": address})
for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
    created.result(60)
producer = Producer({"bootstrap.servers": address, "transactional.id": f"t-{topic}"})
producer.init_transactions(60)
producer.begin_transaction()
for value in ("one", "two"):
    producer.produce(topic, value)
producer.commit_transaction(60)
consumer = Consumer({"bootstrap.servers": address, "group.id": f"g-{topic}", "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
found: list[str] = []
while len(found) < 2:
    record = consumer.poll(1)
    if record is not None and record.error() is None:
        found.append((record.value() or b"").decode())
consumer.commit(asynchronous=False)
(committed,) = consumer.committed([TopicPartition(topic, 0)], 60)
consumer.close()
print(libversion()[0], *found, committed.offset)
