"""The dead-letter queue of a bench: its topic, the group's configuration, and the letters in it."""

from __future__ import annotations

from shareq.consumer import Message, ShareConsumer
from shareq.lessons.bench import Bench
from shareq.model import dead_letter_configs as configs

QUEUE = "dlq.jobs"
PATIENCE_S = 10


def name_queue(bench: Bench, *, copy: bool = True) -> None:
    """Let the bench's group name QUEUE as its dead-letter queue. `copy`: letters have key and value of their record."""
    bench.cluster.configure_group(
        bench.group, {configs.TOPIC_NAME: QUEUE, "errors.deadletterqueue.copy.record.enable": copy}
    )


def create_queue(bench: Bench) -> None:
    """Create the topic QUEUE, enabled as a queue."""
    bench.cluster.create_topic(QUEUE, configs={configs.ENABLED: True})


def letters(bench: Bench) -> list[Message]:
    """All letters in the queue, read by a share group of their own."""
    bench.cluster.configure_group("repair", {"share.auto.offset.reset": "earliest"})
    with ShareConsumer({"bootstrap.servers": bench.cluster.bootstrap_servers, "group.id": "repair"}) as reader:
        reader.subscribe([QUEUE])
        found: list[Message] = []
        while len(messages := reader.poll(PATIENCE_S)):
            found += messages
    return found
