"""Produces, consumes in a group, commits, and lists groups with kafka-python. Arguments: an address, a topic.

Prints the values, the committed offset, and whether the list has the group.
"""

import json
import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

address, topic = sys.argv[1:]
group, place = f"g-{topic}", TopicPartition(topic, 0)
admin = KafkaAdminClient(bootstrap_servers=address)
admin.create_topics([NewTopic(topic, 1, 1)])
producer = KafkaProducer(bootstrap_servers=address)
for value in (b"one", b"two"):
    producer.send(topic, value, partition=0).get(60)
producer.close()
settings = {"bootstrap_servers": address, "auto_offset_reset": "earliest", "enable_auto_commit": False}
consumer = KafkaConsumer(topic, group_id=group, **settings)
seen = [next(consumer).value.decode() for _ in range(2)]
consumer.commit()
consumer.close()
committed = admin.list_group_offsets(group)
listed = [one["group_id"] for one in admin.list_groups()]
admin.close()
print(json.dumps({"seen": seen, "committed": committed[group][place].offset, "listed": group in listed}))
