"""Produces, consumes in a group, commits, and lists groups with aiokafka. Arguments: an address, a topic.

Prints the values, the committed offset, and whether the list has the group.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic


async def run(address: str, topic: str) -> None:
    group, place = f"g-{topic}", TopicPartition(topic, 0)
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1)])
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        for value in (b"one", b"two"):
            await producer.send_and_wait(topic, value)
    settings = {"bootstrap_servers": address, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with AIOKafkaConsumer(topic, group_id=group, **settings) as consumer:
        seen = [(await consumer.getone()).value.decode() for _ in range(2)]
        await consumer.commit()
    offsets = await admin.list_consumer_group_offsets(group)
    listed = [name for name, _ in await admin.list_consumer_groups()]
    await admin.close()
    print(json.dumps({"seen": seen, "committed": offsets[place].offset, "listed": group in listed}))


asyncio.run(run(*sys.argv[1:]))
