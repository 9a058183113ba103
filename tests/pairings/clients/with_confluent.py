"""Writes a transaction, consumes it in a group, commits, and lists groups, with the confluent-kafka of PYTHONPATH.

Arguments: an address, a topic. Prints the version, the values, the committed offset, and whether the list has
the group.
"""

import json
import sys
from importlib.metadata import version

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

address, topic = sys.argv[1:]
group = f"g-{topic}"
admin = AdminClient({"bootstrap.servers": address})
for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
    created.result(60)
producer = Producer({"bootstrap.servers": address, "transactional.id": f"t-{topic}"})
producer.init_transactions(60)
producer.begin_transaction()
for value in ("one", "two"):
    producer.produce(topic, value)
producer.commit_transaction(60)
consumer = Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
found: list[str] = []
while len(found) < 2:
    record = consumer.poll(1)
    if record is not None and record.error() is None:
        found.append((record.value() or b"").decode())
consumer.commit(asynchronous=False)
(committed,) = consumer.committed([TopicPartition(topic, 0)], 60)
listed = [one.group_id for one in admin.list_consumer_groups().result(60).valid]
consumer.close()
result = {
    "version": version("confluent-kafka"),
    "seen": found,
    "committed": committed.offset,
    "listed": group in listed,
}
print(json.dumps(result))
