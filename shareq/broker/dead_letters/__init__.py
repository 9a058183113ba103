"""The writer of dead-letter queues (KIP-1191): it copies records of share-partitions to the topic of their group.

Rules: `shareq/broker/BEHAVIOUR.md`, "Dead-letter queues".
"""

from shareq.broker.dead_letters.writer import DeadLetterWriter

__all__ = ["DeadLetterWriter"]
